"""Two sessions side by side: what each took, and which chunks the one has and the other has not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from spanforge.namespaces.stages import STAGE_WORDS
from spanforge.viewer.detail import MOST_CHUNKS, Detail
from spanforge.viewer.shown import amount, dollars, duration, score

__all__ = ["ComparedFigure", "Comparison", "Place", "SharedChunk", "comparison"]

_MINUS: Final = "\N{MINUS SIGN}"
_FIGURES: Final[tuple[tuple[str, str, float, Callable[[float], str]], ...]] = (
    ("Time in stages", "total_latency_ms", 1000, duration),
    *((f"Time in {stage}", f"{stage}_latency_ms", 1000, duration) for stage in STAGE_WORDS),
    ("Grounding", "avg_grounding_score", 1, score),
    ("Chunks retrieved", "total_chunks_retrieved", 1, amount),
    ("Chunks used", "total_chunks_used", 1, amount),
    ("Tokens in", "total_input_tokens", 1, amount),
    ("Tokens out", "total_output_tokens", 1, amount),
    ("Cost", "total_cost_usd", 1, dollars),
)
"""What it is called, the field of the summary, its unit in what it is written in, and how it is written."""


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of both sessions, and by how much the second is more; all as they are written."""

    name: str
    first: str
    second: str
    change: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk stands in a session: its last rank, the score it has there, and whether a model was given it."""

    rank: int
    score: float | None
    used: bool


@dataclass(frozen=True, slots=True)
class SharedChunk:
    """A chunk that one of the sessions retrieved, or both."""

    chunk_id: str
    source: str
    first: Place | None
    second: Place | None

    @property
    def word(self) -> str:
        """What became of it on the way from the first to the second: `gained`, `lost` or `kept`."""
        return "gained" if self.first is None else "lost" if self.second is None else "kept"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sessions side by side.

    Attributes:
        same_question: Whether both asked the same, to the letter; None where a trace does not say what was asked.
        chunks: Those of the first in their order, then what the second has more; `hidden` is how many are left out.
    """

    same_question: bool | None
    figures: list[ComparedFigure]
    chunks: list[SharedChunk]
    hidden: int


def comparison(first: Detail, second: Detail) -> Comparison:
    """Put two sessions side by side."""
    asked = [{stage.payload.query_hash for stage in one.session.queries} - {""} for one in (first, second)]
    places = [_places(one) for one in (first, second)]
    sources = {chunk_id: source for found in places for chunk_id, (source, _) in found.items()}
    chunks = [
        SharedChunk(chunk_id, source, *(found[chunk_id][1] if chunk_id in found else None for found in places))
        for chunk_id, source in sources.items()
    ]
    return Comparison(
        same_question=asked[0] == asked[1] if all(asked) else None,
        figures=[figure for row in _FIGURES if (figure := _figure(first, second, row)) is not None],
        chunks=chunks[:MOST_CHUNKS],
        hidden=max(0, len(chunks) - MOST_CHUNKS),
    )


def _figure(first: Detail, second: Detail, row: tuple[str, str, float, Callable[[Any], str]]) -> ComparedFigure | None:
    """Return a figure; None where neither session has it."""
    name, field, unit, written = row
    one, other = (getattr(shown.stored.summary, field) for shown in (first, second))
    if field.endswith("_latency_ms"):
        # A sum of nothing is of stages that nobody timed, or that were not there.
        one, other = one or None, other or None
    if not one and not other:
        return None
    texts = [written(None if value is None else value * unit) for value in (one, other)]
    change = ""
    if one is not None and other is not None:
        sign = "+" if other > one else _MINUS
        change = f"{sign}{written(abs(other - one) * unit)}" if other != one else "the same"
    return ComparedFigure(name, texts[0], texts[1], change)


def _places(one: Detail) -> dict[str, tuple[str, Place]]:
    """Return source and place of each chunk, of the last retrieval that has it."""
    return {
        row.chunk.chunk_id: (
            row.chunk.source,
            Place(
                row.reranked or row.rank or 0, row.chunk.score if row.reranked is None else row.reranked_score, row.used
            ),
        )
        for ranking in one.rankings
        for row in ranking.rows
    }
