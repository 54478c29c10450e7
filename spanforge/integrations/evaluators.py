"""What Ragas and DeepEval measured of runs, as the runs' own events."""

# What is handed over has no types that hold in all versions of an evaluator.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from spanforge.integrations._quiet import counted
from spanforge.sdk import sf_rag

__all__ = ["record_deepeval", "record_ragas"]

_MEASURES: Final = {
    "faithfulness": "faithfulness",
    "answer_relevancy": "answer_relevance",
    "contextual_relevancy": "context_relevance",
    "nv_context_relevance": "context_relevance",
    "nv_response_groundedness": "groundedness",
}
"""Names of measures, those of DeepEval in Ragas' spelling, and the keywords of `trace_evaluation` they are."""


@counted
def record_ragas(session_ids: Sequence[str | None], result: Any) -> None:
    """Record what Ragas measured as an evaluation event of each session.

    A measure that `trace_evaluation` has no name for is left out and counted (`measure_unknown`), and so is one that
    is no number, as Ragas has it where its own model failed; samples beyond the sessions, and sessions beyond the
    samples, are counted (`evaluation_unmatched`). Nothing is raised but in strict mode.

    Args:
        session_ids: The sessions, in the order of the samples; None passes a sample over.
        result: What `ragas.evaluate()` returned; its `scores` are a mapping for each sample.
    """
    _record("ragas", session_ids, [dict(scores) for scores in result.scores])


@counted
def record_deepeval(session_ids: Sequence[str | None], result: Any) -> None:
    """Record what DeepEval measured as an evaluation event of each session, as `record_ragas` does.

    Args:
        session_ids: The sessions, in the order of the test cases; None passes a case over.
        result: What `deepeval.evaluate()` returned; its `test_results` say by `index` whose they are.
    """
    placed = enumerate(result.test_results)
    in_order = sorted(placed, key=lambda one: one[0] if one[1].index is None else one[1].index)
    _record("deepeval", session_ids, [_scores(one.metrics_data or ()) for _, one in in_order])


def _scores(measured: Iterable[Any]) -> dict[str, Any]:
    return {one.name.lower().replace(" ", "_"): one.score for one in measured}


def _record(evaluator: str, session_ids: Sequence[str | None], samples: Sequence[Mapping[str, Any]]) -> None:
    note = sf_rag.cell.get().note
    if len(session_ids) != len(samples):
        note("evaluation_unmatched")
    for session_id, scores in zip(session_ids, samples, strict=False):
        if session_id is None:
            continue
        known = {_MEASURES[name]: score for name, score in scores.items() if name in _MEASURES}
        if len(known) < len(scores):
            note("measure_unknown")
        if known:
            sf_rag.trace_evaluation(session_id, evaluator=evaluator, **known)
