"""How sure an answer is, as a probability.

A logistic regression over three figures of the run, fitted on whether the passage an answer cites is one
that people marked as relevant. It speaks of the source being right, which is what can be measured without
reading minds.
"""

from __future__ import annotations

import math

_INTERCEPT = -3.0
_COVERAGE = 3.0
_GROUNDING = 1.0
_MARGIN = 2.0


def confidence(coverage: float, grounding: float | None, margin: float) -> float:
    """Return the probability in [0, 1] that the answer's source is right.

    Args:
        coverage: Share of the question's weight that the best passage covers.
        grounding: Grounding score of the answer; an unverified answer counts as half grounded.
        margin: Lead of the best passage's score over the second one's.
    """
    verified = 0.5 if grounding is None else grounding
    logit = _INTERCEPT + _COVERAGE * coverage + _GROUNDING * verified + _MARGIN * margin
    return 1.0 / (1.0 + math.exp(-logit))
