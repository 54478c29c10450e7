"""What a person reads in a file is in its text: kinds of files, each with something that real ones have."""

# ruff: noqa: E501, RUF001  markup in one piece, and letters of other alphabets
from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest
from support.documents import pdf

from spanforge.reference.parsing.base import SEPARATOR, ParsedDocument
from spanforge.reference.parsing.coverage import coverage
from spanforge.reference.parsing.registry import read

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"


def whole(parsed: ParsedDocument) -> str:
    return SEPARATOR.join(section.text for section in parsed.sections)


def archive(**parts: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name, content in parts.items():
            target.writestr(name.replace("__", "/") + ".xml", content)
    return out.getvalue()


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def docx(body: str, *, namespace: str = W, **parts: str) -> bytes:
    return archive(word__document=f'<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>', **parts)


@pytest.mark.parametrize("namespace", [W, STRICT])
@pytest.mark.parametrize(
    "inner",
    [
        run("The lift holds 630 kg."),
        f"{run('The lift holds ')}<w:sdt><w:sdtContent>{run('630 kg.')}</w:sdtContent></w:sdt>",
        f"{run('The lift ')}<w:ins>{run('holds ')}</w:ins><w:smartTag>{run('630 kg.')}</w:smartTag>",
        f"{run('The lift holds ')}<w:del><w:r><w:delText>9 t</w:delText></w:r></w:del>{run('630 kg.')}",
        f"{run('The lift holds ')}<w:fldSimple w:instr='X'>{run('630 kg.')}</w:fldSimple>",
        f"{run('The lift holds ')}<w:hyperlink>{run('630')}</w:hyperlink>{run(' kg.')}",
    ],
)
def test_word_reads_what_the_page_shows(inner: str, namespace: str) -> None:
    parsed = read(docx(f"<w:p>{inner}</w:p>", namespace=namespace), "a.docx")
    assert whole(parsed) == "The lift holds 630 kg."
    assert parsed.coverage == 1.0


def test_word_reads_notes_headers_boxes_and_tables_in_tables() -> None:
    cell = "<w:tc><w:p>{}</w:p></w:tc>".format
    inner = f"<w:tbl><w:tr>{cell(run('Pump'))}{cell(run('Flow'))}</w:tr><w:tr>{cell(run('P-7'))}{cell(run('9 l'))}</w:tr></w:tbl>"
    body = (
        f"<w:p><w:r><w:pict><w:txbxContent><w:p>{run('In a box.')}</w:p></w:txbxContent></w:pict></w:r></w:p>"
        f"<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='400000'/></w:tcPr>{inner}<w:p/></w:tc></w:tr></w:tbl>"
    )
    notes = f"<w:footnotes xmlns:w='{W}'><w:footnote><w:p>{run('In a note.')}</w:p></w:footnote></w:footnotes>"
    header = f"<w:hdr xmlns:w='{W}'><w:p>{run('In the header.')}</w:p></w:hdr>"
    text = whole(read(docx(body, word__footnotes=notes, word__header1=header), "a.docx"))
    for seen in ("In a box.", "In a note.", "In the header.", "Pump: P-7; Flow: 9 l"):
        assert seen in text


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ("<ul><li>One<ul><li>Two</ul></ul>", "  - Two"),
        ("<ol start=4><li>Fill.<li>Wait.</ol>", "5. Wait."),
        ("<dl><dt>Opens<dd>Nine.</dl>", "- Opens: Nine."),
        ("<details><summary>Why?</summary>Because.</details>", "Because."),
        ("<form><label>Name <input value='Ann'></label></form>", "Name Ann"),
        ("<nav><p>Turn left. Then go up.</p></nav>", "Turn left. Then go up."),
        ("<table><tr><th colspan=2>Price<tr><th>EUR<th>USD<tr><td>1<td>2</table>", "Price EUR: 1; Price USD: 2"),
        ("<table><tr><td rowspan=2>Hall<td>6:00<tr><td>7:00</table>", "Hall; 7:00"),
        ("<a href=x><div>A card.</div></a>", "A card."),
        ("H<sub>2</sub>O<wbr>ver", "H2Over"),
    ],
)
def test_a_page_keeps_its_structure(page: str, line: str) -> None:
    assert line in whole(read(f"<body>{page}</body>".encode(), "a.html")).split("\n")


@pytest.mark.parametrize(
    "hidden",
    ["<input type=hidden value=secret>", "<p hidden>secret</p>", "<p style='display: none'>secret</p>",
     "<nav><a>secret</a></nav>", "<script>secret</script>", "<template>secret</template>"],
)  # fmt: skip
def test_what_nobody_sees_of_a_page_is_not_read(hidden: str) -> None:
    assert whole(read(f"<body>Seen.{hidden}</body>".encode(), "a.html")) == "Seen."


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1251", "Склад открыт с шести утра до десяти вечера, кроме воскресенья."),
        ("cp932", "図書館は午前九時に開きます。月曜日は休館です。司書は三階の事務室にいます。"),
        ("gb18030", "图书馆上午九点开门，星期一闭馆。管理员在三楼的办公室。请把书还到地下室。"),
        ("cp1253", "Η βιβλιοθήκη ανοίγει στις εννέα το πρωί και κλείνει στις οκτώ το βράδυ."),
        ("utf-16-le", "The gate closes at 20:45."),
    ],
)
def test_old_encodings_are_told_from_the_text(encoding: str, text: str) -> None:
    assert whole(read(text.encode(encoding), "a.txt")) == text


def test_a_stray_byte_spoils_nothing_else() -> None:
    content = "Die Küche öffnet um sieben; das Büro später. ".encode() * 3 + "Größe".encode("latin-1")
    assert "Küche" in whole(read(content, "a.txt"))
    assert whole(read(content, "a.txt")).endswith("Größe")


