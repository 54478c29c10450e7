"""How often the default answerer refuses and answers wrongly, and what its confidence is worth.

``python -m spanforge.reference.answering.measure DIR`` prints a table over the sets of a folder, as `trials` reads
them, with 95 percent bootstrap intervals.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spanforge import sf_rag
from spanforge.reference.answering.base import is_refusal
from spanforge.reference.answering.trials import TrialSet, read_sets
from spanforge.reference.evaluation.metrics import calibration_error
from spanforge.reference.evaluation.resampling import mean_estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spanforge.reference.answering.trials import Trial
    from spanforge.reference.models import RagResult

_BINS = 5


def table(sets: Sequence[TrialSet]) -> Iterator[str]:
    """Yield the lines of the table, and of one that sets stated confidence beside the share of right answers."""
    yield (
        "| questions | refused though answerable | right | answered though unanswerable | calibration error "
        "| strict: refused though answerable | strict: answered though unanswerable |"
    )
    yield "|---|---|---|---|---|---|---|"
    everything = TrialSet("all", tuple(trial for one in sets for trial in one.trials))
    for one in (*sets, everything):
        yes = [trial for trial in one.trials if trial.answerable]
        no = [trial for trial in one.trials if not trial.answerable]
        given = _answered(one.trials)
        error = calibration_error([trial.right for trial in given], [trial.result.confidence for trial in given])
        refused, strictly = (_share([_refused(result) for result in ended]) for ended in _ends(yes))
        made_up, made_up_strictly = (_share([not _refused(result) for result in ended]) for ended in _ends(no))
        right = _share([trial.right for trial in yes])
        yield (
            f"| {one.name} ({len(yes)} and {len(no)}) | {refused} | {right} | {made_up} | {error:.3f} "
            f"| {strictly} | {made_up_strictly} |"
        )
    yield ""
    yield "| confidence | answers | mean confidence | right |"
    yield "|---|---|---|---|"
    answers = _answered(everything.trials)
    for step in range(_BINS):
        inside = [trial for trial in answers if min(_BINS - 1, int(trial.result.confidence * _BINS)) == step]
        if inside:
            stated = sum(trial.result.confidence for trial in inside) / len(inside)
            right = _share([trial.right for trial in inside])
            yield f"| {step / _BINS:.1f} to {(step + 1) / _BINS:.1f} | {len(inside)} | {stated:.2f} | {right} |"


def _ends(trials: Sequence[Trial]) -> tuple[list[RagResult], list[RagResult]]:
    """Return how the trials ended, and how they ended in strict mode."""
    return [trial.result for trial in trials], [trial.strict for trial in trials]


def _refused(result: RagResult) -> bool:
    return is_refusal(result.answer)


def _answered(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if not _refused(trial.result)]


def _share(cases: Sequence[bool]) -> str:
    if not cases:
        return ""
    estimate = mean_estimate([float(case) for case in cases])
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def main(arguments: Sequence[str]) -> int:
    """Measure the sets of a folder and print the tables."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m spanforge.reference.answering.measure DIR\n")
        return 2
    sf_rag.configure(sinks=[])
    for line in table(list(read_sets(Path(arguments[0]), answering=True))):
        sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
