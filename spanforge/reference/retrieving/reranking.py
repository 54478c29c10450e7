"""Reordering candidates by reading them, without a model.

The fused score knows which words a passage holds and what it is about. Reading the passage adds what both
searches miss: whether it says a word by another, and whether the question's words stand together in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from spanforge.reference.embedding.nearness import nearest, vectors_of
from spanforge.reference.lexical import STOP_WORDS, rarity, stem, words
from spanforge.reference.retrieving.understanding import ProcessedQuery

DEFAULT_RERANKER = "spanforge-lexical-2"


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
    """Adds to the fused score how near the passage comes to each word, and which of them stand together in it.

    Both searches look at words as they are written, or at the passage as a whole. That "drug" is as good as
    "medicine", and that "heat transfer" stands together, is what neither sees: each word counts by the
    nearest in meaning that the passage has (MaxSim, as Khattab and Zaharia 2020 have it), and each two
    neighbours where they are near each other. Only the first candidates are read; the rest stay below them.
    """

    name = DEFAULT_RERANKER
    depth = 20
    meaning_weight = 0.3
    pairs_weight = 0.2
    reach = 2

    def rerank(self, query: ProcessedQuery, readings: Sequence[Reading]) -> list[float]:
        """Return the new scores."""
        if not query.keywords or not readings:
            return [reading.score for reading in readings]
        scores = [(1.0 - self.meaning_weight - self.pairs_weight) * reading.score for reading in readings]
        read = sorted(range(len(readings)), key=lambda i: (-readings[i].score, i))[: self.depth]
        rare = rarity(query.terms, [frozenset(readings[i].terms) for i in read])
        near = _nearness(query.keywords, rare, [readings[i].text for i in read])
        wanted = frozenset(_near(query.terms, frozenset(query.terms), 1))
        for i, meaning in zip(read, near, strict=True):
            found = wanted.intersection(_near(readings[i].terms, frozenset(query.terms), self.reach))
            pairs = len(found) / len(wanted) if wanted else readings[i].score
            scores[i] += self.meaning_weight * meaning + self.pairs_weight * pairs
        return scores


def _nearness(keywords: Sequence[str], rare: Mapping[str, float], texts: Sequence[str]) -> list[float]:
    """Return for each text the share in [0, 1] of the keywords' weight, each by the nearest word it has."""
    own = [frozenset(words(text)) - STOP_WORDS for text in texts]
    vocabulary = {word: place for place, word in enumerate(sorted(frozenset[str]().union(*own)))}
    vectors = vectors_of([*keywords, *vocabulary])
    places = [[vocabulary[word] for word in said] for said in own]
    weights = np.array([rare[stem(word)] for word in keywords])
    near = nearest(vectors[: len(keywords)], vectors[len(keywords) :], places)
    return np.clip(near @ (weights / weights.sum()), 0.0, 1.0).tolist()


def _near(words: Sequence[str], asked: frozenset[str], reach: int) -> Iterator[tuple[str, str]]:
    """Yield the pairs of asked words at most ``reach`` apart, each in alphabetical order."""
    places = [i for i, word in enumerate(words) if word in asked]
    for n, place in enumerate(places):
        for other in places[n + 1 :]:
            if other - place > reach:
                break
            left, right = words[place], words[other]
            yield (left, right) if left <= right else (right, left)
