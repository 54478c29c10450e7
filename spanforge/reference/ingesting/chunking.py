"""Cutting parsed documents into passages: by structure, within a token budget, with stable ids.

A passage never crosses a section (page, table). Markdown is cut at headings and blocks before sentences,
plain text at paragraphs before sentences, tables at rows, and a row that is too long at its cells. A passage that
begins inside a table or a row carries the names of the columns, or the row's first cell, in its heading. The same text
cut with the same settings gives the same passages.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import InvalidInput, ParseError
from spanforge.reference.grounding.rows import CONTINUED, JOINT, LEVEL, column_of, drawn_tables
from spanforge.reference.parsing.base import SEPARATOR, ParsedDocument, Section
from spanforge.reference.tokens import TokenCounter
from spanforge.reference.workers import DEFAULT_LIMITS

CHUNKER_VERSION = "5"
"""Part of every fingerprint: a change in how text is cut, or its words are found, makes documents be done anew."""
_SLICE_CHARS = 16_384
_BOUNDARIES = ("\n\n", "\n", ". ", " ")
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$", re.MULTILINE)
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LONGEST_TITLE = 200
"""Characters of a heading that are carried along: what each passage repeats costs as often."""
_LONGEST_CARRIED = 400
"""Characters of a head or a first cell that are carried along; a longer one says too little for its length."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document.

    Attributes:
        chunk_id: Digest of where the passage belongs and what it says; the same after re-ingestion.
        content_hash: SHA-256 of the text in hex.
        heading: Titles that stand over the passage, outermost first, joined by " > ".
        start: Offset of its first character in the document's extracted text.
        end: Offset behind its last character.
        tokens: Length by the counter that cut it.
    """

    chunk_id: str
    text: str
    content_hash: str
    heading: str
    page: int | None
    start: int
    end: int
    tokens: int

    def __repr__(self) -> str:
        return f"Chunk({self.chunk_id}, {self.start}:{self.end})"


class Chunker:
    """Cuts documents into passages of at most ``size`` tokens that share up to ``overlap`` tokens.

    Where a single word of a script that the tokenizer spells in bytes has to be cut, its parts may be a few tokens
    longer: the splitter takes it for granted that a part has no more tokens than the whole.
    """

    def __init__(self, counter: TokenCounter, size: int = 512, overlap: int = 50) -> None:
        check_cut(size, overlap)
        self.counter = counter
        self.signature = f"{CHUNKER_VERSION}:{counter.name}:{size}:{overlap}"
        splitters = load("semantic_text_splitter", "reference")
        self.size = size
        self.overlap = overlap
        self._text = splitters.TextSplitter.from_callback(counter.count, size, overlap)
        self._markdown = splitters.MarkdownSplitter.from_callback(counter.count, size, overlap)

    def cut(self, document: ParsedDocument, *, scope: str, most: int = DEFAULT_LIMITS.chunks) -> list[Chunk]:
        """Return the passages of a document in order.

        Args:
            document: What a parser returned.
            scope: Organisation, data source and document, from which ids are made: equal passages of two
                documents have two ids.
            most: Passages that may be cut.

        Raises:
            ParseError: There would be more than ``most``.
        """
        seen: Counter[str] = Counter()
        chunks: list[Chunk] = []
        offset = 0
        for section in document.sections:
            for start, text, heading in self._cut_section(section, document.title):
                if len(chunks) >= most:
                    raise ParseError(f"The document makes more than {most} passages; split it, or cut it larger.")
                content_hash = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
                # A page or sheet may repeat a passage word for word: its n-th occurrence is part of the id.
                key = f"{scope}\0{content_hash}\0{seen[content_hash]}"
                seen[content_hash] += 1
                chunks.append(
                    Chunk(
                        chunk_id=hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32],
                        text=text,
                        content_hash=content_hash,
                        heading=heading,
                        page=section.page,
                        start=offset + start,
                        end=offset + start + len(text),
                        tokens=self.counter.count(text),
                    )
                )
            offset += len(section.text) + len(SEPARATOR)
        return chunks

    def _cut_section(self, section: Section, title: str) -> Iterator[tuple[int, str, str]]:
        above = _title(section.heading or title)
        match section.kind:
            case "table":
                pieces = ((start, text, (above, *carried)) for start, text, carried in self._cut_rows(section.text))
            case "markdown":
                pieces = _under_headings(section.text, above, self._split(self._markdown, section.text))
            case "text":
                pieces = ((start, text, (above,)) for start, text in self._split(self._text, section.text))
        for start, text, parts in pieces:
            if any(c.isalnum() for c in text):
                yield start, text, LEVEL.join(part for part in parts if part)

    def _split(self, splitter: Untyped, text: str) -> Iterator[tuple[int, str]]:
        return ((begin + start, piece) for begin, part in slices(text) for start, piece in splitter.chunk_indices(part))

    def _cut_rows(self, text: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
        """Yield passages of whole rows, none of them twice, and the parts of a row that is too long for one."""
        begin = start = spent = 0
        for line in text.split("\n"):
            cost = self.counter.count(line) + 1
            if start > begin and spent + cost > self.size:
                yield begin, text[begin : start - 1], ()
                begin, spent = start, 0
            if cost > self.size:
                for part, piece, carried in self._cut_row(line):
                    yield start + part, piece, carried
                begin, spent = start + len(line) + 1, 0
            else:
                spent += cost
            start += len(line) + 1
        if begin < len(text):
            yield begin, text[begin:], ()

    def _cut_row(self, row: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
        """Yield the parts of a row: as many cells as fit, under the first; a cell too long for that by sentences."""
        cells = row.split(JOINT)
        first = f"{cells[0]}{CONTINUED}" if column_of(cells[0]) and len(cells[0]) <= _LONGEST_CARRIED else ""
        begin = start = spent = 0
        for cell in cells:
            cost = self.counter.count(cell)
            if start > begin and spent + cost > self.size:
                yield begin, row[begin : start - len(JOINT)], (first,) if begin else ()
                begin, spent = start, 0
            if cost > self.size:
                column = column_of(cell)[:_LONGEST_CARRIED]
                for part, piece in self._split(self._text, cell):
                    yield start + part, piece, (column if part else "", first if start else "")
                begin, spent = start + len(cell) + len(JOINT), 0
            else:
                spent += cost
            start += len(cell) + len(JOINT)
        if begin < len(row):
            yield begin, row[begin:], (first,) if begin else ()


def _under_headings(
    text: str, above: str, pieces: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Add to each piece of a Markdown text the headings over it, and the head of the table that it begins inside."""
    fences = [match.span() for match in _FENCED.finditer(text)]
    headings = [one for one in _HEADING.finditer(text) if not _within(fences, one.start())]
    tables = (table for table in drawn_tables(text) if len(table[2]) <= _LONGEST_CARRIED)
    no_table = len(text), len(text), ""
    table = next(tables, no_table)
    path: list[tuple[int, str]] = []
    position = 0
    for start, piece in pieces:
        while position < len(headings) and headings[position].start() <= start:
            level = len(headings[position][1])
            path = [*(entry for entry in path if entry[0] < level), (level, _title(headings[position][2]))]
            position += 1
        while table[1] <= start < no_table[0]:
            table = next(tables, no_table)
        names = tuple(name for _, name in path) or (above,)
        yield start, piece, (*names, table[2] if table[0] <= start else "")


