"""What other programs than ours write is read in its order, with its numbers and in its columns."""

from __future__ import annotations

from collections.abc import Sequence
from email.message import EmailMessage
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents import Placed, lines_of, opendocument, packed, placed, word_with

from spanforge.reference.parsing.registry import read
from spanforge.reference.parsing.tree import markdown, table
from spanforge.reference.parsing.walk import Placed as Shape
from spanforge.reference.parsing.walk import reading_order

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = "<Relationships>{}</Relationships>"
AT = "<{0}><a:off x='{1}' y='{2}'/><a:ext cx='40' cy='10'/></{0}>"


# --- drawn tables of pages ---


def ruled(xs: Sequence[float], ys: Sequence[float], *left_out: str) -> str:
    """The rules of a table, each between two others that cross it, without some of them."""
    across = [f"{a} {y} m {b} {y} l S\n" for y in ys for a, b in pairwise(xs)]
    down = [f"{x} {a} m {x} {b} l S\n" for x in xs for a, b in pairwise(ys)]
    return "".join(one for one in across + down if one.split(" l")[0] not in left_out)


def drawn(texts: Sequence[Placed], rules: str) -> list[str]:
    return lines_of(placed(texts, drawn=rules), "a.pdf")


DUTY = "The tenant lets the fire brigade pass, and keeps all corridors free."
CLAUSES: list[Placed] = [
    (104, 704, "Clause"), (204, 704, "Duty"), (404, 704, "Penalty"),
    (104, 676, "C-1"), (204, 690, "The tenant lets the fire bri-"), (204, 678, "gade pass, and keeps all"),
    (204, 666, "corridors free."), (404, 684, "40 euro for each day"), (404, 672, "on which goods stand"),
    (104, 646, "C-2"), (404, 646, "15 euro"), (60, 600, "Signed in June."),
]  # fmt: skip


def test_cells_between_rules_are_whole_wherever_their_lines_stand() -> None:
    assert drawn(CLAUSES, ruled((100, 200, 400, 560), (640, 660, 700, 720))) == [
        f"Clause: C-1; Duty: {DUTY}; Penalty: 40 euro for each day on which goods stand",
        "Clause: C-2; Penalty: 15 euro",
        "Signed in June.",
    ]


def test_a_rule_that_is_a_thin_box_and_a_frame_of_boxes_are_rules_too() -> None:
    cells = [(x, y) for x in (100, 200) for y in (660, 680, 700)]
    texts = [(x + 4.0, y + 6.0, f"{'ab'[x // 200]}{y}") for x, y in cells]
    boxes = "".join(f"{x} {y} 100 20 re S\n" for x, y in cells)
    thin = [f"{x} 660 0.5 60 re f\n" for x in (100, 200, 300)] + [
        f"100 {y} 200 0.5 re f\n" for y in (660, 680, 700, 720)
    ]
    assert drawn(texts, boxes) == drawn(texts, "".join(thin)) == ["a700; b700", "a680; b680", "a660; b660"]


def test_rules_of_many_cells_are_those_of_one_table() -> None:
    xs, ys = range(20, 581, 70), range(20, 781, 19)
    texts = [(x + 3.0, y + 5.0, f"{x}.{y}") for x in xs[:-1] for y in ys[:-1] if (x + y) % 3]
    rows = [[text for _, up, text in texts if up == y + 5] for y in reversed(ys[:-1])]
    assert drawn(texts, ruled(xs, ys)) == ["; ".join(row) for row in rows]


def test_cells_that_are_merged_stand_in_each_row_and_in_their_first_column() -> None:
    texts: list[Placed] = [
        (104, 686, "Hall"), (204, 706, "Line one"), (204, 686, "Start"), (304, 686, "End"),
        (104, 656, "North"), (204, 666, "05:30"), (304, 666, "13:30"), (204, 646, "closed until March"),
    ]  # fmt: skip
    left_out = ("300 700 m 300 720", "100 660 m 200 660", "300 640 m 300 660")
    assert drawn(texts, ruled((100, 200, 300, 400), (640, 660, 680, 700, 720), *left_out)) == [
        "Line one", "Hall: North; Start: 05:30; End: 13:30", "Hall: North; Start: closed until March",
    ]  # fmt: skip


