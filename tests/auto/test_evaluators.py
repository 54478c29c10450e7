"""What Ragas and DeepEval measure becomes events of the runs they measured; their own packages, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from spanforge.exceptions import StrictModeError
from spanforge.integrations.evaluators import record_deepeval, record_ragas
from spanforge.sdk import sf_rag
from spanforge.testing import capture

pytestmark = pytest.mark.filterwarnings("ignore")

ANSWERS = ["a" * length for length in (3, 9, 5)]
EXPECTED = [0.3, 0.9, 0.5]


def sessions() -> list[str | None]:
    made: list[str | None] = []
    for number in range(len(ANSWERS)):
        with sf_rag.session(f"question {number}?") as session:
            sf_rag.trace_generation(model="model")
        made.append(session.session_id)
    return made


def of_ragas(answers: Sequence[str], name: str) -> Any:
    ragas = pytest.importorskip("ragas", reason="Ragas is not installed")
    from ragas.metrics.base import MetricType, SingleTurnMetric

    class Share(SingleTurnMetric):
        _required_columns = {MetricType.SINGLE_TURN: {"response"}}  # noqa: RUF012  as its base class has it

        def init(self, run_config: Any) -> None:
            """Nothing to prepare."""

        async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
            return len(sample.response) / 10

    share = Share()
    share.name = name
    samples = [ragas.SingleTurnSample(user_input="?", response=one) for one in answers]
    return ragas.evaluate(ragas.EvaluationDataset(samples), [share], show_progress=False)


def of_deepeval(answers: Sequence[str], name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    deepeval = pytest.importorskip("deepeval", reason="DeepEval is not installed")
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

    class Share(BaseMetric):
        threshold = 0.5

        def measure(self, test_case: Any, *_: Any, **__: Any) -> float:
            self.score, self.success = len(test_case.actual_output) / 10, True
            return self.score

        async def a_measure(self, test_case: Any, *_: Any, **__: Any) -> float:
            return self.measure(test_case)

        def is_successful(self) -> bool:
            return True

        @property
        def __name__(self) -> str:
            return name

    return deepeval.evaluate([LLMTestCase(input="?", actual_output=one) for one in answers], [Share()])


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("faithfulness", "faithfulness"),
        ("answer_relevancy", "answer_relevance"),
        ("nv_context_relevance", "context_relevance"),
        ("nv_response_groundedness", "groundedness"),
    ],
)
def test_ragas(name: str, field: str) -> None:
    with capture() as events:
        record_ragas(sessions(), of_ragas(ANSWERS, name))
    assert [event[field] for event in events.of_type("llm.rag.evaluated")] == EXPECTED


def test_the_names_of_ragas_measures_are_those_of_its_own() -> None:
    metrics = pytest.importorskip("ragas.metrics", reason="Ragas is not installed")
    made = (metrics.Faithfulness, metrics.ResponseRelevancy, metrics.ContextRelevance, metrics.ResponseGroundedness)
    names = ["faithfulness", "answer_relevancy", "nv_context_relevance", "nv_response_groundedness"]
    assert [one.name for one in made] == names


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Faithfulness", "faithfulness"),
        ("Answer Relevancy", "answer_relevance"),
        ("Contextual Relevancy", "context_relevance"),
    ],
)
def test_deepeval(name: str, field: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with capture() as events:
        record_deepeval(sessions(), of_deepeval(ANSWERS, name, monkeypatch))
    assert [event[field] for event in events.of_type("llm.rag.evaluated")] == EXPECTED


def replaced() -> dict[str, int]:
    return sf_rag.get_status().replaced


def test_what_cannot_be_recorded_is_counted() -> None:
    with capture(strict=False) as events:
        before = replaced()
        record_ragas(["a", "b"], SimpleNamespace(scores=[{"faithfulness": float("nan"), "context_precision": 1.0}]))
        record_deepeval(["a"], SimpleNamespace(test_results=[SimpleNamespace(index=None, metrics_data=None)]))
        record_ragas(["a"], None)
        counted = {reason: count - before.get(reason, 0) for reason, count in replaced().items()}
    assert counted["evaluation_unmatched"] == counted["measure_unknown"] == counted["faithfulness"] == 1
    assert counted["integration_failed:AttributeError"] == 1
    assert [event.get("faithfulness") for event in events.of_type("llm.rag.evaluated")] == [None]
    with capture(), pytest.raises(StrictModeError, match="evaluation_unmatched"):
        record_ragas([], SimpleNamespace(scores=[{}]))


def test_deepevals_cases_are_placed_by_their_index() -> None:
    def case(index: int, score: float) -> Any:
        return SimpleNamespace(index=index, metrics_data=[SimpleNamespace(name="Faithfulness", score=score)])

    with capture() as events:
        own = sessions()
        record_deepeval(
            [own[0], None, own[2]], SimpleNamespace(test_results=[case(2, 0.2), case(0, 0.0), case(1, 1.0)])
        )
    found = {event["session_id"]: event["faithfulness"] for event in events.of_type("llm.rag.evaluated")}
    assert found == {own[0]: 0.0, own[2]: 0.2}
