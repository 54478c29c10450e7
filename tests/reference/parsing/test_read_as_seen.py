"""Documents say what a person reads in them: tables with odd heads, lines in their places, hidden things, notes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.documents import Placed, lines_of, opendocument, packed, placed, word_with

from spanforge.reference.parsing.base import ParsedDocument
from spanforge.reference.parsing.registry import read
from spanforge.reference.parsing.tree import Block, markdown, table

# --- heads of tables ---


def rows(*cells: str) -> list[str]:
    return markdown(table([line.split("|") for line in cells])).splitlines()


def test_a_name_over_nothing_is_not_lost() -> None:
    assert rows("Name|Signature", "Ida|", "Per|") == ["Name; Signature", "Ida", "Per"]
    assert rows("Name|Role|Signature", "Ida|Nurse|") == ["Name; Role; Signature", "Name: Ida; Role: Nurse"]


def test_a_title_in_a_table_stands_over_its_head() -> None:
    said = rows("Speeds||", "Belt|Speed|Motor", "B1|1.2|M4", "Measured in June.||")
    assert [line for line in said if line] == ["Speeds", "Belt: B1; Speed: 1.2; Motor: M4", "Measured in June."]
    assert rows("Contact|", "Phone|Ida", "City|Kiel")[-2:] == ["Phone; Ida", "City; Kiel"]


@pytest.mark.parametrize(
    ("upper", "lower", "named"),
    [
        (
            "Site|Summer||Winter|",
            "Site|Open|Close|Open|Close",
            "Site: Mole; Summer Open: 1; Summer Close: 2; Winter Open: 3",
        ),
        ("Site|Flow|Rise|Fall|", "|l/h|m|m|", "Site: Mole; Flow l/h: 1; Rise m: 2; Fall m: 3"),
    ],
)
def test_two_rows_of_a_head_are_one(upper: str, lower: str, named: str) -> None:
    assert rows(upper, lower, "Mole|1|2|3|4")[0].startswith(named)
    assert lines_of(f"{upper}\n{lower}\nMole|1|2|3|4\nPier|5|6|7|8", "a.csv")[0].startswith(named)


def test_years_in_a_row_name_columns() -> None:
    assert rows("Hall|2024|2025", "North|10|12") == ["Hall: North; 2024: 10; 2025: 12"]
    assert rows("Ida|1950|2001", "Per|1961|2012") == ["Ida; 1950; 2001", "Per; 1961; 2012"]


def test_a_table_in_a_cell_stands_behind_its_row() -> None:
    inside = [[], [Block("Speed: 90", "row")], [Block("Speed: 55", "row")]]
    said = markdown(table([["Line", "Shift"], ["A", "early"], ["B", "late"]], inside=inside))
    assert said.splitlines() == ["Line: A; Shift: early", "Speed: 90", "Line: B; Shift: late", "Speed: 55"]


def test_a_second_table_of_a_sheet_has_a_head_of_its_own() -> None:
    said = lines_of("When,What,Took\nMay,on,3\nJune,off,4\n,,\nKey,Box,\nK1,7,\nK2,8,\n", "a.csv")
    assert said[-2:] == ["Key: K1; Box: 7", "Key: K2; Box: 8"]
    assert "When: May; What: on; Took: 3" in said


def test_what_is_said_of_a_wider_table_is_no_head() -> None:
    said = lines_of("Station,Holm\nUnit,mm\n\nDay,Rain,Wind\nMon,4,7\nTue,5,9\n", "a.csv")
    assert said == ["Station; Holm", "Unit; mm", "Day: Mon; Rain: 4; Wind: 7", "Day: Tue; Rain: 5; Wind: 9"]


def test_a_title_over_a_later_column_is_no_head() -> None:
    said = lines_of(",Ducks of the lake,,\n,,Year,Ducks,Geese\n,,2019,120,80\n,,2020,135,95\n", "a.csv")
    assert said == ["Ducks of the lake", "Year: 2019; Ducks: 120; Geese: 80", "Year: 2020; Ducks: 135; Geese: 95"]


# --- workbooks ---

CELLS = (
    '<row r="2"><c r="B2" t="inlineStr"><is><t>Hall</t></is></c><c r="C2" t="inlineStr"><is><t>Share</t></is></c>'
    '<c r="D2" t="inlineStr"><is><t>Tonnes</t></is></c></row>'
    '<row r="3"><c r="B3" t="inlineStr"><is><t>North</t></is></c><c r="C3" s="1"><v>0.155</v></c>'
    '<c r="D3"><v>10</v></c></row>'
    '<row r="4"><c r="C4" s="2"><v>0.05</v></c><c r="D4"><v>11</v></c></row>'
)
HIDDEN = '<row r="1"><c r="A1" t="inlineStr"><is><t>Salaries</t></is></c></row>'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SHEET = f"<worksheet xmlns='{MAIN}'><sheetData>{{}}</sheetData>{{}}</worksheet>"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MERGED = '<mergeCell ref="{}"/>'
RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'


def workbook(*merged: str) -> bytes:
    kinds = {
        "1": ("worksheet", "worksheets/a.xml"),
        "2": ("worksheet", "worksheets/b.xml"),
        "3": ("styles", "styles.xml"),
    }
    inner = "".join(f'<Relationship Id="r{i}" Type="{OFFICE}/{k}" Target="{t}"/>' for i, (k, t) in kinds.items())
    outer = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    return packed({
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": RELATIONS.format(outer),
        "xl/_rels/workbook.xml.rels": RELATIONS.format(inner),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="Output" sheetId="1" r:id="r1"/>'
        '<sheet name="Pay" sheetId="2" state="hidden" r:id="r2"/></sheets></workbook>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts><numFmt numFmtId="164" formatCode="0.0%"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="9"/></cellXfs></styleSheet>',
        "xl/worksheets/a.xml": SHEET.format(CELLS, f"<mergeCells>{''.join(map(MERGED.format, merged))}</mergeCells>"),
        "xl/worksheets/b.xml": SHEET.format(HIDDEN, ""),
    })  # fmt: skip


@pytest.mark.parametrize("elsewhere", [(), ("F2:G5",), ("A1:A6",), ("D9:D12", "A4:B9")])
def test_a_workbook_says_what_its_cells_show(elsewhere: tuple[str, ...]) -> None:
    parsed = read(workbook("B3:B4", *elsewhere), "a.xlsx")
    assert [section.text for section in parsed.sections] == [
        "Hall: North; Share: 15.5%; Tonnes: 10\nHall: North; Share: 5%; Tonnes: 11"
    ]
    assert parsed.warnings == ("Hidden sheets that were not read: 1.",)


# --- pages ---


def grid(top: float, step: float, *cells: str) -> list[Placed]:
    return [
        (150 + 120 * x, top - step * y, text)
        for y, row in enumerate(cells)
        for x, text in enumerate(row.split("|"))
        if text
    ]


def read_pages(*pages: Sequence[Placed]) -> ParsedDocument:
    return read(placed(*pages), "a.pdf")


def said(*pages: Sequence[Placed]) -> list[str]:
    return [line for section in read_pages(*pages).sections for line in section.text.splitlines() if line]


def test_a_title_and_a_note_beside_a_table_are_no_column_of_it() -> None:
    page = [
        (80, 740, "Oils"),
        *grid(716, 18, "Machine|Oil", "Lathe|CLP 220", "Drill|", "Saw|68"),
        (80, 640, "Ask Ida."),
    ]
    assert said(page) == ["Oils", "Machine: Lathe; Oil: CLP 220", "Drill", "Machine: Saw; Oil: 68", "Ask Ida."]


@pytest.mark.parametrize("own", [0, 6, 12])
def test_lines_of_a_cell_belong_to_the_nearer_row(own: float) -> None:
    page = [
        *grid(700, 18, "Machine|Oil|Change", "Saw|HLP 68|150"),
        (150, 664 - own, "Crane"), (270, 664, "HLP 46 of"), (270, 652, "Holm only"), (390, 664 - own, "90"),
        *grid(634, 18, "Lathe|CLP 220|400"),
    ]  # fmt: skip
    assert said(page) == [
        "Machine: Saw; Oil: HLP 68; Change: 150",
        "Machine: Crane; Oil: HLP 46 of Holm only; Change: 90",
        "Machine: Lathe; Oil: CLP 220; Change: 400",
    ]


def test_a_row_without_its_first_cell_is_a_row() -> None:
    page = grid(700, 20, "Hall|Shift|Lead", "North|1|Okafor", "|2|Lind", "South|1|Berg")
    assert said(page)[1] == "Shift: 2; Lead: Lind"


def test_numbers_of_items_are_no_column() -> None:
    page = [
        (60, 700, "3.1"),
        (90, 700, "The lease runs five years."),
        (60, 680, "3.2"),
        (90, 680, "It ends in May of 2031."),
    ]
    text = " ".join(said(page))
    assert "3.1 The lease runs five years." in text
    assert "3.2 It ends in May of 2031." in text
    assert "1. Open the flap" in " ".join(
        said([(60, 700, "1."), (90, 700, "Open the flap"), (60, 680, "2."), (90, 680, "Wait")])
    )


def test_narrow_columns_of_running_text_are_no_table() -> None:
    columns = [
        "The ferry leaves|Tickets are sold",
        "at 06:40 from the|by the purser on",
        "east pier with cars.|deck two.",
    ]
    assert said(grid(700, 12, *columns)) == [
        "The ferry leaves at 06:40 from the east pier with cars.",
        "Tickets are sold by the purser on deck two.",
    ]


def test_a_sentence_that_counts_with_its_page_is_text() -> None:
    pages = [
        [(60, 760, f"Hall {n} is locked at {17 + n}:30."), (60, 700, "More."), (60, 400, "Of it.")] for n in (1, 2, 3)
    ]
    assert [line for line in said(*pages) if "locked" in line] == [
        f"Hall {n} is locked at {17 + n}:30." for n in (1, 2, 3)
    ]


def test_two_pages_are_enough_to_know_their_numbers() -> None:
    first = [(60, 760, "The filter is cleaned by a con-"), (290, 40, "- 7 -")]
    second = [(60, 760, "tractor from Hull."), (290, 40, "- 8 -")]
    assert said(first, second)[0] == "The filter is cleaned by a contractor from Hull."


def test_rows_of_numbers_at_the_edge_of_a_page_are_text() -> None:
    pages = [grid(700, 20, f"{n}.5|{n + 3}.9", f"{n}.7|{n + 8}.1", f"{n}.6|{n + 4}.4") for n in (1, 2)]
    assert len(said(*pages)) == 6


def test_a_letter_before_a_hyphen_keeps_it() -> None:
    assert said([(60, 760, "It opens the X-"), (60, 748, "ray room.")]) == ["It opens the X-ray room."]


def test_a_page_that_loses_words_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_nothing(pages: Sequence[object], grids: Sequence[object]) -> list[list[Block]]:
        del grids
        return [[Block("x")] for _ in pages]

    monkeypatch.setattr("spanforge.reference.parsing.pdf.pages_of", of_nothing)
    assert read_pages([(60, 760, "Lost words"), (60, 700, "of a page")]).warnings == (
        "Only 0% of the words in the file were extracted.",
    )


def test_a_sentence_goes_on_in_the_next_column_and_over_the_notes_of_a_page() -> None:
    left = ["The old dam holds water for the", "three mills of the valley, and its", "keeper opens the gate each eve-"]
    right = [
        "ning at six. The ladder of the fish",
        "stays open through the winter, since",
        "salmon climb it in January too,",
    ]
    columns = [
        (60 + 250 * x, 760 - 14 * y, text) for x, side in enumerate((left, right)) for y, text in enumerate(side)
    ]
    text = "\n".join(said([*columns, (60, 90, "4 Measured in 1951.")], [(60, 760, "as the keeper says.")]))
    assert "the gate each evening at six." in text
    assert "in January too, as the keeper says." in text


def test_the_last_line_of_a_last_cell_may_be_the_longest() -> None:
    page = [
        *grid(700, 24, "Code|Meaning", "E1|No water.", "E2|The motor is"),
        (270, 640, "too hot and must wait for long."),
    ]
    assert said(page)[-1] == "Code: E2; Meaning: The motor is too hot and must wait for long."


def test_lines_that_stand_wide_apart_are_one_sentence() -> None:
    page = [
        (60, 700 - 24 * y, text)
        for y, text in enumerate(["The valve of the tank opens", "each morning at the hour", "that the card says."])
    ]
    assert said(page) == ["The valve of the tank opens each morning at the hour that the card says."]


def test_a_page_upside_down_is_read() -> None:
    turned = placed([(0, 0, "The boat holds 12.")]).replace(b"0 0 Td", b"-1 0 0 -1 500 300 Tm")
    assert read(turned, "a.pdf").sections[0].text == "The boat holds 12."


# --- hidden things, notes, and bytes ---


def test_hidden_letters_of_word_are_not_read() -> None:
    runs = "<w:r><w:t>Seen.</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>Unseen.</w:t></w:r>"
    shown = '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>Shown.</w:t></w:r>'
    parsed = read(word_with(f"<w:p>{runs}{shown}</w:p>"), "a.docx")
    assert parsed.sections[0].text == "Seen.Shown."


def test_a_row_of_word_may_begin_in_a_later_column() -> None:
    def row(*cells: str, before: str = "") -> str:
        return f"<w:tr>{before}{''.join(f'<w:tc><w:p><w:r><w:t>{c}</w:t></w:r></w:p></w:tc>' for c in cells)}</w:tr>"

    offset = '<w:trPr><w:gridBefore w:val="1"/></w:trPr>'
    body = f"<w:tbl>{row('Room', 'Mon', 'Tue')}{row('R1', 'Ada', 'Bo')}{row('Cy', 'Di', before=offset)}</w:tbl>"
    assert lines_of(word_with(body), "a.docx") == ["Room: R1; Mon: Ada; Tue: Bo", "Mon: Cy; Tue: Di"]


def test_headings_of_word_have_their_numbers() -> None:
    levels = "".join(
        f'<w:lvl w:ilvl="{depth}"><w:numFmt w:val="decimal"/><w:lvlText w:val="{pattern}"/></w:lvl>'
        for depth, pattern in enumerate(("%1", "%1.%2", ""))
    )
    used = '<w:num w:numId="7"><w:abstractNumId w:val="7"/></w:num>'
    numbering = f'<w:abstractNum w:abstractNumId="7">{levels}</w:abstractNum>{used}'

    def heading(text: str, depth: int) -> str:
        place = f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="7"/></w:numPr><w:outlineLvl w:val="{depth}"/>'
        return f"<w:p><w:pPr>{place}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"

    body = heading("Scope", 0) + heading("Duties", 0) + heading("Keys", 1) + heading("Lamps", 2)
    assert lines_of(word_with(body, numbering), "a.docx") == ["# 1 Scope", "# 2 Duties", "## 2.1 Keys", "### Lamps"]


def test_notes_of_rich_text_are_read() -> None:
    notes = r"{\super 1{\*\footnote\pard Without {\i any\} heating}.}}"
    said = lines_of(rf"{{\rtf1\ansi Flats {notes}cost 90 euro{{\footnote Monthly.}}.\par End.}}", "a.rtf")
    assert said == ["Flats 1cost 90 euro.", "End.", "Without any} heating.", "Monthly."]


def test_a_shape_stands_behind_its_paragraph() -> None:
    inside = "<svg:desc>A sign</svg:desc><text:p>980 degrees.</text:p><text:p>Wear a coat.</text:p>"
    shape = f"<draw:custom-shape>{inside}</draw:custom-shape>"
    said = lines_of(opendocument(f"<text:p>The furnace runs {shape}day and night.</text:p>"), "a.odt")
    assert said == ["The furnace runs day and night.", "A sign", "980 degrees.", "Wear a coat."]


def test_pages_on_the_left_have_headers_too() -> None:
    edges = (
        "<style:header><text:p>Odd</text:p></style:header><style:header-left><text:p>Even</text:p></style:header-left>"
    )
    assert lines_of(opendocument("<text:p>Body.</text:p>", edges), "a.odt") == ["Odd", "Even", "Body."]


def test_navigation_with_a_sentence_at_the_end_of_its_paragraph_is_read() -> None:
    said = lines_of(
        "<body><nav><p>Read part two first.</p><ul><li><a href=x>One</a></ul></nav><p>Text.</p></body>", "a.html"
    )
    assert "Read part two first." in said
    menu = "<nav><span>St. Gallen</span> <a href=x>One</a> <span>9. May</span></nav>"
    assert lines_of(f"<body>{menu}<p>Text.</p></body>", "a.html") == ["Text."]


def test_several_stray_bytes_leave_the_rest_as_it_is() -> None:
    text = "Der Müllraum ist offen. Die Tür fällt zu.\n".encode() + b"Gr\xf6\xdfe 4 \x80\n" + "Am Schluß.".encode()
    assert lines_of(text, "a.txt") == ["Der Müllraum ist offen. Die Tür fällt zu.", "Größe 4 €", "Am Schluß."]
