"""The logistic model over the named features, from committed coefficients."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from spanforge.reference.grounding.features import FEATURE_NAMES

COEFFICIENTS_FILE: Final = "coefficients.json"


@dataclass(frozen=True, slots=True)
class Model:
    """A calibrated logistic model.

    Attributes:
        intercept: Log odds of a claim whose features are all zero.
        weights: Change of the log odds for each feature at its full value 1.
        threshold: Probability from which a claim counts as supported; fixed on training parts.
    """

    intercept: float
    weights: Mapping[str, float]
    threshold: float

    def probability(self, features: Mapping[str, float]) -> float:
        """Return how likely a claim with these features is supported, in (0, 1), if one claim in two is."""
        odds = self.intercept + sum(self.weights[name] * features[name] for name in FEATURE_NAMES)
        return 1.0 / (1.0 + math.exp(-odds))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Model:
        """Read what ``to_dict`` wrote.

        Raises:
            ValueError: The features are not those of this version; train again.
        """
        weights = {str(name): float(value) for name, value in data["weights"].items()}
        if set(weights) != set(FEATURE_NAMES):
            raise ValueError("coefficients: features differ from this version's; run the training again")
        return cls(float(data["intercept"]), weights, float(data["threshold"]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"intercept": self.intercept, "weights": dict(self.weights), "threshold": self.threshold}


@lru_cache(maxsize=1)
def default_model() -> Model:
    """Return the model of the committed coefficients, read once."""
    text = resources.files("spanforge.reference.grounding").joinpath(COEFFICIENTS_FILE).read_text(encoding="utf-8")
    return Model.from_dict(json.loads(text))
