"""Reordering candidates by reading them, without a model.

The fused score knows which words a passage holds and what it is about. Reading the passage adds what both
searches
miss: how much of the question's weight it covers, and whether the question's words stand together in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from spanforge.reference.lexical import absent_weight, coverage, rarity, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanforge.reference.understanding import ProcessedQuery

DEFAULT_RERANKER = "spanforge-lexical-1"


@dataclass(frozen=True, slots=True)
class Reading:
    """A candidate as a reranker receives it."""

    text: str
    score: float

    def __repr__(self) -> str:
        return f"Reading(score={self.score})"


class Reranker(Protocol):
    """Gives candidates new scores."""

    @property
    def name(self) -> str:
        """Name for the trace."""
        ...

    def rerank(self, query: ProcessedQuery, readings: Sequence[Reading]) -> list[float]:
        """Return one score in [0, 1] a candidate, in the order given.

        Raises:
            RerankFailed: The reranker could not do its work.
        """
        ...


class LexicalReranker:
    """Adds to the fused score the covered share of the question's weight and of its neighbouring word pairs.

    Both shares weigh a word by its rarity among the candidates, so that what all of them say decides nothing.
    """

    name = DEFAULT_RERANKER
    coverage_weight = 0.15
    pairs_weight = 0.10

    def rerank(self, query: ProcessedQuery, readings: Sequence[Reading]) -> list[float]:
        """Return the new scores."""
        passages = [terms(reading.text) for reading in readings]
        wanted = query.terms
        weights = rarity([set(passage) for passage in passages])
        default = absent_weight(len(passages))
        pairs = [f"{a} {b}" for a, b in zip(wanted, wanted[1:], strict=False)]
        rest = 1.0 - self.coverage_weight - self.pairs_weight
        scores: list[float] = []
        for reading, passage in zip(readings, passages, strict=True):
            covered = coverage(wanted, passage, weights, default)
            together = {f"{a} {b}" for a, b in zip(passage, passage[1:], strict=False)}
            paired = sum(pair in together for pair in pairs) / len(pairs) if pairs else 0.0
            scores.append(rest * reading.score + self.coverage_weight * covered + self.pairs_weight * paired)
        return scores
