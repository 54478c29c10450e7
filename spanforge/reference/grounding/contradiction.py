"""Explicit detectors of contradiction between a claim sentence and the sentence that speaks about it.

Each detector answers one question about an alignment and names what it found; none looks at the rest of the contexts.
They are deliberately narrow: a detector that stays silent costs little, one that cries wolf makes a good answer look
false.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, get_args

from spanforge.reference.grounding.alignment import Alignment
from spanforge.reference.grounding.amounts import DATE_KINDS, Quantity, same_amount
from spanforge.reference.grounding.lexicon import OPPOSITES
from spanforge.reference.grounding.sentence import Sentence

ConflictKind = Literal["negation", "opposite", "number", "unit", "date", "name", "roles"]
CONFLICT_KINDS: Final[tuple[ConflictKind, ...]] = get_args(ConflictKind)
AMOUNT_CONFLICTS: Final = frozenset[ConflictKind]({"number", "unit", "date"})

_NEAR: Final = 5
"""Tokens within which two words belong to the same statement."""

_AUXILIARIES: Final = frozenset({"was", "were", "is", "are", "been", "being", "be"})
_NEGATIVE_PREFIXES: Final = ("un", "in", "im", "ir", "il", "non", "dis", "de", "mis")
_MIN_PREFIXED: Final = 4
_MIN_HEADING: Final = 6
"""Letters from which a word in capitals is a heading that runs into its text; shorter ones are names (NATO)."""
_LESS: Final = "les"
"""Stem of the ending -less."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One contradiction found.

    Attributes:
        kind: What is contradicted.
        strength: How much of the statement it turns over, in (0, 1].
        is_whole: Whether the evidence says all of the claim, and of something else.
    """

    kind: ConflictKind
    strength: float = 1.0
    is_whole: bool = False


def conflicts(alignment: Alignment) -> list[Conflict]:
    """Return the conflicts that the detectors find, at most one of each kind, in the order of ``CONFLICT_KINDS``."""
    negation, opposite = _polarity(alignment)
    kinds = _amounts(alignment)
    if _names(alignment):
        kinds.add("name")
    if _roles(alignment):
        kinds.add("roles")
    strengths = {"negation": negation, "opposite": opposite} | dict.fromkeys(kinds, 1.0)
    found = [Conflict(kind, strengths[kind]) for kind in CONFLICT_KINDS if strengths.get(kind)]
    return [Conflict("name", is_whole=True)] if _is_of_another(alignment) else found


def _polarity(alignment: Alignment) -> tuple[float, float]:
    """Return how strongly a negation and an opposite turn the statement over; two turns cancel out."""
    claim, evidence, matched = alignment.claim, alignment.evidence, alignment.matched
    mine = sum(index in claim.denied for index in matched)
    theirs = sum(place in evidence.denied for place in matched.values())
    # Where both sides deny something, a paraphrase has moved the negation; only a one-sided one contradicts.
    one_sided = max(mine, theirs) if not (mine and theirs) else 0
    negation = min(1.0, 2 * one_sided / len(matched)) if matched else 0.0
    opposite = 0.0
    for index, word in enumerate(claim.stems):
        if not word or index in matched:
            continue
        place = _contrary_place(alignment, index, word)
        if place is None:
            continue
        if (index in claim.denied) == (place in evidence.denied):
            opposite = 1.0
        else:
            negation = 0.0
    return negation, opposite


def _contrary_place(alignment: Alignment, index: int, word: str) -> int | None:
    """Find a contrary of the claim's word that is said about the same neighbours."""
    evidence = alignment.evidence
    for other in sorted(contraries(word) & evidence.content):
        place = evidence.positions[other][0]
        if other not in alignment.claim.content and any(
            abs(near - index) <= _NEAR and abs(matched - place) <= _NEAR for near, matched in alignment.matched.items()
        ):
            return place
    return None


@lru_cache(maxsize=16_384)
def contraries(word: str) -> frozenset[str]:
    """Opposites from the list and by word formation: "reliable" and "unreliable", "harmful" and "harmless"."""
    listed = OPPOSITES.get(word, ())
    if len(word) < _MIN_PREFIXED:
        return frozenset(listed)
    shorn = [word[len(p) :] for p in _NEGATIVE_PREFIXES if word.startswith(p) and len(word) - len(p) >= _MIN_PREFIXED]
    prefixed = [prefix + word for prefix in _NEGATIVE_PREFIXES]
    root = word.removesuffix(_LESS)
    endings = [root, root + "ful"] if root != word else [word.removesuffix("ful") + _LESS]
    return frozenset((*listed, *shorn, *prefixed, *endings))


