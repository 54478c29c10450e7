"""How much a word matters in a claim."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from spanforge.reference.grounding.lexicon import FRAME_WORDS

_FRAME_SHARE: Final = 0.35
"""What remains of the weight of a word that only speaks about the source ("the article mentions …")."""

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
