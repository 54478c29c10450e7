"""Files of every format, made here: real ones for parsers to read, and broken ones for them to refuse."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

import docx

WORDS = "The sluice opens at half past six."


def pdf(pages: Sequence[str], *, encrypted: bool = False) -> bytes:
    """A PDF with the lines of text of each page; an empty string gives a page without text, as a scan has."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids: list[str] = []
    for text in pages:
        safe = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").replace("\n", ") Tj 0 -24 Td (")
        stream = f"BT /F1 12 Tf 72 720 Td ({safe}) Tj ET" if text else "0 0 100 100 re f"
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {number + 1} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    trailer = "/Root 1 0 R"
    if encrypted:
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'11' * 32}> /U <{'22' * 32}> >>")
        trailer += f" /Encrypt {len(objects)} 0 R /ID [<00> <00>]"
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    offsets: list[int] = []
    for number, body in enumerate(objects, start=1):
        offsets.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1"))
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write(b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets))
    out.write(f"trailer << /Size {len(objects) + 1} {trailer} >>\nstartxref\n{start}\n%%EOF".encode())
    return out.getvalue()


def word(paragraphs: Sequence[str], table: Sequence[Sequence[str]] = (), *, heading: str = "") -> bytes:
    """A Word document with a heading, paragraphs, a table, and a paragraph behind it."""
    document = docx.Document()
    if heading:
        document.add_heading(heading, level=1)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if table:
        made = document.add_table(rows=0, cols=len(table[0]))
        for row in table:
            cells = made.add_row().cells
            for cell, text in zip(cells, row, strict=True):
                cell.text = text
        document.add_paragraph("After the table.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def zip_bomb() -> bytes:
    """A .docx whose document part unfolds from a few kilobytes to 600 megabytes."""
    whole = io.BytesIO(word(["x"]))
    out = io.BytesIO()
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for entry in source.infolist():
            if entry.filename == "word/document.xml":
                with target.open(entry.filename, "w") as part:
                    for _ in range(600):
                        part.write(b" " * 2**20)
            else:
                target.writestr(entry, source.read(entry.filename))
    return out.getvalue()


HTML = f"""<!doctype html><html><head><title>Sluice hours</title><style>p {{ color: red }}</style>
<script>document.write("injected by script")</script></head><body><nav>Home | About | Contact</nav>
<article><h1>Opening hours</h1><p>{WORDS} It closes at nine in the evening, after the last barge has passed and
the keeper has written the log.</p><p hidden>hidden words</p></article>
<footer>All rights reserved</footer></body></html>"""
