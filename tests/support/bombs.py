"""Small files that unfold to very much, and large ones that are hard to read, made here."""

from __future__ import annotations

import base64
import io
import zipfile
import zlib
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from support.documents import word

if TYPE_CHECKING:
    from collections.abc import Callable

_MIB = 1 << 20
_BIG = 300
_PART = "word/document.xml"


def big_docx() -> bytes:
    """A .docx whose document part unfolds to 300 MiB, as it says."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word(["x"]))) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for entry in source.infolist():
            if entry.filename != _PART:
                target.writestr(entry, source.read(entry.filename))
        with target.open(_PART, "w") as part:
            for _ in range(_BIG):
                part.write(b" " * _MIB)
    return out.getvalue()


def lying_docx() -> bytes:
    """The same, but its directory says 1,000 bytes."""
    return big_docx().replace((_BIG * _MIB).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))


def padded_docx() -> bytes:
    """A .docx with 40 MiB of markup that is honest of it, and with enough noise to be no suspicious ratio."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word(["x"]))) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for entry in source.infolist():
            content = source.read(entry.filename)
            if entry.filename == _PART:
                content = content.replace(b"<w:p>", b"<w:p/>" * (40 * _MIB // 6) + b"<w:p>", 1)
            target.writestr(entry.filename, content)
        target.writestr("word/media/noise.bin", Random(1).randbytes(2 * _MIB))  # noqa: S311  noise, no secret
    return out.getvalue()


def deep_html() -> bytes:
    """A page of 300,000 elements in one another, which parsers would be busy with for minutes."""
    return b"<!doctype html><html><body>" + b"<div>" * 300_000 + b"x"


def huge_cell() -> bytes:
    """A table with one cell of 50 MiB."""
    return b'place,hour\n"' + b"x" * (50 * _MIB) + b'",6\n'


def pdf_stream_bomb(mebibytes: int = _BIG) -> bytes:
    """A PDF whose page is one stream, folded twice, that unfolds to blanks without end."""
    return _pdf(_folded(mebibytes), "/Filter [/FlateDecode /FlateDecode]")


def pdf_object_bomb(mebibytes: int = _BIG) -> bytes:
    """A PDF whose objects stand in an object stream of that kind."""
    stream = _folded(mebibytes)
    head = b"%PDF-1.5\n"
    body = b"1 0 obj\n<< /Type /ObjStm /N 2 /First 12 /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n" % (
        len(stream)
    )
    rows = b"\0\0\0\0\xff" + b"\1" + len(head).to_bytes(3, "big") + b"\0"
    start = len(head) + len(body) + len(stream) + len(b"\nendstream\nendobj\n")
    rows += b"\2\0\0\1\0" + b"\2\0\0\1\1" + b"\1" + start.to_bytes(3, "big") + b"\0"
    table = b"4 0 obj\n<< /Type /XRef /Size 5 /W [1 3 1] /Root 2 0 R /Length %d >>\nstream\n" % len(rows)
    tail = b"\nendstream\nendobj\nstartxref\n%d\n%%%%EOF" % start
    return head + body + stream + b"\nendstream\nendobj\n" + table + rows + tail


def _folded(mebibytes: int) -> bytes:
    packer = zlib.compressobj(1)
    once = b"".join(packer.compress(b" " * _MIB) for _ in range(mebibytes)) + packer.flush()
    return zlib.compress(once, 9)


def as_ascii85(data: bytes) -> bytes:
    return base64.a85encode(data) + b"~>"


def as_hex(data: bytes) -> bytes:
    return data.hex(" ").encode() + b">"


def as_runs(data: bytes) -> bytes:
    """Code by run lengths."""
    out = bytearray()
    at = 0
    while at < len(data):
        run = next(
            (n for n in range(1, min(128, len(data) - at)) if data[at + n] != data[at]), min(128, len(data) - at)
        )
        if run > 1:
            out += bytes([257 - run, data[at]])
        else:
            out += bytes([0, data[at]])
        at += run
    return bytes(out) + b"\x80"


def as_lzw(data: bytes, *, early: int = 1) -> bytes:
    """Code by LZW, without a code to clear the table."""
    table: dict[tuple[int, int], int] = {}
    codes: list[int] = []
    prefix = -1
    for byte in data:
        if prefix < 0:
            prefix = byte
        elif (prefix, byte) in table:
            prefix = table[prefix, byte]
        else:
            codes.append(prefix)
            if len(table) + 258 < 4_096:
                table[prefix, byte] = len(table) + 258
            prefix = byte
    codes += [prefix, 257] if prefix >= 0 else [257]
    bits = "".join(
        # Whoever reads knows an entry one code later than it was made.
        f"{code:0{min(12, max(9, (258 + max(0, number - 1) + early).bit_length()))}b}"
        for number, code in enumerate(codes)
    )
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


@dataclass(frozen=True, slots=True)
class WrappedPdf:
    """A PDF whose page unfolds to blanks.

    Attributes:
        wrap: Makes the stream from what it is to unfold to.
        said: What its dictionary says of it.
        keyword: How it begins.
    """

    name: str
    wrap: Callable[[bytes], bytes]
    said: str
    keyword: str = "stream\n"

    def make(self, kibibytes: int) -> bytes:
        """Return the file, given how much its page unfolds to."""
        return _pdf(self.wrap(b" " * (kibibytes << 10)), self.said, self.keyword)


def _picture(coded: bytes, said: str) -> bytes:
    return f"BI /W 1024 /H 1024 /BPC 8 /CS /G /F {said} ID ".encode() + coded + b" EI"


WRAPPED_PDFS = [
    WrappedPdf("once", zlib.compress, "/Filter /FlateDecode"),
    WrappedPdf("behind its line", zlib.compress, "/Filter /FlateDecode", "stream  more\n"),
    WrappedPdf("ascii85", lambda b: as_ascii85(zlib.compress(b)), "/Filter [/ASCII85Decode /FlateDecode]"),
    WrappedPdf("hex", lambda b: as_hex(zlib.compress(b)), "/Filter [/ASCIIHexDecode /FlateDecode]"),
    WrappedPdf("short names", lambda b: as_ascii85(as_hex(zlib.compress(b))), "/Filter [/A85 /AHx /Fl]"),
    WrappedPdf("escaped name", lambda b: as_ascii85(zlib.compress(b)), "/F#69lter [/ASCII#385Decode /FlateDecode]"),
    WrappedPdf("lzw", as_lzw, "/Filter /LZWDecode"),
    WrappedPdf("late lzw", lambda b: as_lzw(b, early=0), "/Filter /LZWDecode /DecodeParms << /EarlyChange 0 >>"),
    WrappedPdf("lzw in zip", lambda b: zlib.compress(as_lzw(b)), "/Filter [/FlateDecode /LZWDecode]"),
    WrappedPdf("runs", as_runs, "/Filter /RunLengthDecode"),
    WrappedPdf("zip in runs", lambda b: as_runs(zlib.compress(b)), "/Filter [/RunLengthDecode /FlateDecode]"),
    WrappedPdf("five times", lambda b: b, "/Filter [/Fl /Fl /A85 /A85 /Fl]"),
    WrappedPdf("commented", lambda b: as_ascii85(as_lzw(b)), "/Filter [/A85 %\n /LZW]"),
    WrappedPdf("elsewhere", lambda b: as_hex(as_lzw(b)), "/Filter [9 0 R /LZW] /Names /AHx"),
    WrappedPdf("picture", lambda b: _picture(zlib.compress(b), "/Fl"), ""),
    WrappedPdf("picture in zip", lambda b: zlib.compress(_picture(as_lzw(b), "[/LZW]")), "/Filter /FlateDecode"),
]
"""Every way to fold a stream that readers follow."""


def _pdf(stream: bytes, said: str, keyword: str = "stream\n") -> bytes:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>",
        f"<< /Length {len(stream)} {said} >>\n{keyword}".encode() + stream + b"\nendstream",
    ]
    out = b"%PDF-1.5\n"
    for number, body in enumerate(objects, 1):
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    return out + b"trailer << /Size 5 /Root 1 0 R >>\n%%EOF"
