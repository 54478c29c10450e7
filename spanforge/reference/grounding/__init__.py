"""A small, explainable claim grounder that needs nothing but the standard library.

It gives each claim of an answer a support score against the texts the answer should rest on. The score measures how
the words, names, numbers and negations of a claim correspond to a passage; it is not a proof of truth. What goes into
it, how it was fitted and how well it does is written down in ``docs/explanation/grounding.md``.
"""

from spanforge.reference.grounding.claims import split_claims
from spanforge.reference.grounding.groundability import Groundability, groundability
from spanforge.reference.grounding.verify import AnswerGrounding, ClaimVerdict, ground_claims, verify_answer

__all__ = [
    "AnswerGrounding",
    "ClaimVerdict",
    "Groundability",
    "ground_claims",
    "groundability",
    "split_claims",
    "verify_answer",
]
