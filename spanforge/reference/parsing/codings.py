"""The codings that streams of a PDF may be wrapped in (ISO 32000-1, 7.4), undone without trust in what they hold.

Damaged data gives what came before the damage, as it does in readers of PDF. Each tells how much it took as well.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Piece: TypeAlias = "bytes | bytearray | memoryview"

PIECE: Final = 1 << 14
_DEFLATE: Final = 8
_ZLIB_CHECK: Final = 31
_ASCII85: Final = re.compile(rb"[\s!-uz]*")
_SPACE: Final = b" \t\n\r\f\v\0"
_TO_THE_END: Final = re.compile(rb"[^>]*")
_NO_HEX: Final = bytes(set(range(256)) - set(b"0123456789abcdefABCDEF"))
_CLEAR: Final = 256
_END: Final = 257
_TABLE: Final = 4_096
_LITERALS: Final = [*(bytes([byte]) for byte in range(256)), b"", b""]
_RUN_END: Final = 128


def is_zlib(head: Piece) -> bool:
    """Tell whether these two bytes begin deflated data (RFC 1950, 2.2)."""
    return len(head) > 1 and head[0] & 15 == _DEFLATE and int.from_bytes(head[:2], "big") % _ZLIB_CHECK == 0


def inflated(pieces: Iterable[Piece], limit: int, *, wbits: int) -> Iterator[tuple[bytes, int]]:
    """Unfold deflated data to its end, or to the piece that goes beyond a limit.

    Yields:
        A piece, and how many bytes it took: data that takes without giving costs time as well.

    Raises:
        zlib.error: The data is damaged.
    """
    unpack = zlib.decompressobj(wbits)
    size = 0
    for piece in pieces:
        rest = piece
        while len(rest):
            part = unpack.decompress(rest, PIECE)
            left = unpack.unconsumed_tail
            size += len(part)
            yield part, len(rest) - len(left)
            if size > limit or unpack.eof:
                return
            rest = left


def ascii85(data: Piece) -> tuple[bytes, int]:
    """Undo ASCII85, up to the first character that has no part in it."""
    match = _ASCII85.match(data)
    text = b"" if match is None else match[0]
    digits = text.translate(None, _SPACE).replace(b"z", b"!!!!!")
    padding = -len(digits) % 5
    groups = np.frombuffer(digits + b"u" * padding, dtype=np.uint8).reshape(-1, 5).astype(np.uint64) - np.uint64(33)
    values = groups @ np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.uint64)
    decoded = (values & np.uint64(0xFFFF_FFFF)).astype(">u4").tobytes()
    return decoded[: len(decoded) - padding], len(text)


def ascii_hex(data: Piece) -> tuple[bytes, int]:
    """Undo hexadecimal digits, up to a `>`; what is no digit is passed over."""
    match = _TO_THE_END.match(data)
    text = b"" if match is None else match[0]
    digits = text.translate(None, _NO_HEX)
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii")), len(text)


def run_length(data: Piece, limit: int) -> tuple[bytes, int]:
    """Undo run lengths, up to the run that goes beyond a limit."""
    out = bytearray()
    at = 0
    while at < len(data) and data[at] != _RUN_END and len(out) <= limit:
        length = data[at]
        if length < _RUN_END:
            out += data[at + 1 : at + 2 + length]
            at += 2 + length
        else:
            out += bytes(data[at + 1 : at + 2]) * (257 - length)
            at += 2
    return bytes(out), at


def lzw(data: Piece, limit: int, *, early: int) -> tuple[bytes, int]:
    """Undo LZW, up to the code that goes beyond a limit.

    Args:
        data: What was coded.
        limit: Bytes it may give.
        early: 1 where codes get longer one code early, which is the custom; else 0.
    """
    out = bytearray()
    table = list(_LITERALS)
    previous = b""
    width, bits, held, took = 9, 0, 0, 0
    for took, byte in enumerate(data, 1):  # noqa: B007  told behind the loop
        bits, held = bits << 8 | byte, held + 8
        if held < width:
            continue
        held -= width
        code, bits = bits >> held, bits & ((1 << held) - 1)
        if code == _CLEAR:
            del table[_END + 1 :]
            previous, width = b"", 9
            continue
        entry = table[code] if code < len(table) else previous + previous[:1]
        # None: the end, or a code that has no meaning yet.
        if not entry or code > len(table) or len(out) > limit:
            break
        out += entry
        if previous and len(table) < _TABLE:
            table.append(previous + entry[:1])
        previous = entry
        width = min(12, max(9, (len(table) + early).bit_length()))
    return bytes(out), took
