"""Uploads that are small to send and ruinous to read: what they would unfold to is measured, a piece at a time.

What a file says of its own size is not believed. Parsers unfold a stream whole before they look at it, so this happens
before any of them does.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from typing import TYPE_CHECKING, Final, TypeAlias

from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.base import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Piece: TypeAlias = "bytes | memoryview"

MAX_ENTRY: Final = 256 << 20
"""Bytes that all parts of an archive may unfold to."""
MAX_MARKUP: Final = 32 << 20
"""Bytes that its markup may have: a long book; in memory it takes thirty times as much."""
MAX_STREAM: Final = 128 << 20
"""Bytes that one stream of a PDF may unfold to: more than a page scanned at 600 dpi in colour has."""
MAX_STREAMS: Final = 1 << 30
"""Bytes that all streams of a PDF may take and unfold to."""
MAX_NESTING: Final = 4_000
"""Elements of a page that may stand in one another; what parsers do with them takes the square of that in time."""
_PIECE: Final = 1 << 14
_FOLDS: Final = 4
"""How often a stream may be folded over at most; more often is done to hurt."""
_STREAM: Final = re.compile(rb"stream(?:\r\n|\n|\r)?")
_TAG: Final = re.compile(r"<(/?)([a-z][a-z0-9]{0,20})", re.IGNORECASE)
_UNCLOSED: Final = frozenset((
    "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html", "img", "input", "li",
    "link", "meta", "option", "p", "param", "rp", "rt", "source", "tbody", "td", "tfoot", "th", "thead", "tr",
    "track", "wbr",
))  # fmt: skip
"""Elements that need no end, so that their number says nothing of how deep a page is."""
_MARKUP_STARTS: Final = frozenset({b"<", b"\xef", b"\xff", b"\xfe"})
"""First bytes of markup: an element, or the mark of an encoding."""
_DEFLATE: Final = 8
_ZLIB_CHECK: Final = 31
_REFUSED: Final = "The document unfolds to far more than its size; it is refused."


def check_archive(archive: zipfile.ZipFile) -> None:
    """Check that the parts of an archive unfold to what its directory says, and to no more than this module allows.

    Raises:
        ParseError: They do not.
        zlib.error: A part is damaged.
    """
    left, markup = MAX_ENTRY, MAX_MARKUP
    for entry in archive.infolist():
        said = min(entry.file_size, left)
        size, head = _measured(archive, entry, said)
        left -= size
        # By what it holds: which parts are read as markup is said by a part of the archive, which may say anything.
        if head.lstrip()[:1] in _MARKUP_STARTS:
            markup -= size
        if size > said or left < 0 or markup < 0:
            raise ParseError(_REFUSED)


def _measured(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: int) -> tuple[int, bytes]:
    """Return the size of a part and how it begins; a part that goes beyond the limit is only told to."""
    match entry.compress_type:
        case zipfile.ZIP_STORED:
            return entry.compress_size, next(_packed(archive, entry), b"")
        case zipfile.ZIP_DEFLATED:
            size, head = 0, b""
            for part, _ in _inflated(_packed(archive, entry), limit, wbits=-15):
                size, head = size + len(part), head or part
            return size, head
        case _:
            return limit + 1, b""


def check_pdf(content: bytes) -> None:
    """Check that no deflated stream of a PDF, nor all of them, unfold without measure, however often folded over.

    Streams are looked for by the word that begins them, not by the tables of the file, which may lie. Those that are
    wrapped in another coding first are not seen.

    Raises:
        ParseError: They do.
    """
    spent = 0
    view = memoryview(content)
    for found in _STREAM.finditer(content):
        data = view[found.end() :]
        if not _is_zlib(data[:2]):
            continue
        spent += _chain(data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
        if spent > MAX_STREAMS:
            raise ParseError(_REFUSED)


def check_html(content: bytes) -> None:
    """Check that the elements of a page do not stand in one another beyond `MAX_NESTING`.

    Raises:
        ParseError: They do, or the page is no text.
    """
    depth = 0
    for tag in _TAG.finditer(decode(content)):
        if tag[2].lower() in _UNCLOSED:
            continue
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > MAX_NESTING:
            raise ParseError(f"The page nests more than {MAX_NESTING} elements; flatten it.")


def _packed(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield an entry as it stands in the archive, in pieces."""
    file = archive.fp
    if file is None:
        return
    file.seek(entry.header_offset)
    head = file.read(30)
    names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
    file.seek(entry.header_offset + 30 + names)
    left = entry.compress_size
    while left > 0 and (piece := file.read(min(left, _PIECE))):
        left -= len(piece)
        yield piece


def _inflated(pieces: Iterable[Piece], limit: int, *, wbits: int) -> Iterator[tuple[bytes, int]]:
    """Unfold deflated data to its end, or to the piece that goes beyond a limit.

    Yields:
        A piece, and how many bytes it took: data that takes without giving costs time as well.
    """
    unpack = zlib.decompressobj(wbits)
    size = 0
    for piece in pieces:
        rest = piece
        while len(rest):
            part = unpack.decompress(rest, _PIECE)
            left = unpack.unconsumed_tail
            size += len(part)
            yield part, len(rest) - len(left)
            if size > limit or unpack.eof:
                return
            rest = left


def _chain(level: Iterable[Piece]) -> int:
    """Return the bytes that a deflated stream takes and gives on all levels.

    Raises:
        ParseError: One level unfolds to more than `MAX_STREAM`, or there are too many.
    """
    spent = 0
    for _ in range(_FOLDS):
        size = 0
        below: list[bytes] = []
        try:
            for part, took in _inflated(level, MAX_STREAM, wbits=15):
                if below or (not size and _is_zlib(part[:2])):
                    below.append(part)
                size += len(part)
                spent += len(part) + took
                if size > MAX_STREAM:
                    raise ParseError(_REFUSED)
        except zlib.error:
            # Broken off: it unfolds to what came before, and the piece that is broken cost time as well.
            spent += _PIECE
        if not below:
            return spent
        level = below
    raise ParseError(_REFUSED)


def _is_zlib(head: Piece) -> bool:
    """Tell whether these two bytes begin deflated data (RFC 1950, 2.2)."""
    return len(head) > 1 and head[0] & 15 == _DEFLATE and int.from_bytes(head, "big") % _ZLIB_CHECK == 0
