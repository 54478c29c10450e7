"""Small files that unfold to very much, and large ones that are hard to read, made here."""

from __future__ import annotations

import io
import zipfile
import zlib
from random import Random

from support.documents import word

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


def _pdf(stream: bytes, said: str) -> bytes:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>",
        f"<< /Length {len(stream)} {said} >>\nstream\n".encode() + stream + b"\nendstream",
    ]
    out = b"%PDF-1.5\n"
    for number, body in enumerate(objects, 1):
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    return out + b"trailer << /Size 5 /Root 1 0 R >>\n%%EOF"