def _amounts(alignment: Alignment) -> set[ConflictKind]:
    kinds: set[ConflictKind] = set()
    claimed_amounts, found = alignment.claim.amounts, alignment.evidence.amounts
    if not claimed_amounts or not found:
        return kinds
    rivals = [other for other in found if not any(same_amount(mine, other) for mine in claimed_amounts)]
    for claimed in claimed_amounts:
        same = [other for other in found if same_amount(claimed, other)]
        if same:
            if _is_of_something_else(claimed, same, found):
                kinds.add("number")
            continue
        if claimed.kind in DATE_KINDS:
            if any(other.kind == claimed.kind for other in rivals):
                kinds.add("date")
        elif any(other.written == claimed.written and other.kind != claimed.kind for other in rivals):
            kinds.add("unit")
        elif any(_measure_the_same(claimed, other) for other in rivals):
            same_digits = any(other.written == claimed.written for other in rivals)
            kinds.add("unit" if same_digits else "number")
    return kinds


def _measure_the_same(claimed: Quantity, other: Quantity) -> bool:
    """Tell whether two unequal amounts measure the same thing."""
    if claimed.kind != other.kind:
        return False
    return claimed.kind not in {"number", "ordinal"} or not set(claimed.nouns).isdisjoint(other.nouns)


def _is_of_something_else(claimed: Quantity, same: Sequence[Quantity], found: Sequence[Quantity]) -> bool:
    """Tell whether the evidence counts something else by a claimed number, and what the claim counts by another."""
    if claimed.kind != "number" or not claimed.nouns or any(claimed.nouns[:1] == other.nouns[:1] for other in same):
        return False
    return any(other.kind == "number" and claimed.nouns[0] == other.nouns[0] for other in found if other.nouns)


def _names(alignment: Alignment) -> bool:
    """A name of the claim whose place in the evidence is taken by another name."""
    claim, evidence = alignment.claim, alignment.evidence
    for swap in alignment.substitutions:
        named = [index for index in swap.claimed if claim.is_name(index)]
        instead = [place for place in swap.found if evidence.is_name(place)]
        missing = any(claim.stems[index] not in evidence.content for index in named)
        if missing and any(evidence.stems[place] not in claim.content for place in instead):
            return True
    return False


def _is_of_another(alignment: Alignment) -> bool:
    """Tell whether all of a claim but its first word stands in the evidence, which begins with another.

    "Marseille is the capital" beside "Paris is the capital" is said of another.
    """
    claim, evidence = alignment.claim, alignment.evidence
    if not (claim.stems[0] and evidence.stems[0]) or 0 in alignment.matched:
        return False
    rest = sum(map(bool, claim.stems)) - 1
    capitals = _begins_with_a_subject(claim) and _begins_with_a_subject(evidence)
    strangers = claim.stems[0] not in evidence.content and evidence.stems[0] not in claim.content
    return len(alignment.matched) == rest > 1 and capitals and strangers


def _begins_with_a_subject(sentence: Sentence) -> bool:
    """Tell whether the first word may name what is spoken of: no "Additionally", no "Note:", no "CONCLUSIONS"."""
    first, *others = sentence.tokens
    is_label = others[:1] == [":"] or (first.isupper() and len(first) >= _MIN_HEADING and others[:1] != [","])
    return first[0].isupper() and not first.endswith("ly") and not is_label


def _roles(alignment: Alignment) -> bool:
    """Two names that change places around the same words, without a change of voice that explains it."""
    claim = alignment.claim
    names: list[tuple[int, int]] = []
    seen: set[str] = set()
    for index, place in alignment.matched.items():
        if claim.stems[index] not in seen and _is_shared_name(alignment, index, place):
            seen.add(claim.stems[index])
            names.append((index, place))
    return any(
        _exchanged(alignment, claimed, found)
        for claimed, found in (zip(*pair, strict=True) for pair in itertools.pairwise(names))
    )


def _is_shared_name(alignment: Alignment, index: int, place: int) -> bool:
    """Tell whether a matched token is a name; a capitalised first word is one where the evidence shows it."""
    if alignment.claim.is_name(index):
        return True
    return not index and alignment.claim.tokens[0][0].isupper() and alignment.evidence.is_name(place)


def _exchanged(alignment: Alignment, claimed: tuple[int, int], found: tuple[int, int]) -> bool:
    (first, last), (first_place, last_place) = claimed, found
    if _swapped_prepositions(alignment, claimed, found):
        return True
    if first_place <= last_place:
        return False
    inside = (place for index, place in alignment.matched.items() if first < index < last)
    kept = any(last_place < place < first_place for place in inside)
    claim_passive = _is_passive(alignment.claim, first, last)
    return kept and claim_passive == _is_passive(alignment.evidence, last_place, first_place)


def _swapped_prepositions(alignment: Alignment, claimed: tuple[int, int], found: tuple[int, int]) -> bool:
    """Tell "from A to B" beside "from B to A"."""
    here = [_word_before(alignment.claim, index) for index in claimed]
    there = [_word_before(alignment.evidence, index) for index in found]
    return here == there[::-1] and here[0] != here[1] and {"from", "to"} == set(here)


def _word_before(sentence: Sentence, index: int) -> str:
    return sentence.tokens[index - 1].lower() if index else ""


def _is_passive(sentence: Sentence, start: int, end: int) -> bool:
    words = [token.lower() for token in sentence.tokens[start : end + 1]]
    return "by" in words and any(word in _AUXILIARIES for word in words)
