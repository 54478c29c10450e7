"""Questions about single rows of tables, in every format whose parser hands over rows.

The questions were written before the answerer knew of tables: some were looked at while it learned (`tune`), of the
others only the rates (`held`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.documents import word

from spanforge.reference import Document, Pipeline, RagResult, RagStatus
from spanforge.reference.answering.base import UNSURE
from spanforge.reference.asking.assembly import REFUSAL
from spanforge.reference.grounding.rows import with_rows
from spanforge.reference.ingesting.chunking import Chunker
from spanforge.reference.parsing import ParsedDocument, Section, parse
from spanforge.reference.tokens import default_counter

DATA = Path(__file__).parent / "data"
FILES = sorted((DATA / "tables").iterdir())


@pytest.fixture(scope="module")
def tables() -> Iterator[Pipeline]:
    with Pipeline() as pipeline:
        pipeline.ingest([Document(document_id=path.name, name=path.name, content=path.read_bytes()) for path in FILES])
        yield pipeline


def is_right(row: dict[str, Any], result: RagResult) -> bool:
    """Whether just the rows that are meant are quoted, cited and grounded, and else nothing is certain."""
    if row["says"] is None:
        return result.status in {RagStatus.NO_INFORMATION, RagStatus.UNCERTAIN}
    said = all(part in result.answer for part in row["says"]) and not any(
        part in result.answer for part in row["lacks"]
    )
    cited = {citation.document_id for citation in result.citations_used} == {row["file"]}
    return said and cited and result.status is RagStatus.GROUNDED


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("part", "questions", "right"), [("tune", 23, 22), ("held", 28, 26)])
def test_a_question_about_a_row_is_answered_by_that_row(
    tables: Pipeline, part: str, questions: int, right: int, strict: bool
) -> None:
    lines = (DATA / "table_questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for line in lines if (row := json.loads(line))["part"] == part]
    assert len(rows) == questions
    assert sum(is_right(row, tables.ask(row["question"], strict=strict)) for row in rows) >= right


def ask(name: str, content: bytes, *questions: str) -> list[str]:
    with Pipeline() as pipeline:
        assert pipeline.ingest(Document(document_id=name, name=name, content=content)).failures == []
        return [pipeline.ask(question).answer for question in questions]


def test_the_row_of_a_word_document_names_its_columns() -> None:
    rows = [["Tool", "Fee", "Deposit"], ["belt sander", "6 euros", "40 euros"], ["jigsaw", "4 euros", "25 euros"]]
    content = word(["The workshop lends out tools."], rows, heading="Tool library")
    questions = [
        "What is the deposit for the jigsaw?",
        "Which tool has a fee of 6 euros?",
        "What is the deposit for the lathe?",
    ]
    assert ask("tools.docx", content, *questions) == [
        "Tool: jigsaw; Fee: 4 euros; Deposit: 25 euros [1]",
        "Tool: belt sander; Fee: 6 euros; Deposit: 40 euros [1]",
        REFUSAL,
    ]


def test_a_column_without_a_name_does_not_hide_the_row() -> None:
    table = "| | Monday | Sunday |\n|---|---|---|\n| Library | 9 to 18 | closed |\n| Pool | 7 to 21 | 10 to 17 |\n"
    answers = ask("hours.md", table.encode(), "When is the Pool open on Sunday?")
    assert answers == ["Pool; Monday: 7 to 21; Sunday: 10 to 17 [1]"]


def test_names_of_columns_as_programs_write_them_are_read_as_words() -> None:
    content = b"order_id,customer,placed_on,total_eur\n1001,Ada,2024-03-02,40\n1002,Bob,2024-03-05,55"
    questions = ["When was order 1001 placed?", "What is the total of order 1002?", "What is the total of order 1005?"]
    assert ask("orders.csv", content, *questions) == [
        "order_id: 1001; customer: Ada; placed_on: 2024-03-02; total_eur: 40 [1]",
        "order_id: 1002; customer: Bob; placed_on: 2024-03-05; total_eur: 55 [1]",
        REFUSAL,
    ]


def test_of_a_wide_table_only_what_bears_on_the_question_is_quoted() -> None:
    head = ["station", "town", *(f"reading {number}" for number in range(60))]
    rows = [[f"S{row}", f"Town{row}", *(str(1000 * row + number) for number in range(60))] for row in range(1, 30)]
    content = "\n".join(",".join(row) for row in [head, *rows]).encode()
    questions = ["What is reading 37 of station S12?", "What is reading 5 of station S99?"]
    assert ask("wide.csv", content, *questions) == ["station: S12; town: Town12; reading 37: 12037 [1]", REFUSAL]


def test_a_row_longer_than_a_passage_keeps_what_it_is_about() -> None:
    remarks = " ".join(f"Remark {number} on its seals, its casing and its bearings." for number in range(120))
    pumps = [("Otter", "410 euros"), ("Heron", "95 euros"), ("Badger", "1200 euros")]
    lines = [f'{name} pump,"The {name} pump moves water. {remarks}",{price}' for name, price in pumps]
    content = "\n".join(["item,description,price", *lines]).encode()
    questions = [
        "What is the price of the Heron pump?",
        "Which pump costs 410 euros?",
        "What does the Weasel pump cost?",
    ]
    *rows, unknown = ask("pumps.csv", content, *questions)
    assert rows == ["item: Heron pump; price: 95 euros [1]", "item: Otter pump; price: 410 euros [1]"]
    assert unknown.startswith((UNSURE, REFUSAL))


@pytest.mark.parametrize("question", ["What does a bolt cost?", "Which bolt has the highest price?"])
def test_what_every_row_has_tells_none_apart(question: str) -> None:
    rows = "\n".join(f"bolt {number},0.{number}0" for number in range(10, 30))
    assert ask("bolts.csv", f"item,price\n{rows}".encode(), question) == [REFUSAL]


def test_a_thing_with_a_property_that_its_row_does_not_have_is_another_thing() -> None:
    content = b"item,material,price\nM8 bolt,brass,0.24\nM9 bolt,steel,0.30"
    questions = ["What does the brass M8 bolt cost?", "What does the copper M8 bolt cost?"]
    assert ask("bolts.csv", content, *questions) == ["item: M8 bolt; material: brass; price: 0.24 [1]", REFUSAL]


def test_two_rows_may_be_asked_about_at_once() -> None:
    content = b"item,price\nM8 bolt,0.24\nM9 bolt,0.30\nM10 bolt,0.41"
    answers = ask("bolts.csv", content, "What do the M8 bolt and the M10 bolt cost?")
    assert answers == ["item: M8 bolt; price: 0.24 [1]\nitem: M10 bolt; price: 0.41 [1]"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_however_small_the_passages_no_row_of_a_table_is_lost_or_nameless(path: Path) -> None:
    parsed = parse(Document(document_id=path.name, name=path.name, content=path.read_bytes()))
    whole = {line for section in parsed.sections for line in with_rows(section.text).split("\n") if "; " in line}
    for size in (64, 128, 512):
        chunks = Chunker(default_counter(), size, 16).cut(parsed, scope="s")
        lines = {line for chunk in chunks for line in with_rows(chunk.text, chunk.heading).split("\n")}
        pieces = [row for row in whole if default_counter().count(row) <= size and row not in lines]
        assert pieces == []


def test_long_lines_that_are_no_rows_carry_nothing_along() -> None:
    text = "; ".join(f"The {number}th remark has no column" for number in range(200))
    chunks = Chunker(default_counter(), 64, 0).cut(ParsedDocument((Section(text, "table"),), "m", "Remarks"), scope="s")
    assert len(chunks) > 1
    assert {chunk.heading for chunk in chunks} == {"Remarks"}


def test_a_cell_longer_than_a_passage_names_its_column_and_its_row() -> None:
    text = "item: pump; note: " + "It is loud. " * 100 + "; price: 4"
    chunks = Chunker(default_counter(), 64, 0).cut(ParsedDocument((Section(text, "table"),), "m"), scope="s")
    assert [chunk.heading for chunk in chunks[:3]] == ["", "item: pump; …", "note > item: pump; …"]
    assert (chunks[-1].text, chunks[-1].heading) == ("price: 4", "item: pump; …")
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)


def test_bars_that_draw_no_table_are_left_alone() -> None:
    text = "Either a | b or c.\n\n| not | a table |\n"
    assert with_rows(text, "Bars") == text
    assert re.search(r"^a: 1; b: x\|y$", with_rows("| a | b |\n|--|:-:|\n| 1 | x\\|y |\n\nEnd."), re.MULTILINE)
