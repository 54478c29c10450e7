"""A logistic model over named features, from committed coefficients; used here and by the answerer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
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
        intercept: Log odds of a case whose features are all zero.
        weights: Change of the log odds for each feature at its full value 1.
        threshold: Probability from which a case counts as positive; fixed on training parts.
        strict_threshold: Probability from which it does where a false positive is the worse fault; the same threshold
            where none was fitted for that.
    """

    intercept: float
    weights: Mapping[str, float]
    threshold: float
    strict_threshold: float

    def probability(self, features: Mapping[str, float]) -> float:
        """Return how likely a case with these features is positive, in (0, 1), if one in two is."""
        odds = self.intercept + sum(weight * features[name] for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-odds))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], names: Sequence[str] = FEATURE_NAMES) -> Model:
        """Read what ``to_dict`` wrote, of a model that has the features named.

        Raises:
            ValueError: The features are not those of this version; train again.
        """
        weights = {str(name): float(value) for name, value in data["weights"].items()}
        if set(weights) != set(names):
            raise ValueError("coefficients: features differ from this version's; run the training again")
        threshold = float(data["threshold"])
        strict = float(data.get("strict_threshold", threshold))
        return cls(float(data["intercept"]), {name: weights[name] for name in names}, threshold, strict)

    @classmethod
    def committed(cls, package: str, names: Sequence[str]) -> Model:
        """Read the coefficients that lie beside the modules of a package.

        Raises:
            ValueError: The features are not those of this version; train again.
        """
        text = resources.files(package).joinpath(COEFFICIENTS_FILE).read_text(encoding="utf-8")
        return cls.from_dict(json.loads(text), names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; a strict threshold is among them where it is another one."""
        plain = {"intercept": self.intercept, "weights": dict(self.weights), "threshold": self.threshold}
        stricter = {"strict_threshold": self.strict_threshold} if self.strict_threshold != self.threshold else {}
        return {**plain, **stricter}


@lru_cache(maxsize=1)
def default_model() -> Model:
    """Return the grounder's model, read once."""
    return Model.committed("spanforge.reference.grounding", FEATURE_NAMES)
