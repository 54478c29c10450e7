"""Asking one's documents: the question, the answer with its passages, and what one thinks of it."""

from __future__ import annotations

import re
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from spanforge.viewer.documents import AskableDocuments, Documents
from spanforge.viewer.pages.errors import NOT_FOUND
from spanforge.viewer.shell import form_of, shell_of

__all__ = ["answer_parts", "ask", "passage", "rate"]

_NUMBER: Final = re.compile(r"\[(\d+(?:, ?\d+)*)\]")
_RATINGS: Final = ("thumbs_up", "thumbs_down")
_MOST: Final = 4_096


async def ask(request: Request) -> Response:
    """Show the form; answer what was posted. The question stands in the page alone: in no address and no log."""
    shell, documents = shell_of(request), _askable(request)
    if request.method != "POST":
        rated = request.query_params.get("rated") == "yes"
        return shell.page(request, "ask.html", active="ask", question="", result=None, parts=[], rated=rated)
    fields = await form_of(request)
    shell.check_form(request, fields)
    question = fields.get("question", "").strip()
    if not 0 < len(question) <= _MOST:
        raise HTTPException(400, f"Ask a question of at most {_MOST:,} characters.")
    result = await documents.ask(request, question)
    cited = {citation.number: citation for citation in result.citations_used}
    return shell.page(
        request,
        "ask.html",
        active="ask",
        question=question,
        result=result,
        parts=answer_parts(result.answer, frozenset(cited)),
        cited=cited,
        rated=False,
    )


async def passage(request: Request) -> Response:
    """Show a passage, looked up in the index with the rights of whoever asks for it."""
    found = await _documents(request).passage(request, request.path_params["chunk"])
    if found is None:
        raise HTTPException(404, NOT_FOUND)
    return shell_of(request).page(request, "passage.html", active="ask", passage=found)


async def rate(request: Request) -> Response:
    """Take a thumb."""
    shell, documents, fields = shell_of(request), _askable(request), await form_of(request)
    shell.check_form(request, fields)
    if fields.get("rating") not in _RATINGS:
        raise HTTPException(400, "Say whether the answer helped.")
    await documents.rate(request, fields.get("session", ""), fields["rating"])
    return RedirectResponse(shell.links(request)("ask", "rated=yes"), 303)


def answer_parts(answer: str, known: frozenset[int]) -> list[str | int]:
    """Take an answer apart: texts, and the numbers of the passages that it cites."""
    parts: list[str | int] = []
    end = 0
    for match in _NUMBER.finditer(answer):
        numbers = [int(number) for number in match[1].split(",")]
        if known.issuperset(numbers):
            parts += [answer[end : match.start()], *numbers]
            end = match.end()
    return [part for part in (*parts, answer[end:]) if part != ""]


def _documents(request: Request) -> Documents:
    """Return the documents, where there are some and the visitor may ask them."""
    shell = shell_of(request)
    if shell.documents is None or not shell.asks(request):
        raise HTTPException(404, NOT_FOUND)
    return shell.documents


def _askable(request: Request) -> AskableDocuments:
    """Return them where they can be asked here."""
    documents = _documents(request)
    if not isinstance(documents, AskableDocuments):
        raise HTTPException(404, NOT_FOUND)
    return documents