def test_rows_that_no_rule_parts_are_rows() -> None:
    texts = [(x, 690 - 12.0 * y, f"{'AB'[x > 200]}{y}") for x in (104.0, 204.0) for y in range(4)]
    head: list[Placed] = [(104, 706, "Part"), (204, 706, "Maker")]
    assert drawn([*head, *texts], ruled((100, 200, 300), (640, 700, 720))) == [
        f"Part: A{y}; Maker: B{y}" for y in range(4)
    ]


def test_a_drawing_and_a_table_beside_other_text_are_no_table_of_the_page() -> None:
    assert drawn([(60, 760, "A plan.")], ruled((100, 200, 300), (640, 660, 680))) == ["A plan."]
    beside: list[Placed] = [
        (104, 686, "a"),
        (204, 686, "b"),
        (104, 666, "c"),
        (204, 666, "d"),
        (400, 680, "Text of a column"),
    ]
    assert "a; b" not in drawn(beside, ruled((100, 200, 300), (660, 680, 700)))


def test_a_table_that_goes_on_over_a_page_has_its_head_on_each() -> None:
    def row(top: float, *cells: str) -> list[Placed]:
        return [(60 + 150 * x, top, cell) for x, cell in enumerate(cells)]

    first = [*row(760, "Part", "Maker", "Price"), *row(740, "P1", "Okuda", "4"), *row(720, "P2", "Silva", "7")]
    second = [*row(760, "P3", "Hartmann", "9"), *row(740, "P4", "Okuda", "8")]
    last = [*row(760, "Part", "Stock", "Shelf"), *row(740, "P1", "11", "5")]
    said = [section.text.splitlines() for section in read(placed(first, second, last), "a.pdf").sections]
    assert said[1] == ["Part: P3; Maker: Hartmann; Price: 9", "Part: P4; Maker: Okuda; Price: 8"]
    assert said[2] == ["Part: P1; Stock: 11; Shelf: 5"]


# --- heads ---


@pytest.mark.parametrize(
    ("rows", "first"),
    [
        ("|2023||2024|;Port|Ships|Tonnes|Ships|Tonnes;Oslo|98|3|91|2", "Port: Oslo; 2023 Ships: 98; 2023 Tonnes: 3"),
        ("|Water||Power|;Site|2022|2023|2022|2023;Lund|4|3|7|8", "Site: Lund; Water 2022: 4; Water 2023: 3"),
        ("Bolt|M8;Nut|M10", "Bolt; M8"),
        ("Maker|Okuda;Flow|1200 l/h;Motor|4 kW", "Maker; Okuda"),
        ("Pump|Flow;P1|12 l/h;P2|14 l/h", "Pump: P1; Flow: 12 l/h"),
    ],
)
def test_what_is_a_head(rows: str, first: str) -> None:
    assert markdown(table([row.split("|") for row in rows.split(";")])).splitlines()[0].startswith(first)


def test_lines_of_one_cell_over_a_short_table_are_no_rows() -> None:
    lines = ["Report: tides", "Made on 4 June", "port,high,low", "Oslo,0.60,0.42", "Voss,2.1,0.5,large", "Total"]
    assert "port: Oslo; high: 0.60; low: 0.42" in lines_of("\n".join(lines), "a.csv")


# --- charts and shapes ---


def series(name: str, *values: str, form: str = "General") -> str:
    points = "".join(f"<pt idx='{at}'><v>{value}</v></pt>" for at, value in enumerate(values))
    towns = "<pt idx='0'><v>Oslo</v></pt><pt idx='1'><v>Voss</v></pt>"
    value = f"<val><formatCode>{form}</formatCode>{points}</val>"
    return f"<ser><tx><pt idx='0'><v>{name}</v></pt></tx><cat>{towns}</cat>{value}</ser>"


def chart_of(*parts: str) -> str:
    return f"<chartSpace><title><t>Fish </t><t>landed</t></title>{''.join(parts)}</chartSpace>"


CHART = chart_of(series("Tonnes", "385", "97"), series("Share", "0.5", "0.125", form="0.0%"))
CHARTED = ["Fish landed", "Oslo; Tonnes: 385; Share: 50.0%", "Voss; Tonnes: 97; Share: 12.5%"]


