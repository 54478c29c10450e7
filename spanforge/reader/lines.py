"""Lines out of bytes, in bounded memory, whatever the bytes hold."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from spanforge.exceptions import MissingExtraError

__all__ = ["SQLITE_MAGIC", "Line", "LineSplitter", "is_compressed", "lines_of"]

SQLITE_MAGIC: Final = b"SQLite format 3\0"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_BOM: Final = b"\xef\xbb\xbf"
_CHUNK: Final = 1 << 18
_ZSTD_CHUNK: Final = 1 << 9
"""Four bytes of zstd may stand for 128 kB, so that this much is at most 16 MB."""


class Line(NamedTuple):
    """One line without its end.

    Attributes:
        data: Its bytes.
        ended: False for a last line without a line end.
    """

    data: bytes
    ended: bool


class LineSplitter:
    """Cuts chunks into lines and holds at most one unfinished line.

    Args:
        limit: Longest line in bytes; longer ones are counted as `too_long` and skipped as they come.
        damaged: Where that is counted.
    """

    def __init__(self, limit: int, damaged: Counter[str]) -> None:
        self._limit = limit
        self._damaged = damaged
        self._pieces: list[bytes] = []
        self._length = 0

    @property
    def pending(self) -> bytes:
        """What came after the last line end, as far as it is kept."""
        return b"".join(self._pieces)

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Take the next bytes and give the lines that end in them."""
        first, *others = chunk.split(b"\n")
        self._add(first)
        if not others:
            return
        if (line := self._take(ended=True)) is not None:
            yield line
        *whole, last = others
        kept = [Line(piece, True) for piece in whole if len(piece) <= self._limit]
        if len(kept) < len(whole):
            self._damaged["too_long"] += len(whole) - len(kept)
        yield from kept
        self._add(last)

    def end(self) -> Iterator[Line]:
        """Give what came after the last line end."""
        if self._length and (line := self._take(ended=False)) is not None:
            yield line

    def _add(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= self._limit:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _take(self, *, ended: bool) -> Line | None:
        pieces, too_long = self._pieces, self._length > self._limit
        line = Line(pieces[0] if len(pieces) == 1 else b"".join(pieces), ended)
        self._pieces, self._length = [], 0
        if too_long:
            self._damaged["too_long"] += 1
            return None
        return line


def is_compressed(head: bytes) -> bool:
    """Tell by its first bytes whether a file is compressed, and so cannot be read from its middle."""
    return head.startswith((_GZIP_MAGIC, _ZSTD_MAGIC))


def lines_of(stream: BinaryIO, head: bytes, limit: int, damaged: Counter[str]) -> Iterator[Line]:
    """Give the lines of a file, plain or compressed, told by its first bytes; every one that can be had.

    Args:
        stream: The file, at its start.
        head: Its first bytes.
        limit: Longest line in bytes.
        damaged: Counts `truncated` and `corrupt` compression, and lines that are `too_long`.
    """
    splitter = LineSplitter(limit, damaged)
    first = True
    for chunk in _chunks(stream, head, damaged):
        # A byte order mark, as editors on Windows leave it. No chunk is so short as to cut it in two.
        yield from splitter.feed(chunk.removeprefix(_BOM) if first else chunk)
        first = False
    yield from splitter.end()


def _chunks(stream: BinaryIO, head: bytes, damaged: Counter[str]) -> Iterator[bytes]:
    if head.startswith(_GZIP_MAGIC):
        return _gzip_chunks(stream, damaged)
    if head.startswith(_ZSTD_MAGIC):
        return _zstd_chunks(stream, damaged)
    return iter(lambda: stream.read(_CHUNK), b"")


def _gzip_chunks(stream: BinaryIO, damaged: Counter[str]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=stream) as file:
        try:
            while chunk := file.read1(_CHUNK):
                yield chunk
        except EOFError:
            damaged["truncated"] += 1
        except (zlib.error, gzip.BadGzipFile):
            damaged["corrupt"] += 1


if sys.version_info >= (3, 14):  # pragma: no cover  one branch for each Python

    def _zstd_chunks(stream: BinaryIO, damaged: Counter[str]) -> Iterator[bytes]:
        from compression import zstd  # noqa: PLC0415  not in every build of Python

        with zstd.ZstdFile(stream) as file:
            try:
                while chunk := file.read1(_CHUNK):
                    yield chunk
            except EOFError:
                damaged["truncated"] += 1
            except zstd.ZstdError:
                damaged["corrupt"] += 1

else:

    def _zstd_chunks(stream: BinaryIO, damaged: Counter[str]) -> Iterator[bytes]:
        try:
            import zstandard  # noqa: PLC0415  an extra
        except ImportError:
            raise MissingExtraError("reading .zst files", "zstd") from None
        # Frame by frame, because the library's own stream reader takes a cut frame for the end of the file.
        context = zstandard.ZstdDecompressor()
        data, frame = b"", None
        try:
            while data := data or stream.read(_ZSTD_CHUNK):
                frame = frame or context.decompressobj()
                if chunk := frame.decompress(data):
                    yield chunk
                data, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
        except zstandard.ZstdError:
            damaged["corrupt"] += 1
        else:
            damaged.update(["truncated"] if frame else [])
