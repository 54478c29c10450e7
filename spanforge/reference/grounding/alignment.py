"""Which sentence of the contexts speaks about a claim, and word by word how the two correspond."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from spanforge.reference.grounding.contexts import PreparedContexts
from spanforge.reference.grounding.lexicon import ALIKE
from spanforge.reference.grounding.sentence import Sentence

MAX_CANDIDATES: Final = 4
"""Sentences compared word by word; the rest are ranked by weighted word overlap alone."""

_SHORTLIST: Final = 12
"""Sentences, by weighted word overlap, whose neighbours are looked at."""

_ALIKE_SHARE: Final = 0.7
"""What a word counts when only a synonym of it is there."""

_NEIGHBOUR_SHARE: Final = 0.25
"""What a word counts when only the sentence before or after the candidate has it."""

_NEXT: Final = 3
"""Tokens within which one word follows another: marks and words without matter may stand between."""

_REACH: Final = 6
"""Tokens of the evidence searched for what stands where a claim's word should stand."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """Claim words without a match, and the evidence words standing in their place."""

    claimed: tuple[int, ...]
    found: tuple[int, ...]


@dataclass(frozen=True)
class Alignment:
    """One claim sentence beside one context sentence.

    Attributes:
        number: Index of the evidence in the prepared contexts.
        recall: Share of the claim's word weight found in the evidence, in [0, 1].
        rank: ``recall`` with part of what a neighbouring sentence adds; what candidates are ordered by.
        matched: Claim token index → evidence token index.
    """

    claim: Sentence = field(repr=False)
    evidence: Sentence = field(repr=False)
    number: int
    recall: float
    rank: float
    matched: dict[int, int] = field(repr=False)

    @property
    def adjacent(self) -> float:
        """Share of the pairs of neighbouring words of the claim that stand as near each other here, in their order."""
        claimed = [index for index, word in enumerate(self.claim.stems) if word]
        places = [self.matched.get(index, -1) for index in claimed]
        near = sum(0 <= first < second <= first + _NEXT for first, second in itertools.pairwise(places))
        return near / max(1, len(claimed) - 1)

    @cached_property
    def substitutions(self) -> tuple[Substitution, ...]:
        """Places where both sides have unmatched words between the same matched neighbours."""
        taken = set(self.matched.values())
        runs: list[list[int]] = []
        for index, word in enumerate(self.claim.stems):
            if not word:
                continue
            if index in self.matched:
                runs.append([])
            elif runs:
                runs[-1].append(index)
            else:
                runs.append([index])
        anchors = [index for index, word in enumerate(self.claim.stems) if word and index in self.matched]
        if len(runs) > len(anchors):
            anchors.insert(0, -1)
        found: list[Substitution] = []
        for place, run in enumerate(runs):
            if not run:
                continue
            left = self.matched.get(anchors[place], -1)
            right = self.matched.get(anchors[place + 1], -1) if place + 1 < len(anchors) else -1
            instead = self._between(left, right, taken)
            if instead:
                found.append(Substitution(tuple(run), instead))
        return tuple(found)

    def _between(self, left: int, right: int, taken: set[int]) -> tuple[int, ...]:
        stems = self.evidence.stems
        if left >= 0 and right > left:
            span = range(left + 1, min(right, left + 1 + _REACH)) if right - left <= 2 * _REACH else range(0)
        elif left >= 0 and right < 0:
            span = range(left + 1, min(len(stems), left + 1 + _REACH))
        elif right >= 0 and left < 0:
            span = range(max(0, right - _REACH), right)
        else:
            span = range(0)
        return tuple(index for index in span if stems[index] and index not in taken)


def align(claim: Sentence, contexts: PreparedContexts, weight: Callable[[str], float]) -> list[Alignment]:
    """Return up to ``MAX_CANDIDATES`` context sentences nearest to a claim, best first; on a tie the earlier one.

    ``weight`` tells how much a stem matters, in (0, 1].
    """
    weights = {word: weight(word) for word in claim.words}
    total = sum(weights.values())
    scores: dict[int, float] = {}
    for word, value in weights.items():
        for number in contexts.postings.get(word, ()):
            scores[number] = scores.get(number, 0.0) + value
        for other in ALIKE.get(word, ()):
            for number in contexts.postings.get(other, ()):
                if word not in contexts.sentences[number].content:
                    scores[number] = scores.get(number, 0.0) + _ALIKE_SHARE * value
    shortlist = heapq.nsmallest(_SHORTLIST, scores, key=lambda number: (-scores[number], number))
    ranks = {number: scores[number] + _neighbours_add(contexts, number, claim.content, weights) for number in shortlist}
    best = sorted(ranks, key=lambda number: (-ranks[number], number))[:MAX_CANDIDATES]
    return [
        _compare(claim, contexts.sentences[number], number, scores[number] / total, ranks[number] / total)
        for number in best
    ]


def _neighbours_add(
    contexts: PreparedContexts, number: int, claimed: frozenset[str], weights: Mapping[str, float]
) -> float:
    """Return what the better neighbour adds: a sentence often leaves its subject to the one before it."""
    absent = claimed - contexts.sentences[number].content
    added = [math.fsum(weights[word] for word in absent & beside.content) for beside in contexts.around(number)]
    return _NEIGHBOUR_SHARE * max(added)


def _compare(claim: Sentence, evidence: Sentence, number: int, recall: float, rank: float) -> Alignment:
    positions = evidence.positions
    matched: dict[int, int] = {}
    last = -1
    for index, word in enumerate(claim.stems):
        if not word:
            continue
        places = positions.get(word)
        if places is None:
            places = next((positions[other] for other in ALIKE.get(word, ()) if other in positions), None)
        if places:
            last = next((place for place in places if place > last), places[0])
            matched[index] = last
    return Alignment(claim, evidence, number, min(1.0, recall), rank, matched)