def test_a_chart_of_word_is_read_as_rows() -> None:
    relation = f'<Relationship Id="c1" Type="{OFFICE}/chart" Target="charts/chart1.xml"/>'
    body = "<w:p><w:r><w:t>Seen.</w:t></w:r><w:r><w:drawing><c:chart xmlns:c='c' r:id='c1'/></w:drawing></w:r></w:p>"
    content = word_with(body, relation=relation, parts={"word/charts/chart1.xml": CHART})
    assert lines_of(content, "a.docx") == ["Seen.", *CHARTED]


def test_other_things_in_word_are_said_not_to_be_read() -> None:
    relation = f'<Relationship Id="c1" Type="{OFFICE}/aFChunk" Target="part.html"/>'
    parsed = read(word_with("<w:p><w:r><w:t>Seen.</w:t></w:r></w:p>", relation=relation), "a.docx")
    assert parsed.warnings == ("Charts and inserted files that were not read: 1.",)


def slide(*shapes: str) -> bytes:
    def said(kind: str, target: str) -> str:
        return f'<Relationship Id="{kind}" Type="{OFFICE}/{kind}" Target="{target}"/>'

    body = f"<p:sld xmlns:p='p' xmlns:a='a' xmlns:r='r'><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:sld>"
    body_place = AT.format("a:xfrm", 0, 20)
    layout = f"<l xmlns:p='p' xmlns:a='a'><p:sp><p:ph idx='1'/>{body_place}</p:sp></l>"
    return packed({
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": RELATIONS.format(said("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": "<p/>",
        "ppt/slides/slide1.xml": body,
        "ppt/slides/_rels/slide1.xml.rels": RELATIONS.format(
            said("chart", "../charts/chart1.xml") + said("slideLayout", "../slideLayouts/l.xml")
        ),
        "ppt/slideLayouts/l.xml": layout,
        "ppt/charts/chart1.xml": CHART,
    })  # fmt: skip


def shape(text: str, place: str, mark: str = "") -> str:
    return f"<p:sp>{mark}{place}<a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp>"


def test_shapes_of_a_slide_are_read_as_they_stand() -> None:
    frame = f"<p:graphicFrame>{AT.format('p:xfrm', 0, 60)}<c:chart xmlns:c='c' r:id='chart'/></p:graphicFrame>"
    shapes = (
        frame, shape("Right.", AT.format("a:xfrm", 50, 41)), shape("Left.", AT.format("a:xfrm", 0, 40)),
        shape("Body.", "", "<p:ph idx='1'/>"), shape("Title", AT.format("a:xfrm", 0, 90), "<p:ph type='title'/>"),
    )  # fmt: skip
    assert lines_of(slide(*shapes), "a.pptx") == ["## Title", "Body.", "Left.", "Right.", *CHARTED]


@pytest.mark.parametrize("place", ["", "1e9", "1.2.3cm", "12 km", "nan"])
def test_a_shape_whose_place_says_nothing_is_read_first(place: str) -> None:
    shapes = (shape("Below.", AT.format("a:xfrm", 0, "5mm")), shape("Somewhere.", AT.format("a:xfrm", place, place)))
    assert lines_of(slide(*shapes), "a.pptx") == ["Somewhere.", "Below."]
    drawn = "".join(
        f"<draw:frame svg:x='{x}' svg:y='{x}'><draw:text-box><text:p>{said}</text:p></draw:text-box></draw:frame>"
        for x, said in (("1cm", "Below."), (place, "Somewhere."))
    )
    assert lines_of(opendocument(f"<draw:page>{drawn}</draw:page>"), "a.odp") == ["Somewhere.", "Below."]


