from __future__ import annotations

from pathlib import Path

import pytest

from spanforge.reference import Document, Pipeline
from spanforge.reference.answering.answerability import FEATURE_NAMES, FEATURES, default_model
from spanforge.reference.answering.base import whole
from spanforge.reference.answering.choice import Choice, choose
from spanforge.reference.answering.topics import Topic, topics_of
from spanforge.reference.assembly import REFUSAL
from spanforge.reference.grounding.model import Model
from spanforge.reference.grounding.model import default_model as grounders_model
from spanforge.reference.grounding.sentence import Sentence
from spanforge.reference.models import AnsweringInput, RetrievedDocument

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "reference-rag.md"
BRIDGE = "The Rialto Bridge in Venice was finished in 1591. It is 48 metres long and made of stone."


def passage(text: str) -> RetrievedDocument:
    return RetrievedDocument(
        chunk_id="c", document_id="d", data_source_id="s", text=text, content_hash="0" * 64, score=1.0, raw_score=1.0
    )


def chosen(question: str, *texts: str) -> Choice:
    return choose(question, [passage(text) for text in texts or (BRIDGE,)])


def test_a_name_is_one_topic_however_long_and_each_topic_counts_once() -> None:
    question = "Who built the Bridge of Sighs, and who painted the Bridge of Sighs?"
    assert topics_of(Sentence(question, 0)) == [
        Topic(("build",), is_name=False),
        Topic(("bridg", "sigh"), is_name=True),
        Topic(("paint",), is_name=False),
    ]


def test_a_measure_is_no_topic() -> None:
    stems = [topic.stems for topic in topics_of(Sentence("How tall is the tower?", 0), measure="tall")]
    assert stems == [("tower",)]


def test_every_word_that_the_sentence_lacks_makes_an_answer_less_likely() -> None:
    questions = [
        "When was the Rialto Bridge in Venice finished?",
        "When was the Rialto Bridge in Venice painted?",
        "When was the Rialto Bridge in Venice painted and insured?",
    ]
    first, second, third = (chosen(question).answerability for question in questions)
    assert first > second > third
    assert chosen(questions[0]).answers


@pytest.mark.parametrize(
    ("question", "feature"),
    [
        ("Who finished the Rialto Bridge?", "kind_absent"),
        ("How many stones was the Rialto Bridge finished with?", "uncounted"),
        ("When was the Rialto Bridge in Venice not finished?", "negation"),
        ("When was the Rialto Bridge in Venice begun and paid by merchants?", "nowhere"),
    ],
)
def test_what_speaks_against_an_answer_is_named(question: str, feature: str) -> None:
    plain = chosen("When was the Rialto Bridge in Venice finished?").features
    assert chosen(question).features[feature] > plain[feature] == 0.0


def test_a_question_about_a_name_that_no_passage_knows_is_refused_whatever_else_matches() -> None:
    text = "The Beacon service is maintained by the Lantern team."
    assert chosen("Who maintains the Beacon service?", text).answers
    assert chosen("Who maintains the Meridian service?", text) == Choice()


def test_a_question_written_like_a_title_has_no_names_to_be_missed() -> None:
    assert chosen("When Finished Rialto Bridge Venice Stone Merchant?").features["name_nowhere"] == 0.0


def test_a_place_is_nobody() -> None:
    assert chosen("Who finished the Rialto Bridge?", "In Venice the Rialto Bridge was finished.").features[
        "kind_absent"
    ]
    assert not chosen("Who finished the Rialto Bridge?", "Antonio da Ponte finished the Rialto Bridge.").features[
        "kind_absent"
    ]


@pytest.mark.parametrize("strict", [False, True])
def test_an_extra_condition_that_no_document_knows_is_not_overlooked(strict: bool) -> None:
    with Pipeline() as pipeline:
        pipeline.ingest(Document(document_id="d", text="Paris is the capital of France and its largest city."))
        assert pipeline.ask("What is the capital of France?", strict=strict).answer == "Paris [1]"
        result = pipeline.ask("What is the capital of France famous for in chess?", strict=strict)
    assert (result.answer, result.confidence) == (REFUSAL, 0.0)


def test_strict_mode_refuses_what_is_less_likely_than_not_an_answer() -> None:
    with Pipeline() as pipeline:
        pipeline.ingest(Document(document_id="d", text=BRIDGE))
        assert pipeline.ask("How long is the Rialto Bridge?", strict=True).answer == "48 metres [1]"
        question = "Who designed the Rialto Bridge in Venice?"
        assert pipeline.ask(question).answer == "The Rialto Bridge in Venice was finished in 1591. [1]"
        refused = pipeline.ask(question, strict=True)
    assert (refused.answer, refused.failure) == (REFUSAL, "INSUFFICIENT_CONTEXT")


def test_strict_use_has_the_higher_threshold_and_the_grounder_has_one_for_both() -> None:
    model = default_model()
    assert 0.0 < model.threshold < model.strict_threshold < 1.0
    assert Model.from_dict(model.to_dict(), FEATURE_NAMES) == model
    plain = grounders_model()
    assert plain.strict_threshold == plain.threshold
    assert "strict_threshold" not in plain.to_dict()


def test_features_stay_within_their_range_and_weights_have_the_signs_of_their_meaning() -> None:
    features = chosen("Why was the Rialto Bridge never finished in stone before 1423?").features
    assert tuple(features) == FEATURE_NAMES
    assert all(0.0 <= value <= 1.0 for value in features.values())
    assert all(default_model().weights[feature.name] * feature.sign >= 0.0 for feature in FEATURES)


def test_a_models_answer_is_as_sure_as_its_passages_and_its_citations_allow() -> None:
    request = AnsweringInput(
        query="When was the Rialto Bridge finished?", prompt="", grounded_docs=[passage(BRIDGE)], citations=[]
    )
    cited = whole(request, "It was finished in 1591 [1].", model="m").confidence
    half = whole(request, "It was finished in 1591 [1]. It is famous.", model="m").confidence
    assert cited == pytest.approx(chosen("When was the Rialto Bridge finished?").answerability)
    assert half == pytest.approx(cited / 2)
    assert whole(request, "", model="m").confidence == 0.0


def test_the_page_gives_the_weights_and_the_threshold_that_are_in_use() -> None:
    text = PAGE.read_text(encoding="utf-8")
    model = default_model()
    for feature in FEATURES:
        assert f"| `{feature.name}` | {model.weights[feature.name]} |" in text
    assert f"threshold {model.threshold}, in strict mode {model.strict_threshold}" in " ".join(text.split())
