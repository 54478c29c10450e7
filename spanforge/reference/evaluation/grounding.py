"""Measure the grounder, and the baselines beside it, on files of claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from spanforge.reference.evaluation.baselines import IDF_RECALL_THRESHOLD, idf_recall, protocol_rule, rarities
from spanforge.reference.evaluation.datasets import GroundingPair, read_grounding
from spanforge.reference.evaluation.metrics import accuracy, balanced_accuracy, calibration_error, roc_auc
from spanforge.reference.evaluation.resampling import Estimate, Report, bootstrap
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
class JudgeReport(Report):
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


@dataclass(frozen=True, slots=True)
class GroundingPart(Report):
    """One file: its size, the share of supported claims, and a report for each judge."""

    name: str
    pairs: int
    supported_share: float
    judges: tuple[JudgeReport, ...]


@dataclass(frozen=True, slots=True)
class JudgeMean(Report):
    """A judge's unweighted means over the files."""

    judge: str
    balanced_accuracy: float
    accuracy: float
    auc: float
    calibration_error: float | None


@dataclass(frozen=True, slots=True)
class GroundingReport(Report):
    """All files, and the means over them."""

    parts: tuple[GroundingPart, ...]
    means: tuple[JudgeMean, ...]


def evaluate_grounding(files: Iterable[str | Path]) -> GroundingReport:
    """Judge every claim of files in the format of ``read_grounding`` with the grounder and the baselines.

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
    judged: dict[str, list[Judged]] = {"grounder": [], "protocol_rule": [], "idf_recall": []}
    rarity = rarities(context for pair in pairs for context in pair.contexts)
    for pair in pairs:
        verdict = ground_claims([pair.claim], pair.contexts, pair.question)[0]
        found = protocol_rule(pair.claim, pair.contexts)
        share = idf_recall(pair.claim, pair.contexts, rarity)
        judged["grounder"].append(Judged(pair.supported, verdict.verdict == "supported", verdict.probability))
        judged["protocol_rule"].append(Judged(pair.supported, found, float(found)))
        judged["idf_recall"].append(Judged(pair.supported, share >= IDF_RECALL_THRESHOLD, share))
    reports = tuple(_report(judge, cases, calibrated=judge == "grounder") for judge, cases in judged.items())
    return GroundingPart(name, len(pairs), sum(pair.supported for pair in pairs) / len(pairs), reports)


def _report(judge: str, cases: Sequence[Judged], *, calibrated: bool) -> JudgeReport:
    def measured(measure: Callable[[list[bool], list[Any]], float], of: Callable[[Judged], float]) -> Estimate:
        return bootstrap(
            cases, lambda drawn: measure([one.truth for one in drawn], list(map(of, drawn))), resamples=_RESAMPLES
        )

    return JudgeReport(
        judge,
        measured(balanced_accuracy, lambda one: one.judged),
        measured(accuracy, lambda one: one.judged),
        measured(roc_auc, lambda one: one.score),
        calibration_error([one.truth for one in cases], [one.score for one in cases]) if calibrated else None,
    )


def _mean(judge: str, reports: Sequence[JudgeReport]) -> JudgeMean:
    errors = [report.calibration_error for report in reports if report.calibration_error is not None]
    return JudgeMean(
        judge,
        fmean(report.balanced_accuracy.value for report in reports),
        fmean(report.accuracy.value for report in reports),
        fmean(report.auc.value for report in reports),
        fmean(errors) if errors else None,
    )
