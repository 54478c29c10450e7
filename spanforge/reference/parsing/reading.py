"""A document read in a child process: what goes there, and what comes back."""

from __future__ import annotations

from dataclasses import asdict, astuple, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.base import MAX_TEXT_CHARS, ParsedDocument, Section
from spanforge.reference.parsing.registry import read
from spanforge.reference.workers import DEFAULT_LIMITS, WORKERS, Limits

if TYPE_CHECKING:
    # A child that reads documents starts without pydantic.
    from spanforge.reference.models import Document

_TASK: Final = f"{__name__}:packed"
_MARKDOWN: Final = "text/markdown"


def parse(document: Document, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Return the document's text in sections.

    Text given as text is Markdown unless its media type or name says another kind of text. Bytes are read by media
    type, else by suffix, else by what they begin with.

    Args:
        document: What is read.
        limits: What it may cost.

    Raises:
        UnsupportedFormat: No parser for this kind, or its optional package is not installed.
        ParseError: The bytes are damaged, encrypted or empty, or cost more to read than the limits allow.
    """
    content, facts = given(document)
    return unpacked(WORKERS.run(_TASK, content, facts, limits))


def given(document: Document) -> tuple[bytes, dict[str, str]]:
    """Return a document's bytes, and what `read` is told of them.

    Raises:
        ParseError: It has neither text nor content, or too much text.
    """
    if document.text is None:
        if document.content is None:
            raise ParseError("A document needs text or content.")
        return document.content, {"name": document.name, "media_type": document.media_type}
    if len(document.text) > MAX_TEXT_CHARS:
        raise ParseError(f"A text longer than {MAX_TEXT_CHARS} characters is refused; split it.")
    # Lone surrogates have no UTF-8 form; they become question marks rather than a failed document.
    return document.text.encode("utf-8", errors="replace"), {"name": document.name, "media_type": document.media_type,
                                                             "otherwise": _MARKDOWN}  # fmt: skip


def packed(content: bytes, **facts: str) -> dict[str, Any]:
    """Read a document here, in the child, and return it in a form that JSON can hold."""
    parsed = read(content, **facts)
    return {**facts_of(parsed), "sections": [astuple(section) for section in parsed.sections]}


def facts_of(parsed: ParsedDocument) -> dict[str, Any]:
    """Return all of a document but its text, in a form that JSON can hold."""
    return {**asdict(replace(parsed, sections=())), "date": parsed.date and parsed.date.isoformat()}


def unpacked(facts: dict[str, Any]) -> ParsedDocument:
    """Return a document as it was before it was packed."""
    date = facts["date"] and datetime.fromisoformat(facts["date"])
    sections = tuple(Section(*section) for section in facts["sections"])
    told: dict[str, Any] = {"date": date, "sections": sections, "warnings": tuple(facts["warnings"])}
    return ParsedDocument(**(facts | told))
