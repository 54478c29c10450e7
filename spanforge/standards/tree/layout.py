"""When the stages of a session ran, where they were reported after the fact.

An event is made when its stage is reported. An application that reports a whole run in one breath makes all its
events at one moment, each with a latency that reaches back over the others. What was reported before something else
happened before it, so such stages are laid end to end, in pipeline order, up to the moment of the last report. Stages
of one kind may run side by side, and stages that were reported as they ended stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
)
from spanforge.standards.tree.stages import Stage

__all__ = ["PIPELINE", "laid_out", "union_ns"]

PIPELINE: Final[tuple[type[Payload], ...]] = (
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RerankPayload,
    RAGSpanPayload,
    RAGEvaluationPayload,
)
"""The kinds of stages that take time, in the order in which a pipeline runs them."""

_Stages = Sequence[Stage[Payload]]


def laid_out(stages: _Stages) -> tuple[Stage[Payload], ...]:
    """Return the stages, in the order given, each with the moments at which it ran.

    Args:
        stages: In the order of their reports.
    """
    breaths = _breaths([stage for stage in stages if type(stage.payload) in PIPELINE])
    if all(len(breath) == 1 for breath in breaths):
        return tuple(stages)
    placed = {stage.event.event_id: stage for stage in _placed(breaths)}
    return tuple(placed.get(stage.event.event_id, stage) for stage in stages)


def _breaths(stages: _Stages) -> list[list[Stage[Payload]]]:
    """Split stages into those reported together.

    A stage belongs to the report before it where less than half of its own time had passed since something of another
    kind was reported, which it must have followed.
    """
    breaths: list[list[Stage[Payload]]] = []
    reported: dict[type[Payload], int] = {}
    for stage in stages:
        kind = type(stage.payload)
        before = max([moment for other, moment in reported.items() if other is not kind], default=None)
        if before is not None and 2 * (stage.end_ns - before) < stage.length_ns:
            breaths[-1].append(stage)
        else:
            breaths.append([stage])
        reported[kind] = stage.end_ns
    return breaths


def _placed(breaths: Sequence[_Stages]) -> Iterable[Stage[Payload]]:
    """Yield every stage with its moments, from the last to the first: each ends before what follows it begins."""
    begun: dict[type[Payload], int] = {}
    for breath in reversed(breaths):
        together = len(breath) > 1
        for stage in reversed(_in_pipeline_order(breath)):
            kind = type(stage.payload)
            limits = [moment for other, moment in begun.items() if together or other is not kind]
            end = min([stage.end_ns, *limits])
            if not together and end == stage.end_ns:
                yield stage
                continue
            start = max(0, end - stage.length_ns)
            begun[kind] = min(start, begun.get(kind, start))
            yield stage._replace(start_ns=start, end_ns=end, reconstructed=True)


def _in_pipeline_order(breath: _Stages) -> list[Stage[Payload]]:
    """Return stages by the place of their kind in a pipeline, which each query begins anew."""
    rounds, keyed = 0, list[tuple[int, int, Stage[Any]]]()
    for stage in breath:
        place = PIPELINE.index(type(stage.payload))
        rounds += place == 0
        keyed.append((rounds, place, stage))
    return [stage for _, _, stage in sorted(keyed, key=lambda one: one[:2])]


def union_ns(stages: Iterable[Stage[Payload]]) -> int:
    """Return how long at least one of the stages was running."""
    total = until = 0
    for stage in sorted(stages, key=lambda stage: stage.start_ns):
        total += max(0, stage.end_ns - max(stage.start_ns, until))
        until = max(until, stage.end_ns)
    return total