def _within(spans: Sequence[tuple[int, int]], place: int) -> bool:
    at = bisect_right(spans, (place, place)) - 1
    return any(begin <= place < end for begin, end in spans[max(0, at) : at + 2])


def check_cut(size: int, overlap: int) -> None:
    """Check how documents are to be cut.

    Raises:
        InvalidInput: Passages would share more than half of what they hold, so that a document is embedded many times.
    """
    if size < 1 or not 0 <= overlap <= size // 2:
        raise InvalidInput("chunk_overlap must be at least 0 and at most half of chunk_size.")


def _title(text: str) -> str:
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1].rstrip()}\u2026"


def slices(text: str) -> Iterator[tuple[int, str]]:
    """Cut a long text at its best boundary near every `_SLICE_CHARS`, with the offset of each part.

    The splitter weighs all of what is left at every step, so that its cost grows with the square of a text
    that has no boundaries. Parts of bounded length keep it linear, whatever the text.
    """
    begin = 0
    while len(text) - begin > _SLICE_CHARS:
        low, high = begin + _SLICE_CHARS // 2, begin + _SLICE_CHARS
        ends = (text.rfind(mark, low, high) + len(mark) for mark in _BOUNDARIES if text.rfind(mark, low, high) >= 0)
        end = next(ends, high)
        yield begin, text[begin:end]
        begin = end
    yield begin, text[begin:]
