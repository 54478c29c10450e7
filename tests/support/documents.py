"""Files of every format, made here: real ones for parsers to read, and broken ones for them to refuse."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import docx

from spanforge.reference.parsing.registry import read

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


def lines_of(content: bytes | str, name: str) -> list[str]:
    """The lines that are read from a file."""
    parsed = read(content.encode() if isinstance(content, str) else content, name)
    return [line for section in parsed.sections for line in section.text.splitlines() if line]


def packed(parts: dict[str, str]) -> bytes:
    """An archive of these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


Placed = tuple[float, float, str]
FONT = "/Resources << /Font << /F1 3 0 R >> >>"


def placed(*pages: Sequence[Placed], drawn: str = "") -> bytes:
    """A PDF whose texts stand at their places, from the lower left, over what is drawn on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids: list[int] = []
    for page in pages:
        stream = drawn + "".join(f"BT /F1 10 Tf {x} {y} Td ({text}) Tj ET\n" for x, y, text in page)
        kids.append(len(objects) + 1)
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {len(objects) + 2} 0 R {FONT} >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] /Count {len(kids)} >>"
    body = "".join(f"{number} 0 obj\n{one}\nendobj\n" for number, one in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer << /Root 1 0 R /Size {len(objects) + 1} >>\n%%EOF".encode("latin-1")


def word_with(body: str, numbering: str = "", relation: str = "", parts: dict[str, str] | None = None) -> bytes:
    """A Word document with a body, lists, a relation and parts of its own."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word(["x"]))) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "word/document.xml":
                start, end = content.index(b"<w:body>") + len(b"<w:body>"), content.index(b"</w:body>")
                content = content[:start] + body.encode() + content[end:]
            if relation and entry.filename == "word/_rels/document.xml.rels":
                content = content.replace(b"</Relationships>", f"{relation}</Relationships>".encode())
            if entry.filename == "word/numbering.xml":
                content = content.replace(b"</w:numbering>", f"{numbering}</w:numbering>".encode())
            target.writestr(entry, content)
        for name, part in (parts or {}).items():
            target.writestr(name, part)
    return out.getvalue()


def opendocument(body: str, styles: str = "", **parts: str) -> bytes:
    """An OpenDocument file with a body, styles, and parts of its own."""
    names = (
        'xmlns:office="o" xmlns:text="t" xmlns:draw="d" xmlns:style="s" xmlns:svg="v" xmlns:table="b" xmlns:xlink="l"'
    )
    return packed({
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": f"<office:document {names}><office:body>{body}</office:body></office:document>",
        "styles.xml": f"<office:styles {names}>{styles}</office:styles>",
        **{f"{name}/content.xml": f"<office:part {names}>{part}</office:part>" for name, part in parts.items()},
    })  # fmt: skip


def notes(parent: Path) -> Path:
    """A folder with a note, and another one in a folder of its own."""
    folder = parent / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "gate.md").write_text("The gate closes at 20:45.", encoding="utf-8")
    (folder / "deep" / "lift.md").write_text("The lift holds 630 kg.", encoding="utf-8")
    return folder
