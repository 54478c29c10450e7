"""How sure an answer is, as a probability.

A logistic regression over two figures of the run, fitted on whether an answer cites a passage that people marked as
answering, times the share of claims that are supported. It was fitted on the training halves of three public sets,
with as many questions that the documents do not answer as they do; on the other halves together its calibration error
is 0.07, on one set alone up to 0.24 (the page on the reference RAG has the table). It speaks of the source being right,
which is what can be measured.
"""

from __future__ import annotations

import math

_INTERCEPT = -2.90
_ANSWERABILITY = 3.92
_MARGIN = 4.11
_UNVERIFIED = 0.5
"""Stands for the grounding score of an answer that could not be verified."""


def confidence(answerability: float, grounding: float | None, margin: float) -> float:
    """Return the probability in [0, 1] that the answer's source is right and bears it out.

    Args:
        answerability: The answerer's own confidence in [0, 1] that its passages answer the question.
        grounding: Grounding score of the answer in [0, 1]; absent, the answer is unverified.
        margin: Lead of the best passage's score over the second one's.
    """
    verified = _UNVERIFIED if grounding is None else grounding
    return verified / (1.0 + math.exp(-(_INTERCEPT + _ANSWERABILITY * answerability + _MARGIN * margin)))
