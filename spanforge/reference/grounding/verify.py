"""The grounder's public calls: judge claims, judge an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from spanforge.reference.grounding.claims import Claim, is_yes_or_no, read_claim, split_claims
from spanforge.reference.grounding.contexts import PreparedContexts
from spanforge.reference.grounding.features import WordWeights, examine
from spanforge.reference.grounding.model import Model, default_model

Verdict = Literal["supported", "contradicted", "not_found"]
GroundingStatus = Literal["grounded", "partially_grounded", "ungrounded", "no_claims"]

GROUNDED_FROM: Final = 0.8
"""Share of supported claims from which an answer is grounded (protocol, step 5)."""
_VERBATIM: Final = 0.999
"""Probability of a claim whose every sentence stands in the contexts word by word: nothing is surer."""
_CONTRADICTED_BELOW: Final = 0.4
"""Probability from which a conflict is too unsure to be named, lest true claims be called contradicted."""


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The judgement on one claim. It holds no text, so that it may be logged.

    Attributes:
        claim_index: Index of the claim in the sequence given.
        verdict: ``supported`` if the support probability reaches the model's threshold; otherwise ``contradicted`` if
            a detector found what the evidence says against it and support is unlikely, else ``not_found``.
        probability: Probability of support in (0, 1), calibrated for a source where one claim in two is supported.
        context_index: Index of the context that decides the claim; None if nothing was found.
        evidence: Half-open character span of the deciding sentence in that context; None if nothing was found.
        features: Value of each named feature, each in [0, 1].
        judge: Who decided: ``words``, this grounder, or the name of a second judge.
    """

    claim_index: int
    verdict: Verdict
    probability: float
    context_index: int | None
    evidence: tuple[int, int] | None
    features: Mapping[str, float]
    judge: str = "words"


@dataclass(frozen=True, slots=True)
class AnswerGrounding:
    """The judgement on an answer.

    Attributes:
        score: Supported claims by all claims, in [0, 1]; None if the answer claims nothing.
        claims_total: Number of claims.
        claims_supported: Number of supported claims.
        verdicts: One verdict a claim, in the order of ``split_claims``.
        status: ``grounded`` from a score of 0.8, ``ungrounded`` if no claim is supported, ``partially_grounded``
            between, ``no_claims`` if there is nothing to judge.
    """

    score: float | None
    claims_total: int
    claims_supported: int
    verdicts: tuple[ClaimVerdict, ...]
    status: GroundingStatus

    @property
    def weakest(self) -> float | None:
        """Support probability of the least supported claim, in (0, 1); None if the answer claims nothing."""
        return min((verdict.probability for verdict in self.verdicts), default=None)


def ground_claims(claims: Sequence[str], contexts: Sequence[str], question: str = "") -> list[ClaimVerdict]:
    """Judge each claim against the contexts.

    Args:
        claims: The claims; ``[n]`` citation marks are ignored.
        contexts: The texts that should support them, for example the retrieved chunks.
        question: The question the claims answer. A claim of at most three content words is judged together with it.

    Returns:
        One verdict a claim, in the order given. The same input gives the same verdicts.
    """
    model = default_model()
    prepared = PreparedContexts.of(contexts)
    return [_judge(index, _read(claim, question, prepared), prepared, model) for index, claim in enumerate(claims)]


def verify_answer(answer: str, contexts: Sequence[str], question: str = "") -> AnswerGrounding:
    """Split an answer into claims and judge each.

    Args:
        answer: The answer as generated, with or without citation marks.
        contexts: The texts that should support it.
        question: The question asked; a one-claim answer such as "Paris" is judged together with it.

    Returns:
        The share of supported claims and the single verdicts.
    """
    claims = claims_of(answer, question)
    return summed_up(ground_claims(claims, contexts, question if len(claims) == 1 else ""))


def claims_of(answer: str, question: str) -> list[str]:
    """Return the claims that an answer to a question is judged by."""
    return [answer] if question and is_yes_or_no(answer) else split_claims(answer)


def summed_up(verdicts: Sequence[ClaimVerdict]) -> AnswerGrounding:
    """Return the judgement on an answer from those on its claims."""
    if not verdicts:
        return AnswerGrounding(None, 0, 0, (), "no_claims")
    supported = sum(verdict.verdict == "supported" for verdict in verdicts)
    score = supported / len(verdicts)
    status: GroundingStatus = "partially_grounded"
    if score >= GROUNDED_FROM:
        status = "grounded"
    elif not supported:
        status = "ungrounded"
    return AnswerGrounding(score, len(verdicts), supported, tuple(verdicts), status)


def _read(claim: str, question: str, contexts: PreparedContexts) -> Claim:
    """Return a claim as it is judged: one that stands in the contexts as it is needs no question to be understood."""
    alone = read_claim(claim)
    return alone if _is_verbatim(alone, contexts) else read_claim(claim, question)


def _is_verbatim(claim: Claim, contexts: PreparedContexts) -> bool:
    return bool(claim.units) and all(contexts.states(unit) for unit in claim.units)


def _judge(index: int, claim: Claim, contexts: PreparedContexts, model: Model) -> ClaimVerdict:
    examined = examine(claim.units, contexts, WordWeights(claim.asked))
    probability = model.probability(examined.features)
    if _is_verbatim(claim, contexts):
        probability = _VERBATIM
    verdict: Verdict = "not_found"
    if examined.evidence is not None and probability >= model.threshold and not examined.is_of_another:
        verdict = "supported"
    elif examined.is_of_another or (examined.conflicts and probability < _CONTRADICTED_BELOW):
        verdict = "contradicted"
    if verdict == "not_found" or examined.evidence is None:
        return ClaimVerdict(index, verdict, probability, None, None, MappingProxyType(dict(examined.features)))
    sentence = contexts.sentences[examined.evidence]
    span = (sentence.start, sentence.start + len(sentence.text))
    owner = contexts.owners[examined.evidence]
    return ClaimVerdict(index, verdict, probability, owner, span, MappingProxyType(dict(examined.features)))