def test_words_are_in_one_form() -> None:
    assert whole(read("cafe\u0301 ware\u00adhouse \ufb01re".encode(), "a.txt")) == "caf\u00e9 warehouse fire"


@pytest.mark.parametrize(
    "table",
    ["a;b\n1,5;2\n", "a\tb\n1,5\t2\n", "a|b\n1,5|2\n", "sep=;\na;b\n1,5;2\n", "Report\n\na;b\n1,5;2\n"],
)
def test_tables_of_every_dialect(table: str) -> None:
    assert whole(read(table.encode(), "a.csv")).split("\n")[-1] == "a: 1,5; b: 2"


def test_two_rows_of_heads_are_one() -> None:
    assert (
        whole(read(b"Price,,Stock\nEUR,USD,pieces\n1,2,3\n", "a.csv")) == "Price EUR: 1; Price USD: 2; Stock pieces: 3"
    )


def test_messages_have_a_head_a_date_and_attachments() -> None:
    message = EmailMessage()
    message["Subject"], message["Date"] = "Gate", "Mon, 02 Mar 2026 10:00:00 +0000"
    message.set_content("The gate closes at 20:45.")
    message.add_attachment(b"Part,Price\nM8,0.24\n", maintype="text", subtype="csv", filename="p.csv")
    message.add_attachment(b"\0\1", maintype="application", subtype="zip", filename="x.zip")
    parsed = read(bytes(message), "a.eml")
    assert "Subject: Gate" in whole(parsed)
    assert "Part: M8; Price: 0.24" in whole(parsed)
    assert parsed.date == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert parsed.warnings == ("Attachments that were not read: 1.",)


@pytest.mark.parametrize("address", ["Ann <a@", "a@b, c@", "crew: a@b;@"])
def test_a_message_from_an_impossible_address_is_read(address: str) -> None:
    assert address in whole(read(f"From: {address}\n\nThe gate closes.".encode(), "a.eml"))


def test_json_and_notebooks() -> None:
    value = {"site": "mill", "pumps": [{"name": "P-1", "flow": {"l": 9}}, {"name": "P-2"}]}
    assert "name: P-1; flow l: 9" in whole(read(json.dumps(value).encode(), "a.json"))
    cells = [{"cell_type": "markdown", "source": ["# T"]}, {"cell_type": "code", "source": "x = 1", "outputs": []}]
    assert whole(read(json.dumps({"cells": cells}).encode(), "a.ipynb")) == "# T\n\n```\nx = 1\n```"


def test_slides_texts_and_books() -> None:
    a = 'xmlns:p="p" xmlns:a="a"'
    slide = f"<p:sld {a}><p:sp><p:ph type='title'/><a:p><a:t>Pumps</a:t></a:p></p:sp><p:sp><a:p><a:t>Grease.</a:t></a:p></p:sp></p:sld>"
    shown = read(archive(ppt__slides__slide1=slide), "a.pptx")
    assert [(one.page, one.heading, one.text) for one in shown.sections] == [(1, "Pumps", "## Pumps\n\nGrease.")]
    o = 'xmlns:o="o" xmlns:t="t"'
    content = f"<o:body {o}><t:h t:outline-level='2'>Boiler</t:h><t:p>Vent<t:s/>it<t:note><t:p>Slowly.</t:p></t:note>.</t:p></o:body>"
    assert whole(read(archive(content=content), "a.odt")) == "## Boiler\n\nVent it.\n\nSlowly."


def test_a_fraction_on_a_slide_and_a_date_in_a_text_are_read() -> None:
    maths = "<a:p><m:oMath><m:f><m:num><m:t>1</m:t></m:num><m:den><m:t>2</m:t></m:den></m:f></m:oMath></a:p>"
    slide = f'<p:sld xmlns:p="p" xmlns:a="a" xmlns:m="m"><p:sp>{maths}</p:sp></p:sld>'
    assert whole(read(archive(ppt__slides__slide1=slide), "a.pptx")) == "1/2"
    note = "<o:annotation><d:creator>Ann</d:creator><t:p>Why?</t:p></o:annotation>"
    text = f"<t:p>Signed on <t:date>2 March</t:date>.{note}</t:p>"
    names = 'xmlns:o="o" xmlns:t="t" xmlns:d="http://purl.org/dc/elements/1.1/"'
    assert whole(read(archive(content=f"<o:body {names}>{text}</o:body>"), "a.odt")) == "Signed on 2 March.\n\nWhy?"


def test_the_letters_of_a_ligature_are_of_one_word() -> None:
    content = pdf(["Read the \x01le in the of\x01ce."]).replace(b"12 Tf 72 720 Td", b"12 Tf  160 Tz  ")
    content = content.replace(b"/Helvetica", b"/Helvetica /Encoding << /Differences [1 /fi] >>")
    assert whole(read(content, "a.pdf")) == "Read the file in the office."


def test_two_boxes_of_one_paragraph_are_read_once() -> None:
    box = "<w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>".format
    assert whole(read(docx(f"<w:p>{box(run('One.'))}{box(run('Two.'))}</w:p>"), "a.docx")) == "One.\n\nTwo."


def test_coverage_counts_the_words_of_the_file() -> None:
    assert coverage(["one two", "th", "ree"], "One two three") == 1.0
    assert coverage(["one two three four"], "one two four") == 0.75
    assert coverage([], "") == 1.0


def test_what_was_not_read_is_said_without_a_word_of_it() -> None:
    page = "<math><annotation>lost words here</annotation></math>"
    parsed = read(f"<body>Kept.<svg>{page}</svg></body>".encode(), "a.html")
    assert (parsed.coverage, parsed.warnings) == (1.0, ())