def test_places_are_compared_in_whatever_unit_they_are_said() -> None:
    texts = {"second": "25.4mm", "third": "2in", "first": str(914_400 // 2)}
    shapes = [shape(text, AT.format("a:xfrm", 0, y)) for text, y in texts.items()]
    assert lines_of(slide(*shapes), "a.pptx") == ["first", "second", "third"]


@given(st.permutations([(x, y) for x in (0, 30) for y in (0, 20, 40)]))
def test_the_order_of_shapes_is_not_the_order_of_the_file(places: list[tuple[int, int]]) -> None:
    shapes = [Shape(((y, y + 10), (x, x + 20)), (x, y)) for x, y in places]
    assert reading_order(shapes) == sorted(places, key=lambda place: (place[1], place[0]))


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 4), min_size=1, max_size=9))
def test_every_shape_is_read_once(places: list[tuple[int, int, int, int]]) -> None:
    shapes = [Shape(((y, y + h), (x, x + w)), at) for at, (x, y, w, h) in enumerate(places)]
    assert sorted(reading_order(shapes)) == list(range(len(places)))


# --- OpenDocument ---


def levels(*said: tuple[str, str, int]) -> str:
    return "".join(
        f'<text:list-level-style-number text:level="{at}" style:num-format="{form}" style:num-suffix="{suffix}"'
        f' text:display-levels="{shown}"/>'
        for at, (form, suffix, shown) in enumerate(said, 1)
    )


def items(*said: str) -> str:
    return "".join(f"<text:list-item>{one}</text:list-item>" for one in said)


def test_lists_and_headings_of_opendocument_have_their_numbers() -> None:
    style = f'<text:list-style style:name="L">{levels(("1", ".", 1), ("a", ")", 1), ("I", "", 3))}</text:list-style>'
    outline = (
        f"<text:outline-style>{levels(('1', '.', 1), ('1', '', 2)).replace('list', 'outline')}</text:outline-style>"
    )
    twice = items("<text:p>Close.</text:p>", "<text:p>Fill.</text:p>{}")
    deeper = f"<text:list>{items('<text:p>Cold.</text:p>', '<text:p>Full.</text:p>')}</text:list>"
    body = (
        '<text:h text:outline-level="1">Scope</text:h><text:h text:outline-level="2">Rent</text:h>'
        f'<text:list text:style-name="L">{twice.format(deeper)}</text:list>'
        f'<text:list text:style-name="L" text:continue-numbering="true">{items("<text:p>Open.</text:p>")}</text:list>'
        f'<text:list text:style-name="L">{items("<text:p>Anew.</text:p>")}</text:list>'
    )
    assert lines_of(opendocument(body, style + outline), "a.odt") == [
        "# 1. Scope", "## 1.1 Rent", "1. Close.", "2. Fill.", "  a) Cold.", "  b) Full.", "3. Open.", "1. Anew.",
    ]  # fmt: skip


def sheet(*rows: str) -> bytes:
    hidden = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    inner = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    shown = f'<table:table table:name="Stock">{inner}</table:table>'
    other = '<table:table table:style-name="h"><table:table-row/></table:table>'
    return opendocument(f"{hidden}{shown}{other}")


def cells(*texts: str, how: str = "") -> str:
    return "".join(f"<table:table-cell {how}><text:p>{text}</text:p></table:table-cell>" for text in texts)


def test_sheets_of_opendocument_say_what_they_show() -> None:
    down = cells("North", how='table:number-rows-spanned="2"')
    twice = cells("shut", how='table:number-columns-repeated="2"')
    rows = (cells("Hall", "Share", "On"), down + cells("7.5%", "05.03.2024"), f"<table:covered-table-cell/>{twice}")
    parsed = read(sheet(*rows), "a.ods")
    assert [section.text for section in parsed.sections] == [
        "Hall: North; Share: 7.5%; On: 05.03.2024\nHall: North; Share: shut; On: shut"
    ]
    assert parsed.warnings == ("Hidden sheets that were not read: 1.",)


def test_a_chart_of_opendocument_is_read_and_hidden_text_is_not() -> None:
    rows = "".join(
        f"<table:table-row>{cells(*row)}</table:table-row>" for row in (("", "Tonnes", "Share"), ("Oslo", "385", "4"))
    )
    chart = f"<text:p>Fish landed</text:p><table:table>{rows}</table:table>"
    hidden = '<style:style style:name="h"><style:text-properties text:display="none"/></style:style>'
    frame = '<draw:frame><draw:object xlink:href="./Object"/></draw:frame>'
    body = f'{hidden}<text:p>Seen <text:span text:style-name="h">unseen </text:span>here.{frame}</text:p>'
    said = lines_of(opendocument(body, Object=chart), "a.odt")
    assert said == ["Seen here.", "Fish landed", "Oslo; Tonnes: 385; Share: 4"]


