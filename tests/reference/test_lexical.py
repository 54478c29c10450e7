"""Words of scripts that the search reads by rules of their own."""

from __future__ import annotations

import pytest

from spanforge.reference import Document, Pipeline
from spanforge.reference.lexical import terms, words


def test_scripts_without_blanks_are_read_two_characters_at_a_time() -> None:
    assert words("会議室は三階") == ["会議", "議室", "室は", "は三", "三階"]
    assert words("Room 3の室, 室") == ["room", "3", "の室", "室"]


def test_greek_is_the_same_word_in_capitals_and_with_accents() -> None:
    assert terms("Λιμένας, ΛΙΜΕΝΑΣ") == ["λιμενασ"] * 2


def test_other_scripts_and_plain_text_stay_as_they_are() -> None:
    assert words("Ærø's 1.5 Café, ĳs") == ["ærø", "s", "1.5", "café", "ijs"]
    assert words("회의실은 Три ВОЛКА") == ["회의실은", "три", "волка"]


@pytest.mark.parametrize(
    ("asked", "document"), [("駐車場はどこですか", "ja"), ("停车场", "zh"), ("ΩΡΕΣ ΛΙΜΑΝΙΟΥ", "el")]
)
def test_words_within_a_sentence_are_found_without_vectors(asked: str, document: str) -> None:
    texts = {
        "ja": "会議室は三階にあり、駐車場は地下です。",
        "zh": "会议室在三楼。停车场在地下。",
        "el": "Ωράριο: ώρες λιμανιού.",
    }
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest([Document(document_id=name, text=text) for name, text in texts.items()])
        assert pipeline.retrieve(asked).documents[0].document_id == document
