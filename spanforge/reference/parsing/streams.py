"""What the streams of a PDF unfold to.

Where streams are, and how they are wrapped, is told by what stands there, not by the tables and dictionaries of the
file, which may lie or stand elsewhere: each place where one might begin is unfolded by whatever has a head of its own,
and by every row of filters that is named anywhere in the file.
"""

from __future__ import annotations

import re
import zlib
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

from spanforge.reference.parsing.codings import PIECE, ascii85, ascii_hex, inflated, is_zlib, lzw, run_length

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spanforge.reference.parsing.codings import Piece

Row: TypeAlias = tuple[str, ...]
"""Names of codings, the outermost first."""

MAX_STEPS: Final = 32 << 20
"""Bytes that may be unfolded here and not by a library: a few seconds."""
_FOLDS: Final = 4
"""How often a stream may be folded over at most; more often is done to hurt."""
_STREAM: Final = re.compile(rb"stream(\r\n|\n|\r)?")
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_INLINE: Final = re.compile(rb"ID[\s\0]")
"""What stands before the data of a picture in the midst of a page's content."""
_ESCAPED: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
_CODINGS: Final = {
    b"FlateDecode": "zip", b"Fl": "zip", b"ASCII85Decode": "ascii85", b"A85": "ascii85", b"ASCIIHexDecode": "hex",
    b"AHx": "hex", b"LZWDecode": "lzw", b"LZW": "lzw", b"RunLengthDecode": "runs", b"RL": "runs",
}  # fmt: skip
_ANY: Final = b"|".join(_CODINGS)
_NAME: Final = re.compile(rb"/(%b)(?![A-Za-z0-9])" % _ANY)
_FILTER: Final = rb"/(?:Crypt|%b)(?![A-Za-z0-9])" % _ANY
_ROW: Final = re.compile(rb"%b(?:[\s\0]*%b)*" % (_FILTER, _FILTER))
_ODD: Final = re.compile(rb"/Filter[\s\0]*(?:[0-9%]|\[(?!(?:[\s\0]*/[A-Za-z0-9]+)*[\s\0]*\]))")
"""A row of filters that stands elsewhere, or is not of names alone: any row of those that are named may be meant."""


class _TooFar(Exception):  # noqa: N818 - no error: it ends the measuring from within
    """The file unfolds to more than is allowed."""


class Streams:
    """Measures the streams of one file.

    Args:
        content: The file.
        one: Bytes that a stream may unfold to.
        together: Bytes that all streams may take and give, on all levels.
    """

    def __init__(self, content: bytes, *, one: int, together: int) -> None:
        self._content = content
        self._one = one
        self._together = together
        self._spent = 0
        self._steps = 0
        self._rows: set[Row] = set()

    def unfold_too_far(self) -> bool:
        """Tell whether a stream, or all of them, unfold to more than is allowed."""
        try:
            self._look(self._content)
            known: set[Row] | None = None
            # A name may be in a stream, and then mean one that came before it.
            while known != self._rows:
                known = set(self._rows)
                self._spent = self._steps = 0
                view = memoryview(self._content)
                for start in self._starts():
                    self._measure(view[start:], frozenset(known), 1)
        except _TooFar:
            return True
        return False

    def _starts(self) -> Iterator[int]:
        """Yield where streams may begin: behind the keyword, and behind its line, as readers take either."""
        line_end = 0
        for found in _STREAM.finditer(self._content):
            yield found.end()
            if found[1] is None and line_end < found.end():
                line = _LINE_END.search(self._content, found.end())
                line_end = len(self._content) if line is None else line.end()
                yield line_end
        for found in _INLINE.finditer(self._content):
            yield found.end()

    def _measure(self, data: Piece, rows: frozenset[Row], fold: int) -> None:
        """Unfold what begins here by each of the rows, and by what its head says."""
        codings = {row[0] for row in rows}
        if is_zlib(data[:2]):
            codings.add("zip")
        for coding in sorted(codings):
            out = self._undone(coding, data)
            if len(out) > self._one or (fold == _FOLDS and coding == "zip" and is_zlib(out[:2])):
                raise _TooFar
            if not out or fold == _FOLDS:
                continue
            self._look(out)
            self._measure(out, frozenset(row[1:] for row in rows if row[0] == coding and len(row) > 1), fold + 1)
            view = memoryview(out)
            for found in _INLINE.finditer(out):
                self._measure(view[found.end() :], frozenset(self._rows), fold + 1)

    def _undone(self, coding: str, data: Piece) -> bytes:
        match coding:
            case "zip":
                return self._inflated(data) if is_zlib(data[:2]) else b""
            case "ascii85":
                out, took = ascii85(data)
            case "hex":
                out, took = ascii_hex(data)
            case "runs":
                out, took = run_length(data, self._one)
                self._step(took)
            case _:
                out, took = lzw(data, self._one, early=int(coding == "lzw"))
                self._step(took)
        self._spend(took + len(out))
        return out

    def _inflated(self, data: Piece) -> bytes:
        out: list[bytes] = []
        try:
            pieces = (data[at : at + PIECE] for at in range(0, len(data), PIECE))
            for part, took in inflated(pieces, self._one, wbits=15):
                out.append(part)
                self._spend(took + len(part))
        except zlib.error:
            # Broken off: it unfolds to what came before, and the piece that is broken cost time as well.
            self._spend(PIECE)
        return b"".join(out)

    def _look(self, content: bytes) -> None:
        """Note the rows of filters that are named."""
        if escapes := content.count(b"#"):
            self._step(escapes)
            content = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode("ascii")), content)
        rows = {tuple(_CODINGS[name] for name in _NAME.findall(found[0])) for found in _ROW.finditer(content)}
        if any(len(row) > _FOLDS for row in rows):
            raise _TooFar
        if b"/EarlyChange" in content:
            rows |= {tuple("late" if coding == "lzw" else coding for coding in row) for row in rows | self._rows}
        if _ODD.search(content):
            named = sorted({coding for row in rows | self._rows for coding in row})
            rows |= {row for length in range(1, _FOLDS + 1) for row in product(named, repeat=length)}
        self._rows |= rows - {()}

    def _spend(self, size: int) -> None:
        self._spent += size
        if self._spent > self._together:
            raise _TooFar

    def _step(self, size: int) -> None:
        self._steps += size
        if self._steps > MAX_STEPS:
            raise _TooFar
