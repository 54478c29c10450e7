"""Models in ONNX form: an embedder, and a cross-encoder that decides what the grounder is unsure of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.tiny_onnx import write_cross_encoder, write_model

from spanforge.reference import Pipeline, grounding
from spanforge.reference.embedding import open_embedder
from spanforge.reference.entailment import OnnxCrossEncoder, SecondOpinion
from spanforge.reference.failures import EmbeddingFailed, GroundingFailed, InvalidInput

CONTEXTS = ["The ferry to the island leaves at nine.", "Tickets are sold on board."]
CLAIM = "Boats depart from the harbour every morning."
AGREES = {"Tickets": (0.0, 90.0, 0.0), "leaves": (0.0, 0.0, 1.0)}
DENIES = {"Tickets": (90.0, 0.0, 0.0), "leaves": (0.0, 0.0, 1.0)}
SAYS_NOTHING = {"Tickets": (0.0, 0.0, 90.0), "leaves": (0.0, 0.0, 90.0)}


def test_an_encoder_gives_unit_vectors_of_the_mean_of_its_tokens(tmp_path: Path) -> None:
    write_model(tmp_path / "m", {"sea": (3.0, 0.0), "land": (0.0, 4.0)}, pooled=False)
    embedder = open_embedder(f"onnx:{tmp_path / 'm'}")
    assert embedder.dimensions == 2
    vectors = embedder.embed(["sea", "sea sea sea land", "land", "\ud800 sea"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert np.allclose(vectors[0], (1.0, 0.0))
    assert np.allclose(vectors[1], np.array((9.0, 4.0)) / np.hypot(9.0, 4.0), atol=1e-6)
    assert embedder.embed([]).shape == (0, 2)


def test_a_pipeline_searches_with_it(tmp_path: Path) -> None:
    write_model(tmp_path / "m", {"sea": (3.0, 0.1), "land": (0.1, 4.0), "ocean": (2.9, 0.1)}, pooled=True)
    (tmp_path / "sea.md").write_text("sea sea")
    (tmp_path / "land.md").write_text("land land")
    with_model = Pipeline(embedder=f"onnx:{tmp_path / 'm'}")
    with_model.ingest([tmp_path / "sea.md", tmp_path / "land.md"])
    assert [found.document_id for found in with_model.retrieve("ocean").documents][:1] == [str(tmp_path / "sea.md")]


@pytest.mark.parametrize(
    ("words", "verdict", "context"),
    [(AGREES, "supported", 1), (DENIES, "contradicted", 1), (SAYS_NOTHING, "not_found", None)],
)
def test_a_claim_in_the_uncertain_band_is_decided_by_the_second_judge(tmp_path, words, verdict, context) -> None:
    judge = f"onnx:{write_cross_encoder(tmp_path / 'nli', words)}"
    decided = SecondOpinion(judge, band=(0.0, 1.0)).verify_answer(CLAIM, CONTEXTS).verdicts[0]
    assert (decided.verdict, decided.context_index, decided.judge) == (verdict, context, judge)
    assert decided.evidence == (None if context is None else (0, len(CONTEXTS[context])))
    assert 0.0 <= decided.probability <= 1.0


def test_outside_the_band_the_bundled_grounder_decides(tmp_path: Path) -> None:
    first = grounding.verify_answer(CLAIM, CONTEXTS)
    probability = first.verdicts[0].probability
    opinion = SecondOpinion(f"onnx:{write_cross_encoder(tmp_path, AGREES)}", band=(probability + 0.01, 1.0))
    assert opinion.verify_answer(CLAIM, CONTEXTS) == first
    assert first.verdicts[0].judge == "words"
    assert opinion.verify_answer("I do not know.", CONTEXTS).status == "no_claims"
    assert opinion.verify_answer(CLAIM, []) == grounding.verify_answer(CLAIM, [])
    assert opinion.groundability("When?", CONTEXTS) == grounding.groundability("When?", CONTEXTS)


def test_a_pipeline_is_given_it_as_its_grounder(tmp_path: Path) -> None:
    (tmp_path / "ferry.md").write_text("The ferry to the island leaves at nine. Tickets are sold on board.")
    judge = f"onnx:{write_cross_encoder(tmp_path / 'nli', DENIES)}"
    pipeline = Pipeline(grounder=SecondOpinion(judge, band=(0.0, 1.0)))
    pipeline.ingest(tmp_path / "ferry.md")
    result = pipeline.ask("When does the ferry leave?")
    assert [claim.verdict for claim in result.claims] == ["contradicted"]
    assert result.grounding_score == 0.0


def test_a_folder_that_is_no_model_is_a_clear_failure(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingFailed, match=r"needs model\.onnx"):
        open_embedder(f"onnx:{tmp_path}")
    with pytest.raises(GroundingFailed, match="id2label"):
        OnnxCrossEncoder(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"0": "entailment", "1": "contradiction"}}))
    with pytest.raises(GroundingFailed, match=r"needs model\.onnx"):
        OnnxCrossEncoder(str(tmp_path))
    write_model(tmp_path, AGREES, pooled=True)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(GroundingFailed, match="cannot be loaded"):
        OnnxCrossEncoder(str(tmp_path))
    write_model(tmp_path, AGREES, pooled=False)
    with pytest.raises(GroundingFailed, match="no class for each pair"):
        OnnxCrossEncoder(str(tmp_path)).judge([("a", "b")])


@pytest.mark.parametrize(("judge", "band"), [("nli", (0.3, 0.8)), ("onnx:", (0.3, 0.8)), ("onnx:x", (0.8, 0.3))])
def test_a_judge_or_a_band_that_is_none(judge: str, band: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput):
        SecondOpinion(judge, band)


def test_an_answer_of_yes_claims_what_was_asked(tmp_path: Path) -> None:
    class Yes:
        model, provider = "yes", "tests"

        def answer(self, request: object) -> object:
            from spanforge.reference.models import AnsweringOutput

            return AnsweringOutput(answer="Yes.", citations_used=[], confidence=0.5, model="yes")

    (tmp_path / "ferry.md").write_text("The ferry to the island leaves at nine.")
    pipeline = Pipeline(answerer=Yes())
    pipeline.ingest(tmp_path / "ferry.md")
    result = pipeline.ask("Does the ferry to the island leave at nine?")
    assert [claim.claim for claim in result.claims] == ["Yes."]
