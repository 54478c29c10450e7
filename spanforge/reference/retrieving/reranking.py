"""Reordering candidates by reading them, without a model.

The fused score knows which words a passage holds and what it is about. Reading the passage adds what both
searches miss: whether the question's words stand together in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spanforge.reference.retrieving.understanding import ProcessedQuery

DEFAULT_RERANKER = "spanforge-lexical-1"


@dataclass(frozen=True, slots=True)
class Reading:
    """A candidate as a reranker receives it: text, stems in order, and the score so far in [0, 1]."""

    text: str = field(repr=False)
    terms: tuple[str, ...] = field(repr=False)
    score: float


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
    """Adds to the fused score the share of the question's neighbouring words that stand near each other.

    Both searches look at words one by one, or at the passage as a whole; that "heat transfer" stands
    together is what neither sees. Measured on public sets, this share at 0.3 raised nDCG@10 on three of
    four, and the covered share of the question's words, or the likeness of the best sentence, added nothing
    to it worth their cost.
    """

    name = DEFAULT_RERANKER
    weight = 0.3
    reach = 2

    def rerank(self, query: ProcessedQuery, readings: Sequence[Reading]) -> list[float]:
        """Return the new scores."""
        wanted = frozenset(_near(query.terms, frozenset(query.terms), 1))
        if not wanted:
            return [reading.score for reading in readings]
        asked = frozenset(query.terms)
        scores: list[float] = []
        for reading in readings:
            found = wanted.intersection(_near(reading.terms, asked, self.reach))
            scores.append((1.0 - self.weight) * reading.score + self.weight * len(found) / len(wanted))
        return scores


def _near(words: Sequence[str], asked: frozenset[str], reach: int) -> Iterator[tuple[str, str]]:
    """Yield the pairs of asked words at most ``reach`` apart, each in alphabetical order."""
    places = [i for i, word in enumerate(words) if word in asked]
    for n, place in enumerate(places):
        for other in places[n + 1 :]:
            if other - place > reach:
                break
            left, right = words[place], words[other]
            yield (left, right) if left <= right else (right, left)
