"""Sentences and tokens: how the grounder reads text.

Everything here is one pass over the text. A text without sentence marks (a transcript, another script, a table) is cut
into pieces of bounded length, so that no later step meets a sentence of unbounded size.
"""

from __future__ import annotations

import re
from typing import Final

from spanforge.reference.grounding.rows import JOINT, cells_of

MAX_SENTENCE_CHARS: Final = 600
"""Longer stretches without a sentence mark are cut at white space near this length."""

MAX_ROW_CHARS: Final = 2_400
"""Longer rows of tables are cut there: a row is one statement, and its first cell says what the last is about."""

_BOUNDARY: Final = re.compile(
    r"(?<=[.!?])[\"'\u201d\u2019)\]]{0,3}(?:\[\d{1,3}\]){0,8}\s+"  # mark, closing quotes, citations, space
    r"|(?<=[\u3002\uff01\uff1f])"
    r"|(?:\\n|\n)\s*"  # a line end; some corpora carry it escaped
)
_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|Mrs?|Ms|Drs?|Prof|St|vs|etc|e\.g|i\.e|al|Fig|No|Inc|Ltd|Co|Jr|Sr|Gen|Col|Lt|Sgt|Rev|"
    r"approx|ca?|cf|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|U\.S|U\.K|a\.m|p\.m)\.$"
    r"|(?:^|\n)\s*\d{1,3}\.$"  # the number of a list item
)
_ABBREVIATION_REACH: Final = 10
"""Characters looked back over for an abbreviation; the longest above is shorter."""

_NARROWEST: Final = 66
_WIDEST: Final = 100
"""Characters of a line that was broken because the next word had no room."""
_GOES_ON: Final = re.compile(r"(?!\d{1,3}[.)]\s|[-*+]\s)[\w\"'(\[`*\u201c]\S{0,40}")
_OPEN_END: Final = re.compile(r"[^\W_]$|[,)\"'`*\u201d-]$")
_HEAD_OR_ROW: Final = re.compile(r"\s*[#|]")

TOKEN: Final = re.compile(
    r"\d+(?:[.,:\u00b7]\d+)+"  # 3.5  1,200  14:30  1·5
    r"|(?:[A-Za-z]\.){2,}"  # U.S.
    r"|[^\W\d_]+[-\u2010\u2011]\d[^\W_]*"  # COVID-19
    r"|[^\W_]+(?:['\u2019][^\W\d_]+)*"  # words, UCP1, don't
    r"|[,;:()]"  # marks that end the reach of a negation
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Cut a text into sentences: half-open character spans, in order, without surrounding white space, never empty.

    Each is at most ``MAX_SENTENCE_CHARS`` long, or ``MAX_ROW_CHARS`` where it is a row of a table.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for begin, end in _row_lines(text):
        _append_sentences(text, start, begin, spans)
        _append_bounded(text, begin, end, spans, MAX_ROW_CHARS)
        start = end
    _append_sentences(text, start, len(text), spans)
    return spans


def _row_lines(text: str) -> list[tuple[int, int]]:
    if JOINT not in text:
        return []
    found: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        if cells_of(line):
            found.append((start, start + len(line)))
        start += len(line) + 1
    return found


def _append_sentences(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    for boundary in _BOUNDARY.finditer(text, start, end):
        if boundary.end() <= start or not _ends_sentence(text, boundary):
            continue
        _append_bounded(text, start, boundary.start(), spans)
        start = boundary.end()
    _append_bounded(text, start, end, spans)


def _ends_sentence(text: str, boundary: re.Match[str]) -> bool:
    following = text[boundary.end() : boundary.end() + 1]
    if "\n" in boundary[0] or "\\n" in boundary[0]:
        # A line end inside a wrapped sentence is a space: the next line goes on in lower case.
        before = text[max(0, boundary.start() - 3) : boundary.start()].rstrip()[-1:]
        goes_on = following.islower() and (before.isalnum() or before == ",")
        return boundary[0].count("\n") > 1 or not (goes_on or _is_wrapped(text, boundary))
    if not boundary[0]:
        return True
    if following.islower():
        return False
    return not _ABBREVIATION.search(text[max(0, boundary.start() - _ABBREVIATION_REACH) : boundary.start()])


def _is_wrapped(text: str, boundary: re.Match[str]) -> bool:
    """Tell whether a line ends in the midst of a sentence, be it before a name, because the next word had no room."""
    begin = text.rfind("\n", max(0, boundary.start() - _WIDEST - 1), boundary.start()) + 1
    line = text[max(begin, boundary.start() - _WIDEST - 1) : boundary.start()].rstrip()
    following = _GOES_ON.match(text, boundary.end())
    return bool(
        following
        and len(line) <= _WIDEST
        and len(line) + len(following[0]) >= _NARROWEST
        and _OPEN_END.search(line)
        and not _HEAD_OR_ROW.match(line)
    )


def _append_bounded(
    text: str, start: int, end: int, spans: list[tuple[int, int]], longest: int = MAX_SENTENCE_CHARS
) -> None:
    while end - start > longest:
        cut = text.rfind(" ", start + longest // 2, start + longest)
        cut = cut if cut > start else start + longest
        _append_stripped(text, start, cut, spans)
        start = cut
    _append_stripped(text, start, end, spans)


def _append_stripped(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))
