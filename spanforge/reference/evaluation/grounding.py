"""Measure the grounder, and the baselines beside it, on files of claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanforge.reference.evaluation.baselines import IDF_RECALL_THRESHOLD, idf_recall, protocol_rule, rarities
from spanforge.reference.evaluation.datasets import GroundingPair, read_grounding
from spanforge.reference.evaluation.metrics import accuracy, balanced_accuracy, calibration_error, roc_auc
from spanforge.reference.evaluation.resampling import Estimate, bootstrap
from spanforge.reference.grounding import ground_claims

_RESAMPLES: Final = 300
"""Fewer than for means: each resample is sorted anew for the ROC curve."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One judged pair: the truth, the judgement, and the score behind it."""

    truth: bool
    judged: bool
    score: float


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """How well one judge does on one file.

    Attributes:
        judge: ``grounder``, ``protocol_rule`` or ``idf_recall``.
        balanced_accuracy: Mean of the two classes' recalls, at the threshold fixed on training parts.
        accuracy: Share of right judgements at that threshold.
        auc: Area under the ROC curve.
        calibration_error: Expected calibration error over ten bins; None for judges that state no probability.
    """

    judge: str
    balanced_accuracy: Estimate
    accuracy: Estimate
    auc: Estimate
    calibration_error: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "judge": self.judge,
            "balanced_accuracy": self.balanced_accuracy.to_dict(),
            "accuracy": self.accuracy.to_dict(),
            "auc": self.auc.to_dict(),
            "calibration_error": self.calibration_error,
        }


@dataclass(frozen=True, slots=True)
class GroundingPart:
    """One file: its size, the share of supported claims, and a report for each judge."""

    name: str
    pairs: int
    supported_share: float
    judges: tuple[JudgeReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "pairs": self.pairs,
            "supported_share": self.supported_share,
            "judges": [judge.to_dict() for judge in self.judges],
        }


@dataclass(frozen=True, slots=True)
class JudgeMean:
    """A judge's unweighted means over the files."""

    judge: str
    balanced_accuracy: float
    accuracy: float
    auc: float
    calibration_error: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "judge": self.judge,
            "balanced_accuracy": self.balanced_accuracy,
            "accuracy": self.accuracy,
            "auc": None if math.isnan(self.auc) else self.auc,
            "calibration_error": self.calibration_error,
        }


@dataclass(frozen=True, slots=True)
class GroundingReport:
    """All files, and the means over them."""

    parts: tuple[GroundingPart, ...]
    means: tuple[JudgeMean, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "parts": [part.to_dict() for part in self.parts],
            "means": [mean.to_dict() for mean in self.means],
        }


def evaluate_grounding(files: Iterable[str | Path]) -> GroundingReport:
    """Judge every claim of the files with the grounder and the baselines.

    Args:
        files: Files in the format of ``datasets.read_grounding``.

    Returns:
        A report for each file and the means over files.

    Raises:
        DatasetError: A file cannot be read.
        ValueError: No file is given.
    """
    parts = tuple(_part(_name(Path(file)), read_grounding(file)) for file in files)
    if not parts:
        raise ValueError("files: at least one is needed")
    judges = [judge.judge for judge in parts[0].judges]
    return GroundingReport(
        parts, tuple(_mean(name, [part.judges[place] for part in parts]) for place, name in enumerate(judges))
    )


def _name(file: Path) -> str:
    return file.name.removesuffix(".gz").removesuffix(".jsonl")


def _part(name: str, pairs: Sequence[GroundingPair]) -> GroundingPart:
    grounder: list[Judged] = []
    rule: list[Judged] = []
    recall: list[Judged] = []
    rarity = rarities(context for pair in pairs for context in pair.contexts)
    for pair in pairs:
        verdict = ground_claims([pair.claim], pair.contexts, pair.question)[0]
        grounder.append(Judged(pair.supported, verdict.verdict == "supported", verdict.probability))
        found = protocol_rule(pair.claim, pair.contexts)
        rule.append(Judged(pair.supported, found, float(found)))
        share = idf_recall(pair.claim, pair.contexts, rarity)
        recall.append(Judged(pair.supported, share >= IDF_RECALL_THRESHOLD, share))
    reports = (
        _report("grounder", grounder, calibrated=True),
        _report("protocol_rule", rule, calibrated=False),
        _report("idf_recall", recall, calibrated=False),
    )
    return GroundingPart(name, len(pairs), sum(pair.supported for pair in pairs) / len(pairs), reports)


def _report(judge: str, cases: Sequence[Judged], *, calibrated: bool) -> JudgeReport:
    truths = [case.truth for case in cases]
    return JudgeReport(
        judge,
        bootstrap(cases, _balanced_accuracy, resamples=_RESAMPLES),
        bootstrap(cases, _accuracy, resamples=_RESAMPLES),
        bootstrap(cases, _auc, resamples=_RESAMPLES),
        calibration_error(truths, [case.score for case in cases]) if calibrated else None,
    )


def _balanced_accuracy(cases: Sequence[Judged]) -> float:
    return balanced_accuracy([case.truth for case in cases], [case.judged for case in cases])


def _accuracy(cases: Sequence[Judged]) -> float:
    return accuracy([case.truth for case in cases], [case.judged for case in cases])


def _auc(cases: Sequence[Judged]) -> float:
    return roc_auc([case.truth for case in cases], [case.score for case in cases])


def _mean(judge: str, reports: Sequence[JudgeReport]) -> JudgeMean:
    errors = [report.calibration_error for report in reports if report.calibration_error is not None]
    return JudgeMean(
        judge,
        sum(report.balanced_accuracy.value for report in reports) / len(reports),
        sum(report.accuracy.value for report in reports) / len(reports),
        sum(report.auc.value for report in reports) / len(reports),
        sum(errors) / len(errors) if errors else None,
    )
