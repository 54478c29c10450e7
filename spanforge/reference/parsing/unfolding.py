"""Documents that are small to keep and ruinous to read: what they would unfold to is measured, a piece at a time.

What a file says of its own size is not believed. Parsers unfold a stream whole before they look at it, so this happens
before any of them does.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.base import decode
from spanforge.reference.parsing.codings import PIECE, inflated
from spanforge.reference.parsing.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAG: Final = re.compile(r"<(/?)([a-z][a-z0-9]{0,20})", re.IGNORECASE)
_UNCLOSED: Final = frozenset((
    "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html", "img", "input", "li",
    "link", "meta", "option", "p", "param", "rp", "rt", "source", "tbody", "td", "tfoot", "th", "thead", "tr",
    "track", "wbr",
))  # fmt: skip
"""Elements that need no end, so that their number says nothing of how deep a page is."""
_MARKUP_STARTS: Final = frozenset({b"<", b"\xef", b"\xff", b"\xfe"})
"""First bytes of markup: an element, or the mark of an encoding."""
_MAX_ENTRIES: Final = 10_000
_MAX_RATIO: Final = 200
"""Ordinary Word documents unfold to about ten times their size; what goes far beyond is made to."""
DAMAGED_ARCHIVE: Final = (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, OSError, EOFError)
"""What the standard library raises over archives that are cut, encrypted or forged, each for other damage."""
_REFUSED: Final = "The document unfolds to far more than its size; it is refused."


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may unfold to, in bytes unless said otherwise.

    Attributes:
        archive: All parts of an archive.
        markup: Those parts of it that are markup: a long book; in memory it takes thirty times as much.
        stream: One stream of a PDF: more than a page scanned at 600 dpi in colour has.
        streams: What all streams of a PDF take and give.
        nesting: Elements of a page that may stand in one another; what parsers do with them takes the square of that in
            time.
    """

    archive: int = 256 << 20
    markup: int = 32 << 20
    stream: int = 128 << 20
    streams: int = 1 << 30
    nesting: int = 4_000

    @classmethod
    def within(cls, size: int) -> Limits:
        """Return limits in the proportions of the usual ones, for documents that may unfold to ``size`` bytes."""
        return cls(archive=size, markup=size // 8, stream=size // 2, streams=4 * size)


DEFAULT_LIMITS: Final = Limits()


def check_docx(content: bytes, limits: Limits = DEFAULT_LIMITS) -> None:
    """Check that a Word document is a whole archive that unfolds to what it says, and to no more than is allowed.

    Raises:
        ParseError: It is not.
    """
    damaged = False
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_said(archive.infolist(), len(content), limits)
            _check_archive(archive, limits)
    except DAMAGED_ARCHIVE:
        damaged = True
    if damaged:
        raise ParseError("The Word document is damaged, encrypted or not a .docx file.")


def check_pdf(content: bytes, limits: Limits = DEFAULT_LIMITS) -> None:
    """Check that no stream of a PDF, nor all of them, unfold without measure, however they are wrapped.

    Raises:
        ParseError: They do.
    """
    if Streams(content, one=limits.stream, together=limits.streams).unfold_too_far():
        raise ParseError(_REFUSED)


def check_html(content: bytes, limits: Limits = DEFAULT_LIMITS) -> None:
    """Check that the elements of a page do not stand in one another without measure.

    Raises:
        ParseError: They do, or the page is no text.
    """
    depth = 0
    for tag in _TAG.finditer(decode(content)):
        if tag[2].lower() in _UNCLOSED:
            continue
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > limits.nesting:
            raise ParseError(f"The page nests more than {limits.nesting} elements; flatten it.")


def _check_said(entries: list[zipfile.ZipInfo], size: int, limits: Limits) -> None:
    unfolded = sum(entry.file_size for entry in entries)
    if len(entries) > _MAX_ENTRIES or unfolded > min(limits.archive, max(1 << 20, size * _MAX_RATIO)):
        raise ParseError(_REFUSED)


def _check_archive(archive: zipfile.ZipFile, limits: Limits) -> None:
    """Check the parts of an archive by unfolding them, against what its directory says as well."""
    left, markup = limits.archive, limits.markup
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
            for part, _ in inflated(_packed(archive, entry), limit, wbits=-15):
                size, head = size + len(part), head or part
            return size, head
        case _:
            return limit + 1, b""


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
    while left > 0 and (piece := file.read(min(left, PIECE))):
        left -= len(piece)
        yield piece
