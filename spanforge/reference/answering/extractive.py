"""The offline answerer: it quotes the sentences that answer best, and says so when none does.

A factual question is answered by the words alone where they are plain to see, one about a table by its row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spanforge.reference.answering.base import used_citations
from spanforge.reference.answering.choice import choose
from spanforge.reference.answering.spans import answer_span, wanted
from spanforge.reference.answering.tables import quoted_cells
from spanforge.reference.assembly import REFUSAL
from spanforge.reference.models import AnsweringOutput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from spanforge.reference.answering.choice import Choice
    from spanforge.reference.models import AnsweringInput

MODEL_NAME = "spanforge-extractive-1"
MIN_COVERAGE_TO_CUT = 0.6
"""Share of the question's weight from which a sentence may be cut to a few words: with less, only the whole of it shows
the reader how far it answers."""


class ExtractiveAnswerer:
    """Answers with quotations; ``confidence`` is the probability that they answer, from `answerability`."""

    model = MODEL_NAME
    provider = "spanforge"
    generative = False

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the quotations that answer, or the refusal."""
        choice = choose(request.query, request.grounded_docs)
        answer = _compose(request.query, choice) if choice.answers else REFUSAL
        return AnsweringOutput(
            answer=answer,
            citations_used=used_citations(answer, request.citations),
            confidence=choice.answerability if choice.answers else 0.0,
            model=self.model,
        )

    def stream(self, request: AnsweringInput) -> Iterator[str | AnsweringOutput]:
        """Yield the answer word by word, then the whole."""
        output = self.answer(request)
        yield from re.findall(r"\S+\s*", output.answer)
        yield output

    def close(self) -> None:
        """Nothing is held open."""

    async def aanswer(self, request: AnsweringInput) -> AnsweringOutput:
        """Return the answer; a matter of a few milliseconds, done in place."""
        return self.answer(request)

    async def astream(self, request: AnsweringInput) -> AsyncIterator[str | AnsweringOutput]:
        """Yield the answer word by word, then the whole."""
        for item in self.stream(request):
            yield item


def _compose(question: str, choice: Choice) -> str:
    if choice.units[0].cells:
        want = wanted(question)
        return "\n".join(
            f"{quoted_cells(question, want, unit) if unit.cells else _closed(unit.text)} [{unit.number}]"
            for unit in choice.units
        )
    if len(choice.units) == 1 and choice.covered >= MIN_COVERAGE_TO_CUT:
        unit = choice.units[0]
        span = answer_span(question, unit.sentence)
        if span is not None:
            return f"{span} [{unit.number}]"
    return " ".join(f"{_closed(unit.text)} [{unit.number}]" for unit in choice.units)


def _closed(text: str) -> str:
    return text if text[-1] in ".!?。！？" else text + "."  # noqa: RUF001 - full-width stops end sentences in CJK text
