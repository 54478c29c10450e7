"""How much a word matters: its rarity in background text, as learnt by ``train``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from spanforge.reference.grounding.lexicon import FRAME_WORDS

_LEAST: Final = 0.05
_FRAME_SHARE: Final = 0.35
"""What remains of the weight of a word that only speaks about the source ("the article mentions …")."""

_ASKED_SHARE: Final = 0.5
"""What remains of the weight of a word that a short answer takes over from its question."""


@dataclass(frozen=True, slots=True)
class WordWeights:
    """Weights of stems.

    Attributes:
        table: Stem → rarity in [0, 1]; a stem that is not listed is as rare as can be, 1.
        asked: Stems that come from the question alone and weigh half.
    """

    table: Mapping[str, float] = field(repr=False)
    asked: frozenset[str] = field(default=frozenset(), repr=False)

    def rarity(self, word: str) -> float:
        """Return how rare a stem is in background text, in [0.05, 1]."""
        return max(_LEAST, self.table.get(word, 1.0))

    def __call__(self, word: str) -> float:
        """Return how much a stem matters in a claim, in (0, 1]."""
        weight = self.rarity(word)
        if word in FRAME_WORDS:
            weight *= _FRAME_SHARE
        return weight * _ASKED_SHARE if word in self.asked else weight
