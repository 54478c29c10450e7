"""What `report --compare` names: another input, a period, or a retriever, a model or a tag."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanforge.cli._output import CliError, console, table, visible
from spanforge.reader import is_url
from spanforge.viewer import Filter
from spanforge.viewer.filters import named
from spanforge.viewer.shown import change, figure, moment

if TYPE_CHECKING:
    from spanforge.analysis.prices import Pricing
    from spanforge.viewer.changes import Baseline, StoredChanges

__all__ = ["changes_since", "show_changes"]

_FORMS: Final = (
    "another input, a period such as 2026-11-01..2026-11-15, `before`, or retriever=, model=, pipeline=, namespace=, "
    "actor= or a tag's name= and a value"
)


def changes_since(given: str, store: Path, wanted: Filter, pricing: Pricing | None) -> StoredChanges:
    """Compare the sessions of a report with the baseline that `--compare` names.

    Raises:
        CliError: It names none, or one of the two sets is too small to compare.
        MissingExtraError: What intervals are worked out with is not installed.
    """
    from spanforge.viewer.changes import compare  # noqa: PLC0415  needs the extra

    made = compare(store, wanted, _baseline(given, store, wanted), pricing)
    if made.progress.exists and made.problem:
        raise CliError(f"--compare: {made.problem}{_elsewhen(made)}")
    return made


def show_changes(made: StoredChanges) -> None:
    """Print a comparison."""
    table(
        f"{made.sessions:,} sessions, against {made.baseline_sessions:,} of the baseline {visible(made.baseline.text)}",
        ["figure", "#baseline", "#these", "#difference", "#95 % interval", "verdict", "#samples"],
        [
            (
                one.name,
                figure(one.baseline, one.unit),
                figure(one.value, one.unit),
                change(one.difference, one.unit),
                f"{change(one.low, one.unit)} to {change(one.high, one.unit)}",
                one.verdict,
                f"{one.baseline_samples:,}, {one.samples:,}",
            )
            for one in made.figures
        ],
    )
    console.print(f"\n{made.chance}")
    if made.on_both_sides:
        console.print(f"{made.on_both_sides:,} sessions are on both sides, and left out")
    left_out = sum(made.progress.damaged.values()), sum(made.baseline_damaged.values())
    if any(left_out):
        console.print(f"Left out as damaged: {left_out[0]:,} events, and {left_out[1]:,} where the baseline is stored")


def _elsewhen(made: StoredChanges) -> str:
    if made.on_both_sides:
        return ""
    first, last = map(moment, made.began)
    return f"; what INPUT has began from {first} to {last}: widen the baseline, or the report's filters"


def _baseline(given: str, store: Path, wanted: Filter) -> Baseline:
    from spanforge.viewer.changes import Baseline  # noqa: PLC0415  needs the extra

    if is_url(given):
        raise CliError("--compare: figures are of what is on this machine; fetch the file first")
    path = Path(given).expanduser()
    if path.exists() or any(mark in given for mark in "*?["):
        if path.exists() and store.exists() and path.samefile(store):
            raise CliError(f"--compare: that is INPUT itself; name {_FORMS}")
        return Baseline(given, path, wanted)
    if given != "before" and not named(given):
        raise CliError(f"--compare: nothing is stored at {visible(given)}; name {_FORMS}")
    try:
        return Baseline.of(given, wanted)
    except ValueError as error:
        problem = str(error)
    raise CliError(f"--compare: {problem}")
