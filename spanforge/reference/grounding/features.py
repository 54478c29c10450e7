"""The named features by which a claim is judged against its contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from spanforge.reference.grounding.alignment import Alignment, align
from spanforge.reference.grounding.contexts import PreparedContexts
from spanforge.reference.grounding.contradiction import AMOUNT_CONFLICTS, Conflict, conflicts, contraries
from spanforge.reference.grounding.lexicon import ALIKE, FRAME_WORDS, says
from spanforge.reference.grounding.quantities import names_amount
from spanforge.reference.grounding.sentence import Sentence

MAX_UNITS: Final = 32
"""Sentences of one claim that are judged; a claim is meant to be one sentence, and the rest would only cost time."""

_CONFLICT_COST: Final = 0.12
"""Recall by which another sentence may be worse and still be preferred as evidence because it does not conflict."""

_ALIGNED_FROM: Final = 0.3
"""Recall below which two sentences hardly speak about the same thing, so that a conflict means nothing."""


_ENOUGH: Final = 0.7
"""Share of a claim's word weight that a paraphrase of the contexts can be expected to take over from them."""

_MIN_DERIVED: Final = 4
_MIN_ACRONYM: Final = 3
"""Two letters are the initials of some two words in any text."""

_FRAME_SHARE: Final = 0.35
"""What remains of the weight of a word that only speaks about the source ("the article mentions …")."""

_QUALIFIER: Final = 0.25
"""What one word of quantity, degree, order or certainty counts."""

_ASKED_SHARE: Final = 0.5
"""What remains of the weight of a word that a short answer takes over from its question."""


@dataclass(frozen=True, slots=True)
class WordWeights:
    """Weights of stems: all content words weigh alike but for two kinds that say little.

    Attributes:
        asked: Stems that come from the question alone and weigh half.
    """

    asked: frozenset[str] = field(default=frozenset(), repr=False)

    def __call__(self, word: str) -> float:
        """Return how much a stem matters in a claim, in (0, 1]."""
        weight = _FRAME_SHARE if word in FRAME_WORDS else 1.0
        return weight * _ASKED_SHARE if word in self.asked else weight


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature's name, the sign its weight may have, and what it measures."""

    name: str
    sign: int
    meaning: str


FEATURES: Final[tuple[Feature, ...]] = (
    Feature("recall", 1, "word weight of the claim found in the evidence sentence and its two neighbours"),
    Feature(
        "adjacent", 1, "share of the claim's pairs of neighbouring words that the evidence has near each other too"
    ),
    Feature("missing", -1, "how far the word weight found anywhere in the contexts falls short of seven tenths"),
    Feature("number_missing", -1, "1 if a number, date or measure of the claim is nowhere in the contexts"),
    Feature("name_missing", -1, "1 if a name of the claim is nowhere in the contexts"),
    Feature("negation_unmatched", -1, "1 if the claim denies something and nothing near the evidence does"),
    Feature("negation", -1, "the same words are denied on one side only"),
    Feature("opposite", -1, "the evidence has an antonym where the claim has its word"),
    Feature("contrary", -1, "1 if a contrary of a word of the claim stands near the evidence, and the word does not"),
    Feature("qualified", -1, "quarters of words such as all, only, may and before that nothing near the evidence has"),
    Feature("number", -1, "the evidence gives another number for the same thing"),
    Feature("unit", -1, "the evidence gives the same number in another unit"),
    Feature("date", -1, "the evidence gives another year, month, day or time"),
    Feature("name", -1, "another name stands in the evidence where the claim has its name"),
    Feature("roles", -1, "two names have changed places"),
)
FAULTS: Final = frozenset(feature.name for feature in FEATURES) - {"recall", "adjacent", "missing"}
"""Features of which one sentence's fault is the whole claim's fault; the others are means over its sentences."""

FEATURE_NAMES: Final = tuple(feature.name for feature in FEATURES)


@dataclass(frozen=True, slots=True)
class Examined:
    """What is known of a claim before the model weighs it.

    Attributes:
        features: Value of each feature of ``FEATURES``, each in [0, 1].
        evidence: Index of the sentence that decides the claim, or None if no sentence shares a word with it.
        conflicts: Conflicts between the claim's weakest sentence and its evidence.
    """

    features: Mapping[str, float]
    evidence: int | None
    conflicts: tuple[Conflict, ...] = field(default=())

    @property
    def is_of_another(self) -> bool:
        """Whether the evidence says all of it of somebody or something else."""
        return any(conflict.is_whole for conflict in self.conflicts)


def examine(units: Sequence[Sentence], contexts: PreparedContexts, weights: WordWeights) -> Examined:
    """Compute the features of a claim.

    A claim of several sentences has the mean of their overlaps and the worst of their faults, for one false sentence
    makes the whole false. Without any content word all features are 0.
    """
    judged = [_examine_unit(unit, contexts, weights) for unit in units[:MAX_UNITS] if unit.content]
    if not judged:
        return Examined(dict.fromkeys(FEATURE_NAMES, 0.0), None)
    features: dict[str, float] = {}
    for feature in FEATURES:
        values = [unit.features[feature.name] for unit in judged]
        is_fault = feature.name in FAULTS
        features[feature.name] = max(values) if is_fault else sum(values) / len(values)
    weakest = min(judged, key=lambda unit: unit.features["recall"] - len(unit.conflicts))
    return Examined(features, weakest.evidence, weakest.conflicts)


