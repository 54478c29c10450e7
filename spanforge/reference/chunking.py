"""Cutting parsed documents into passages: by structure, within a token budget, with stable ids.

A passage never crosses a section (page, table). Markdown is cut at headings and blocks before sentences,
plain text at paragraphs before sentences, tables at rows. The same text cut with the same settings gives
the same passages.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spanforge.reference._extras import load
from spanforge.reference.failures import InvalidInput
from spanforge.reference.parsing.base import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spanforge.reference.parsing.base import ParsedDocument, Section
    from spanforge.reference.tokens import TokenCounter

CHUNKER_VERSION = "1"
"""Part of every fingerprint: a change in how text is cut makes documents be cut anew."""
_SLICE_CHARS = 16_384
_BOUNDARIES = ("\n\n", "\n", ". ", " ")
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$", re.MULTILINE)


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
        if not 0 <= overlap < size:
            raise InvalidInput("chunk_overlap must be at least 0 and less than chunk_size.")
        self.counter = counter
        self.signature = f"{CHUNKER_VERSION}:{counter.name}:{size}:{overlap}"
        splitters = load("semantic_text_splitter", "reference")
        text = splitters.TextSplitter.from_callback(counter.count, size, overlap)
        markdown = splitters.MarkdownSplitter.from_callback(counter.count, size, overlap)
        self._splitters = {"text": text, "table": text, "markdown": markdown}

    def cut(self, document: ParsedDocument, *, scope: str) -> list[Chunk]:
        """Return the passages of a document in order.

        Args:
            document: What a parser returned.
            scope: Organisation, data source and document, from which ids are made: equal passages of two
                documents have two ids.
        """
        seen: Counter[str] = Counter()
        chunks: list[Chunk] = []
        offset = 0
        for section in document.sections:
            for start, text, heading in self._cut_section(section, document.title):
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
        headings = list(_HEADING.finditer(section.text)) if section.kind == "markdown" else []
        path: list[tuple[int, str]] = []
        position = 0
        splitter = self._splitters[section.kind]
        pieces = (
            (begin + start, text)
            for begin, part in slices(section.text)
            for start, text in splitter.chunk_indices(part)
        )
        for start, text in pieces:
            while position < len(headings) and headings[position].start() <= start:
                level = len(headings[position][1])
                path = [*(entry for entry in path if entry[0] < level), (level, headings[position][2])]
                position += 1
            if any(c.isalnum() for c in text):
                yield start, text, " > ".join(name for _, name in path) or section.heading or title


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
