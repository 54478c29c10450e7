"""Measure the grounder on twins: ``PYTHONPATH=tests python -m tools.twins DIR``.

Twins are a true statement about a sentence of a public set and the same one with a single fault, written one by one for
this project without sight of the grounder. ``twins.jsonl`` holds the statements alone; the texts are found in DIR by
their digests. The twins over training parts were looked at while detectors were mended, those over test parts only
counted.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spanforge.reference.evaluation.datasets import objects, read_grounding
from spanforge.reference.grounding import ClaimVerdict, ground_claims

TWINS: Final = Path(__file__).parents[1] / "reference" / "grounding" / "data" / "twins.jsonl"
_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Twins:
    """Two statements about one text.

    Attributes:
        kind: What is wrong with the false one.
        is_kept_back: Whether the text is of a set's test part.
    """

    kind: str
    true: str = field(repr=False)
    false: str = field(repr=False)
    text: str = field(repr=False)
    is_kept_back: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """Twins and what the grounder says of them."""

    twins: Twins
    true: ClaimVerdict
    false: ClaimVerdict


def twins_of(folder: Path) -> Iterator[Twins]:
    """Yield the twins, with the texts of a folder of public sets.

    Raises:
        KeyError: The folder lacks a text.
    """
    texts: dict[str, str] = {}
    for file in sorted(folder.glob("*.jsonl*")):
        for pair in read_grounding(file):
            texts |= {hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]: text for text in pair.contexts}
    for _, row in objects(TWINS):
        yield Twins(row["kind"], row["true"], row["false"], texts[row["context"]], row["set"].endswith("-test"))


def judged(folder: Path) -> list[Judged]:
    """Return what the grounder says of all twins."""
    return [Judged(one, *ground_claims([one.true, one.false], [one.text])) for one in twins_of(folder)]


def accuracy(cases: Sequence[Judged]) -> float:
    """Return the share of statements rightly found supported or not."""
    right = sum((one.true.verdict == "supported") + (one.false.verdict != "supported") for one in cases)
    return right / (2 * len(cases))


def preference(cases: Sequence[Judged]) -> float:
    """Return how often the true statement is more probable than its twin; an equal one counts half."""
    ahead = sum((one.true.probability > one.false.probability) for one in cases)
    level = sum((one.true.probability == one.false.probability) for one in cases)
    return (ahead + level / 2) / len(cases)


def called_contradicted(verdicts: Iterable[ClaimVerdict]) -> float:
    """Return the share of verdicts that are ``contradicted``."""
    called = [verdict.verdict == "contradicted" for verdict in verdicts]
    return sum(called) / len(called)


def _line(name: str, cases: Sequence[Judged]) -> str:
    return (
        f"| {name} | {len(cases)} | {accuracy(cases):.3f} | {preference(cases):.3f} "
        f"| {called_contradicted(one.true for one in cases):.3f} "
        f"| {called_contradicted(one.false for one in cases):.3f} |\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Print a table by kind."""
    if len(arguments) != 1:
        sys.stderr.write("usage: PYTHONPATH=tests python -m tools.twins DIR\n")
        return 2
    cases = judged(Path(arguments[0]))
    for name, part in (("looked at", False), ("kept back", True)):
        of_part = [one for one in cases if one.twins.is_kept_back is part]
        for kind in sorted({one.twins.kind for one in of_part}):
            sys.stdout.write(_line(f"{name}: {kind}", [one for one in of_part if one.twins.kind == kind]))
        sys.stdout.write(_line(f"**{name}**", of_part))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
