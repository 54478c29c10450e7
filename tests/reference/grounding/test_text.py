from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spanforge.reference.grounding.rows import cells_of
from spanforge.reference.grounding.text import MAX_ROW_CHARS, MAX_SENTENCE_CHARS, TOKEN, sentence_spans


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def test_sentences_end_at_marks_and_at_lines():
    assert cut('He said: "Stop." Then he left! Why?\nA heading\nAnother') == [
        'He said: "Stop.',
        "Then he left!",
        "Why?",
        "A heading",
        "Another",
    ]


def test_a_wrapped_line_goes_on():
    assert cut("This sentence was wrapped\nby an editor at a\nnarrow margin.") == [
        "This sentence was wrapped\nby an editor at a\nnarrow margin."
    ]


def test_a_row_of_a_table_is_one_sentence_and_goes_on_in_no_other() -> None:
    rows = ["item: bolt; price: 0.24", "item: nut; note: Sold out. Ask again; price: 0.07; shelf: B2"]
    assert cut("Prices. All of them\n" + "\n".join(rows)) == ["Prices.", "All of them", *rows]


@pytest.mark.parametrize(
    "line",
    [
        "He said this: it rained; and that: it snowed. Nobody listened.",
        "- Opening hours: nine to five; closed: never",
        "One remark; another: with a colon",
        "The strait (Danish: Sundet; Swedish: Sundet; German: der Sund) is narrow",
        "A trial of twelve people in three towns was read again (dose: ten; age: forty; risk: low)",
    ],
)
def test_prose_with_colons_and_semicolons_is_no_row(line: str) -> None:
    assert cells_of(line) == ()


def test_the_cells_of_a_row_keep_what_stands_in_them() -> None:
    assert [str(cell) for cell in cells_of("Mon; name: Ada; tags: a; b; time: 7:30")] == [
        "Mon",
        "name: Ada",
        "tags: a; b",
        "time: 7:30",
    ]


def test_other_scripts_have_sentence_marks_too():
    assert cut("\u6771\u4eac\u306f\u9996\u90fd\u3067\u3059\u3002\u5927\u962a\u306f\u90fd\u5e02\u3067\u3059\u3002") == [
        "\u6771\u4eac\u306f\u9996\u90fd\u3067\u3059\u3002",
        "\u5927\u962a\u306f\u90fd\u5e02\u3067\u3059\u3002",
    ]


def test_names_with_digits_and_dotted_abbreviations_are_one_token():
    assert TOKEN.findall("COVID-19 in the U.S. cost 1,200.50") == ["COVID-19", "in", "the", "U.S.", "cost", "1,200.50"]


@given(st.text())
@example(" " * 5_000)
@example("\n \n" * 500)
@example("a" * (3 * MAX_SENTENCE_CHARS))
@example("\\n" * 50)
@example("a: 1; b: 2\n" * 3 + "and so on")
@example("a: " + "x " * 1_000 + "; b: " + "y. Z " * 1_000)
def test_spans_are_ordered_bounded_and_lose_only_white_space_and_marks(text: str):
    spans = sentence_spans(text)
    longest = MAX_ROW_CHARS if "; " in text else MAX_SENTENCE_CHARS
    assert all(0 < end - start <= longest for start, end in spans)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans))
    letters = [letter for letter in text.replace("\\n", "  ") if letter.isalpha()]
    kept = [letter for start, end in spans for letter in text[start:end].replace("\\n", "  ") if letter.isalpha()]
    assert kept == letters


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The works were founded in a former bakery by the toolmaker and inventor Gunnar\nHalden and his wife.", 1),
        (
            "It proposes a module for parsing a language of that name (Tom's Own Language,\n[1]) in the library.",
            1,
        ),
        ("Apples from the north\nPears from the south", 2),
        ("The works were founded in a former bakery by the toolmaker and inventor Gunnar\n- first item", 2),
        ("The works were founded in a former bakery by the toolmaker and inventor Gunnar.\nHalden died.", 2),
        ("# The works were founded in a former bakery by the toolmaker and inventor Gunnar\nHalden died.", 2),
        ("The works were founded in a former bakery by the toolmaker and inventor Gunnar\n\nHalden died.", 2),
    ],
)
def test_a_line_broken_for_want_of_room_ends_no_sentence(text: str, count: int) -> None:
    assert len(sentence_spans(text)) == count
