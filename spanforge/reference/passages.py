"""A passage as the answerer and the grounder read it: tables as rows, headings above."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from spanforge.reference.grounding.rows import with_rows
from spanforge.reference.grounding.text import sentence_spans
from spanforge.reference.lexical import under_heading
from spanforge.reference.models import RetrievedDocument

_FENCE_SIGNS = re.compile(r"<{3,}|>{3,}")
_OPENING, _CLOSING = "[\uff3b\u3010\u3014\u27e6", "]\uff3d\u3011\u3015\u27e7"
_BRACKETED = re.compile(rf"[{re.escape(_OPENING)}]([^{re.escape(_OPENING + _CLOSING)}]*)[{re.escape(_CLOSING)}]")
_ITEM_MARK = re.compile(r"^(?:[-*+\u2022]|\d{1,3}[.)])\s+(?=\S)")
_EMPHASIS = re.compile(r"(\*{1,3}|`+)(?=\S)([^*`]+)(?<=\S)\1")
_TAG = re.compile(
    r"`[^`]*`|</?(?:a|abbr|b|br|center|code|dfn|div|em|h[1-6]|hr|i|img|kbd|li|ol|p|pre|small|span|strong|sub|sup|u|ul)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_STANDING = re.compile(
    r"(?:\A|(?<=\n\n))((?:\d+(?:\.\d+)*\.? )?[^\W\d_](?:[^\s\d:;|]* ){0,7}[^\s\d:;|]*[^\W\d])(?:\n[=~-]{3,})?"
    r"(?=\n\n+(?:[-*\u2022] |\d{1,3}[.)] |[^\n]*(?:\n[^\n]|[.:;!?](?:\s|\Z))))"
)
"""A short line that stands alone over a text, as headings do where nothing marks them."""
_MARKED = re.compile(r"^#{1,6} ", re.MULTILINE)
_QUOTATION = re.compile(r"^(?:>\s*)+")
_FENCE = re.compile(r"^(?:`{3,}|~{3,}|:{3,})\S*$")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")


def plain(text: str) -> str:
    """Return a piece of a passage as it reads: without the marks of Markdown, and HTML within it, on one line."""
    if "<" in text:
        text = html.unescape(_TAG.sub(_without_tag, text))
    return " ".join(_ITEM_MARK.sub("", _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", text))).split())


def _without_tag(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == "`" else " " if match[0][1:3].lower() == "br" else ""


def body_of(document: RetrievedDocument) -> str:
    """Return the passage, each row of its tables as a line that names its columns."""
    return with_rows(document.text, document.heading)


def headed(text: str) -> str:
    """Return a passage with headings marked: where none are, as in a PDF, short lines are that stand over a text."""
    return text if _MARKED.search(text) else _STANDING.sub(r"# \1", text)


def reading_of(document: RetrievedDocument) -> str:
    """Return the passage under its headings."""
    return under_heading(document.heading, body_of(document))


def quoted(text: str) -> str:
    """Return what others wrote as it may stand beside our own: no fence signs, no numbers alone in brackets.

    A number in square brackets is a citation of an answer, and ours to make, whatever digits and brackets it is written
    with and whatever stands between them.
    """
    return _BRACKETED.sub(_rounded, _FENCE_SIGNS.sub("…", text.replace("\x00", "")))


def _rounded(match: re.Match[str]) -> str:
    inner = match[1]
    is_number = any(c.isnumeric() for c in inner) and not any(c.isalpha() and not c.isnumeric() for c in inner)
    return f"({inner})" if is_number else match[0]


def pieces_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences and lines of a passage, and whether each begins a line."""
    last = 0
    for start, end in sentence_spans(text):
        is_new_line = last == 0 or "\n" in text[last:start]
        raw = _QUOTATION.sub("", text[start:end])
        if raw and not _FENCE.match(raw):
            yield raw, is_new_line
        last = end
