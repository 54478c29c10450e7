"""Every format read, with its structure; offsets that lead back to the text."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents import HTML, WORDS, pdf, word

from spanforge.reference import Document
from spanforge.reference.failures import InvalidInput, ParseError, UnsupportedFormat
from spanforge.reference.ingesting.chunking import Chunker, slices
from spanforge.reference.parsing import ParsedDocument, Section, parse, supported_suffixes
from spanforge.reference.parsing.base import SEPARATOR
from spanforge.reference.parsing.coding import decode
from spanforge.reference.parsing.registry import kind_of
from spanforge.reference.parsing.tree import ROWS_A_SECTION
from spanforge.reference.tokens import EstimateCounter, default_counter


def read(name: str, content: bytes) -> ParsedDocument:
    return parse(Document(document_id="d", name=name, content=content))


def whole(parsed: ParsedDocument) -> str:
    return SEPARATOR.join(section.text for section in parsed.sections)


def test_the_formats_are_those_promised() -> None:
    assert {".pdf", ".docx", ".html", ".md", ".csv", ".tsv", ".jsonl", ".txt"} <= supported_suffixes()


def test_a_table_has_no_pages() -> None:
    rows = "".join(f"{i},name {i}\n" for i in range(ROWS_A_SECTION + 1))
    parsed = read("t.csv", f"id,name\n{rows}".encode())
    assert [section.page for section in parsed.sections] == [None, None]


def test_an_archive_that_is_damaged_inside_is_of_no_kind() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip" * 20)
    content = bytearray(packed.getvalue())
    begin = content.index(b"mimetype") + len(b"mimetype")
    content[begin : begin + 6] = b"\xff" * 6
    assert kind_of(bytes(content)) == ""
    with pytest.raises((ParseError, UnsupportedFormat)):
        read("book", bytes(content))


def test_pdf_pages_are_numbered() -> None:
    parsed = read("a.pdf", pdf([WORDS, "", "Third page."]))
    assert [(section.page, section.text.strip()) for section in parsed.sections] == [(1, WORDS), (3, "Third page.")]


BODY = ["One thing is said.", "Another is.", "A third is.", "A fourth is."]


@pytest.mark.parametrize(
    ("edge", "left"),
    [
        ("Page {}", []),
        ("Page {} of 4", []),
        ("- {} -", []),
        ("The handbook", ["The handbook"]),
        ("Issue 7", ["Issue 7"]),
        ("Bolts {}0 in stock", ["Bolts 10 in stock", "Bolts 20 in stock", "Bolts 30 in stock", "Bolts 40 in stock"]),
    ],
)
def test_what_pdf_pages_say_at_their_edge_stays_once_and_page_numbers_do_not(edge: str, left: list[str]) -> None:
    pages = [
        f"{edge.format(number)}\n{said}\nAnd so on.\nOn and on.\n{said[::-1]}" for number, said in enumerate(BODY, 1)
    ]
    text = whole(read("a.pdf", pdf(pages)))
    assert all(said in text for said in BODY)
    assert [line for line in text.splitlines() if line.split()[:1] == edge.split()[:1]] == left


def test_front_matter_is_numbered_in_roman() -> None:
    pages = [
        f"{said}\nAnd so on.\n{said[::-1]}\n{number}"
        for said, number in zip(BODY, ("viii", "ix", "x", "xi"), strict=True)
    ]
    assert not {"viii", "ix", "x", "xi"} & set(whole(read("a.pdf", pdf(pages))).split())


def test_pdf_pages_that_say_nothing_but_a_running_line_are_not_empty() -> None:
    pages = [f"Deck A: slide {number}" for number in range(1, 5)]
    assert [section.text.strip() for section in read("a.pdf", pdf(pages)).sections] == pages


def test_word_keeps_headings_and_tables_in_their_order() -> None:
    parsed = read("a.docx", word([WORDS], [["Lock", "Rise"], ["Upper", "3 m"]], heading="Locks"))
    text = whole(parsed)
    assert (
        text.index("# Locks")
        < text.index(WORDS)
        < text.index("Lock: Upper; Rise: 3 m")
        < text.index("After the table.")
    )


def test_html_gives_what_a_reader_sees_and_no_script() -> None:
    text = whole(read("a.html", HTML.encode()))
    assert WORDS in " ".join(text.split())
    for unseen in ("injected", "hidden words", "color: red", "Contact"):
        assert unseen not in text


def test_html_without_an_article_still_gives_its_text() -> None:
    assert "Gate 3: closed" in whole(read("a.htm", b"<html><body><div>Gate 3: closed</div></body></html>"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"lock,rise\nupper,3 m\n"),
        ("a.csv", b"lock;rise\nupper;3 m\n"),
        ("a.csv", b'\xef\xbb\xbflock,rise\r\nupper,"3 m"\r\n'),
        ("a.tsv", b"lock\trise\nupper\t3 m\n"),
        ("a.jsonl", b'{"lock": "upper", "rise": "3 m"}\n\n'),
    ],
)
def test_a_row_names_its_columns(name: str, content: bytes) -> None:
    assert whole(read(name, content)) == "lock: upper; rise: 3 m"


def test_markdown_loses_its_front_matter_and_gives_its_title() -> None:
    parsed = read("a.md", b"---\ntags: [x]\n---\n# Title here\n\nText.")
    assert parsed.title == "Title here"
    assert "tags" not in whole(parsed)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings(encoding: str) -> None:
    assert "café naïve" in whole(read("a.txt", "Un café naïve.".encode(encoding)))


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.xyz", b"anything"), ("a.exe", b"anything"), ("noname", b"\x7fELF\x02\x01\x00\x00"), ("", b"\x00")],
)
def test_unknown_formats(name: str, content: bytes) -> None:
    with pytest.raises(UnsupportedFormat):
        read(name, content)


@pytest.mark.parametrize("name", ["README", "Minutes of 3.11", ""])
@pytest.mark.parametrize("content", [WORDS.encode(), HTML.encode(), word([WORDS]), pdf([WORDS])])
def test_a_file_without_a_suffix_is_told_by_what_it_holds(name: str, content: bytes) -> None:
    assert WORDS in " ".join(whole(read(name, content)).split())


def test_a_document_without_text_or_content() -> None:
    with pytest.raises(ParseError):
        parse(Document(document_id="d"))


# --- chunks ---

BYTE_SLACK = 3
"""A word in a script that the tokenizer spells in bytes may have fewer tokens than a part of it."""
MARKDOWN = "# A\n\n" + "Alpha text here. " * 30 + "\n\n## B\n\n" + "Beta text here. " * 30


@pytest.mark.parametrize("counter", [default_counter(), EstimateCounter()], ids=lambda counter: counter.name)
@given(text=st.text(max_size=3000), size=st.integers(16, 200), overlap=st.integers(0, 15))
def test_chunks_lead_back_to_their_text_within_the_size(counter, text: str, size: int, overlap: int) -> None:  # type: ignore[no-untyped-def]
    parsed = ParsedDocument((Section(text), Section(text, "markdown", page=2)), "text/plain")
    joined = SEPARATOR.join(section.text for section in parsed.sections)
    chunks = Chunker(counter, size, min(overlap, size // 2)).cut(parsed, scope="s")
    for chunk in chunks:
        assert joined[chunk.start : chunk.end] == chunk.text
        assert 0 < chunk.tokens <= size + BYTE_SLACK
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    covered = "".join(c for i, c in enumerate(joined) if c.isalnum() and any(k.start <= i < k.end for k in chunks))
    assert covered == "".join(c for c in joined if c.isalnum())


def test_chunks_know_their_headings() -> None:
    chunks = Chunker(default_counter(), 60, 0).cut(ParsedDocument((Section(MARKDOWN, "markdown"),), "m"), scope="s")
    assert {chunk.heading for chunk in chunks} == {"A", "A > B"}


def test_a_comment_in_code_is_no_heading() -> None:
    text = "# A\n\n```\n# a comment\n```\n\nText behind it."
    chunks = Chunker(default_counter(), 60, 0).cut(ParsedDocument((Section(text, "markdown"),), "m"), scope="s")
    assert {chunk.heading for chunk in chunks} == {"A"}


def test_what_every_passage_carries_is_short() -> None:
    text = f"# {'Long heading ' * 8_000}\n\n{MARKDOWN[5:]}"
    chunks = Chunker(default_counter(), 60, 0).cut(ParsedDocument((Section(text, "markdown"),), "m"), scope="s")
    assert max(len(chunk.heading) for chunk in chunks) < 300


def test_passages_are_counted_before_there_are_too_many() -> None:
    parsed = ParsedDocument((Section(MARKDOWN, "markdown"),), "m")
    with pytest.raises(ParseError, match="more than 2 passages"):
        Chunker(default_counter(), 16, 0).cut(parsed, scope="s", most=2)


@pytest.mark.parametrize(("size", "overlap"), [(16, 9), (16, -1), (0, 0)])
def test_passages_share_half_of_what_they_hold_at_most(size: int, overlap: int) -> None:
    with pytest.raises(InvalidInput):
        Chunker(default_counter(), size, overlap)


def test_ids_are_stable_and_belong_to_their_document() -> None:
    parsed = ParsedDocument((Section(MARKDOWN, "markdown"),), "m")
    chunker = Chunker(default_counter(), 60, 0)
    first, again, other = ([chunk.chunk_id for chunk in chunker.cut(parsed, scope=scope)] for scope in ("a", "a", "b"))
    assert first == again
    assert not set(first) & set(other)


@given(st.text(alphabet="ab .\n", max_size=60_000), st.integers(0, 3))
def test_slices_join_to_the_whole(text: str, repeats: int) -> None:
    long = text * 8**repeats if len(text) * 8**repeats < 200_000 else text
    parts = list(slices(long))
    assert "".join(part for _, part in parts) == long
    assert all(long[start : start + len(part)] == part for start, part in parts)
    assert all(len(part) <= 16_384 for _, part in parts)


@pytest.mark.parametrize("text", ["a", "Yes", "42", "né", "  x\n"])
def test_a_text_of_few_bytes_is_no_wide_one(text: str):
    assert decode(text.encode()) == text


def test_blanks_alone_are_no_text():
    with pytest.raises(ParseError, match="holds no text"):
        parse(Document(document_id="blank.md", content=b"  \n"))