def test_shapes_of_opendocument_are_read_as_they_stand() -> None:
    def box(text: str, y: str, how: str = "") -> str:
        place = f'svg:x="1cm" svg:y="{y}" svg:width="9cm" svg:height="1cm"'
        return f"<draw:frame {place} {how}><text:p>{text}</text:p></draw:frame>"

    title = box("Title", "9cm", 'draw:class="title"')
    page = f"<draw:page>{box('Last.', '2in')}<draw:g>{box('First.', '30mm')}</draw:g>{title}</draw:page>"
    assert lines_of(opendocument(page), "a.odp") == ["Title", "First.", "Last."]


# --- mail, pages, bytes ---


def test_what_is_attached_to_a_signed_message_is_read() -> None:
    inner = EmailMessage()
    inner.set_content("As agreed.")
    inner.add_alternative("<p>As agreed.</p><table><tr><th>Day<th>Guard<tr><td>Monday<td>Ito</table>", subtype="html")
    inner.add_attachment("Gate code 5519.", filename="gate.txt")
    signed = EmailMessage()
    signed["Subject"] = "Rota"
    signed["Content-Type"] = 'multipart/signed; boundary="s"'
    signed.set_payload([inner])
    assert lines_of(signed.as_bytes(), "a.eml") == [
        "Subject: Rota", "Attachments: gate.txt", "As agreed.", "Day: Monday; Guard: Ito", "Gate code 5519.",
    ]  # fmt: skip


def test_panels_of_tabs_and_accordions_are_read() -> None:
    panels = (
        '<a role="tab" aria-controls="p">Mass</a><div id="p" style="display:none">8.4 kg</div>'
        '<button aria-expanded="false" aria-controls="q">Return?</button><div id="q" hidden>In 60 days.</div>'
        '<div role="tabpanel" hidden>12 m.</div><p id="r" hidden>Unseen.</p><h2>Rope<a href="#rope">\u00b6</a></h2>'
    )
    assert lines_of(f"<html><body>{panels}</body></html>", "a.html") == [
        "Mass", "8.4 kg", "Return?", "In 60 days.", "12 m.", "## Rope",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Sklep jest otwarty. Klucz kosztuje dziewi\u0119\u0107dziesi\u0105t z\u0142otych.", "iso8859_2"),
        ("Klucz kosztuje dziewi\u0119\u0107dziesi\u0105t z\u0142otych.", "cp1250"),
        ("Bitte die T\u00fcr schlie\u00dfen.", "cp850"),
        ("\u6708\u66dc\u65e5\u306f\u4f11\u9928\u3067\u3059\u3002", "iso2022_jp"),
    ],
)
def test_a_short_text_is_in_the_encoding_that_makes_words_of_it(text: str, encoding: str) -> None:
    assert lines_of(text.encode(encoding), "a.txt") == [text]


def test_boxes_and_edges_of_rich_text_are_read_and_hidden_text_is_not() -> None:
    box = r"{\shp{\*\shpinst{\shptxt Hatch 3 is hot.\par}}}"
    runs = r"It holds {\deleted forty}{\b fifty} plates.{\v Secret.}"
    text = rf"{{\rtf1\ansi{{\header Edition 12}}{runs}{box}\par End.}}"
    assert lines_of(text, "a.rtf") == ["It holds fifty plates.", "End.", "Edition 12", "Hatch 3 is hot."]


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (r"{Seen \v unseen\v0  and seen.}", None),
        (r"{The folder is C:\\v and its disk.}", "The folder is C:\\v and its disk."),
        (r"{\b Bold {\rtlch\ltrch\v Secret.}text.}", "Bold text."),
    ],
)
def test_what_is_shown_beside_hidden_text_is_kept(runs: str, said: str | None) -> None:
    lines = lines_of(rf"{{\rtf1\ansi{{\fonttbl}}{runs}\par}}", "a.rtf")
    assert lines == [said] if said else "and seen." in lines[0]