def _examine_unit(unit: Sentence, contexts: PreparedContexts, weights: WordWeights) -> Examined:
    alignments = align(unit, contexts, weights)
    features = dict.fromkeys(FEATURE_NAMES, 0.0)
    features["number_missing"] = float(_number_missing(unit, contexts))
    features["name_missing"] = float(_name_missing(unit, contexts))
    features["missing"] = max(0.0, 1.0 - recall_anywhere(unit, contexts, weights) / _ENOUGH)
    if not alignments:
        return Examined(features, None)
    found = [conflicts(alignment) for alignment in alignments]
    best = max(
        range(len(alignments)),
        key=lambda rank: (alignments[rank].rank - _CONFLICT_COST * len(found[rank]), -rank),
    )
    evidence = alignments[best]
    for conflict in found[best]:
        agreement = _agreement(evidence, weights) if conflict.kind in AMOUNT_CONFLICTS else evidence.recall
        features[conflict.kind] = conflict.strength * max(0.0, (agreement - _ALIGNED_FROM) / (1 - _ALIGNED_FROM))
    recalls = [recall_around(unit, contexts, alignment.number, weights) for alignment in alignments]
    features["recall"] = max(recalls)
    features["adjacent"] = evidence.adjacent
    nearby = contexts.around(alignments[recalls.index(max(recalls))].number)
    features["contrary"] = float(_has_contrary(unit, nearby))
    features["qualified"] = min(1.0, _QUALIFIER * len(unit.qualifiers.difference(*(one.reading for one in nearby))))
    features["negation_unmatched"] = float(_negation_unmatched(unit, contexts, alignments[0].number))
    return Examined(features, evidence.number, tuple(conflict for conflict in found[best] if features[conflict.kind]))


def _agreement(alignment: Alignment, weights: WordWeights) -> float:
    """Return the recall of what is not in dispute: all but the amounts."""
    kept = {alignment.claim.stems[index] for index in alignment.matched}
    words = [word for word in alignment.claim.words if not names_amount(word)]
    total = sum(weights(word) for word in words)
    return sum(weights(word) for word in words if word in kept) / total if total else 0.0


def _number_missing(unit: Sentence, contexts: PreparedContexts) -> bool:
    amounts = [amount for amount in unit.amounts if not amount.is_small_word]
    if not amounts:
        return False
    return not all(contexts.amounts.has(claimed) for claimed in amounts)


def _name_missing(unit: Sentence, contexts: PreparedContexts) -> bool:
    return any(
        unit.is_name(index) and not name_is_known(word, unit.tokens[index], unit, contexts)
        for index, word in enumerate(unit.stems)
        if word
    )


def name_is_known(word: str, token: str, unit: Sentence, contexts: PreparedContexts) -> bool:
    """Tell whether the contexts have a name, a word derived from it, or what it abbreviates."""
    if is_mentioned(word, contexts):
        return True
    if word.isalpha() and len(word) >= _MIN_DERIVED and contexts.has_derived(word):
        return True
    letters = token.removesuffix("s").lower()
    if not token[:2].isupper():
        return False
    return letters in unit.initials or (len(letters) >= _MIN_ACRONYM and contexts.mentions_acronym(letters))


def recall_anywhere(unit: Sentence, contexts: PreparedContexts, weights: WordWeights) -> float:
    """Return the share of a sentence's word weight that the contexts have somewhere, in [0, 1]."""
    total = sum(weights(word) for word in unit.words)
    return sum(weights(word) for word in unit.words if is_mentioned(word, contexts)) / total


def is_mentioned(word: str, contexts: PreparedContexts) -> bool:
    """Tell whether the contexts have a stem or a synonym of it anywhere."""
    return says(contexts.postings, word)


def recall_around(unit: Sentence, contexts: PreparedContexts, number: int, weights: WordWeights) -> float:
    """Return the share of a sentence's word weight that a context sentence and its two neighbours have, in [0, 1]."""
    nearby = [sentence.content for sentence in contexts.around(number)]
    total = found = 0.0
    for word in unit.words:
        weight = weights(word)
        total += weight
        alike = ALIKE.get(word, ())
        if any(word in content or not content.isdisjoint(alike) for content in nearby):
            found += weight
    return found / total


def _has_contrary(unit: Sentence, nearby: Sequence[Sentence]) -> bool:
    said = frozenset[str]().union(*(sentence.content for sentence in nearby))
    instead = said - unit.content
    return any(not instead.isdisjoint(contraries(word)) for word in unit.words if not says(said, word))


def _negation_unmatched(unit: Sentence, contexts: PreparedContexts, number: int) -> bool:
    return unit.denies and not any(sentence.denies for sentence in contexts.around(number))
