"""A second judge for what the bundled grounder is unsure of: a cross-encoder for natural-language inference.

The bundled grounder compares words; where its probability lies in an uncertain band, a model that reads passage and
claim together may decide. No such model comes with this package.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np

from spanforge.reference import grounding
from spanforge.reference._onnx import OnnxModel
from spanforge.reference.failures import GroundingFailed, InvalidInput, Translated
from spanforge.reference.grounding import AnswerGrounding, ClaimVerdict, Groundability
from spanforge.reference.grounding.verify import claims_of, summed_up

UNCERTAIN: Final = (0.3, 0.8)
"""Support probabilities, from and to, between which the second judge is asked."""
_DECIDES_AT: Final = 0.5
_MAX_TOKENS: Final = 512
_LABELS: Final = ("entailment", "contradiction")
_NO_LABELS: Final = "config.json of a cross-encoder needs id2label with entailment and contradiction."


class Entailment(NamedTuple):
    """What a passage says of a claim; what is left to 1 is neutral.

    Attributes:
        entailed: Probability in [0, 1] that the claim follows from the passage.
        contradicted: Probability in [0, 1] that it is at odds with it.
    """

    entailed: float
    contradicted: float


class EntailmentJudge(Protocol):
    """Reads passages and claims together."""

    @property
    def name(self) -> str:
        """Who judges, as it stands in the verdicts."""
        ...

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Entailment]:
        """Return a judgement for each pair of passage and claim."""
        ...


class OnnxCrossEncoder:
    """A cross-encoder in ONNX form.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json`` and ``config.json``, whose ``id2label`` names the classes
            ``entailment`` and ``contradiction``.

    Raises:
        GroundingFailed: A file is missing, or is not what it should be.
        MissingExtraError: The extra ``onnx`` is not installed.
    """

    def __init__(self, folder: str) -> None:
        self.name = f"onnx:{folder}"
        self._columns = _columns_of(Path(folder) / "config.json")
        self._model = OnnxModel(folder, _MAX_TOKENS, GroundingFailed)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return a judgement for each pair of passage and claim."""
        logits, _ = self._model.run(pairs)
        if logits.ndim != 2 or logits.shape[1] <= max(self._columns):  # noqa: PLR2004  one row a pair
            raise GroundingFailed("The ONNX model gives no class for each pair; is it a cross-encoder?")
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares = odds / odds.sum(axis=1, keepdims=True)
        entailed, contradicted = self._columns
        return [Entailment(float(row[entailed]), float(row[contradicted])) for row in shares]


class SecondOpinion:
    """The bundled grounder, with a second judge for the claims it is unsure of: a `Grounder` for `Pipeline`.

    Args:
        judge: The second judge, or ``onnx:DIR`` for an `OnnxCrossEncoder`.
        band: Support probabilities, from and to, between which it is asked.

    Raises:
        InvalidInput: The judge is no ``onnx:DIR``, or the band is not within [0, 1].
        GroundingFailed: The model cannot be loaded.
    """

    def __init__(self, judge: EntailmentJudge | str, band: tuple[float, float] = UNCERTAIN) -> None:
        if not 0.0 <= band[0] < band[1] <= 1.0:
            raise InvalidInput("band must be two numbers in [0, 1], the lower one first.")
        if isinstance(judge, str):
            engine, _, folder = judge.partition(":")
            if engine != "onnx" or not folder:
                raise InvalidInput("judge must be 'onnx:DIR' or an object with `name` and `judge`.")
            judge = OnnxCrossEncoder(folder)
        self._judge = judge
        self._from, self._to = band

    def groundability(self, question: str, contexts: Sequence[str]) -> Groundability:
        """As the bundled grounder."""
        return grounding.groundability(question, contexts)

    def verify_answer(self, answer: str, contexts: Sequence[str], question: str = "") -> AnswerGrounding:
        """As the bundled grounder, except that the second judge decides the claims it is unsure of."""
        first = grounding.verify_answer(answer, contexts, question)
        claims = claims_of(answer, question)
        asked = f"{question} " if question and len(claims) == 1 else ""
        return summed_up(
            [
                self._decide(verdict, asked + claims[verdict.claim_index], contexts)
                if contexts and self._from <= verdict.probability < self._to
                else verdict
                for verdict in first.verdicts
            ]
        )

    def _decide(self, verdict: ClaimVerdict, claim: str, contexts: Sequence[str]) -> ClaimVerdict:
        judged = self._judge.judge([(context, claim) for context in contexts])
        follows = max(range(len(judged)), key=lambda place: judged[place].entailed)
        denies = max(range(len(judged)), key=lambda place: judged[place].contradicted)
        probability = judged[follows].entailed
        decided = replace(verdict, probability=probability, judge=self._judge.name)
        if probability >= max(_DECIDES_AT, judged[denies].contradicted):
            return replace(decided, verdict="supported", context_index=follows, evidence=(0, len(contexts[follows])))
        if judged[denies].contradicted >= _DECIDES_AT:
            return replace(decided, verdict="contradicted", context_index=denies, evidence=(0, len(contexts[denies])))
        return replace(decided, verdict="not_found", context_index=None, evidence=None)


def _columns_of(config: Path) -> tuple[int, int]:
    """Return where the classes of entailment and contradiction stand in the model's output."""
    with Translated(
        (OSError, ValueError, LookupError, TypeError, AttributeError), lambda _: GroundingFailed(_NO_LABELS)
    ):
        names = {str(label).lower(): int(place) for place, label in json.loads(config.read_bytes())["id2label"].items()}
        columns = (names[_LABELS[0]], names[_LABELS[1]])
    if min(columns) < 0:
        raise GroundingFailed(_NO_LABELS)
    return columns
