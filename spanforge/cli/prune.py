"""`spanforge prune`: stored events that are too old, too many, or somebody's who wants to be forgotten."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from spanforge.analysis import PrunedFile, PruneSelection, prune
from spanforge.cli._output import CliError, console, print_json, table
from spanforge.cli._params import JsonOption, KeyFileOption, filled, place
from spanforge.cli._settings import signing_key

NOT_ALL = 1
_TIMES: Final = {"m": 60.0, "h": 3_600.0, "d": 86_400.0}
_SIZES: Final = {"": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_AMOUNT: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?([a-zA-Z]*)", re.ASCII)


def _amount(name: str, units: Mapping[str, float], example: str) -> Callable[[object], float]:
    """Return what reads a number with its unit."""

    def read(given: object) -> float:
        found = _AMOUNT.fullmatch(str(given).strip())
        if found is None or found[2] not in units or not float(found[1]):
            raise CliError(f"{name}: give a number above 0 with its unit, as in {example}")
        return float(found[1]) * units[found[2]]

    return read


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(
        "prune",
        help="Take events out of files and stores. Exit code 1 where something could not be pruned.",
    )(_prune)


def _prune(  # noqa: PLR0917  typer reads options from the signature
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            parser=place("INPUT"),
            help="A file with those rotated from it, a folder, a glob or a store, on this machine.",
        ),
    ],
    older_than: Annotated[
        float | None,
        typer.Option(
            metavar="TIME",
            parser=_amount("--older-than", _TIMES, "90m, 12h or 30d"),
            help="Sessions that have been silent for longer, as in 12h or 30d.",
        ),
    ] = None,
    max_size: Annotated[
        float | None,
        typer.Option(
            metavar="SIZE",
            parser=_amount("--max-size", _SIZES, "500MB or 2GB"),
            help="The sessions that have been silent longest, until the rest has this size, as in 2GB.",
        ),
    ] = None,
    session: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", parser=filled("--session"), help="This session; may be given more than once."),
    ] = None,
    actor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            parser=filled("--actor"),
            help="What names this person, as actor_id or user_id_hash do; may be given more than once.",
        ),
    ] = None,
    key_file: KeyFileOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    wanted = PruneSelection(
        older_than_s=older_than,
        max_bytes=None if max_size is None else int(max_size),
        sessions=frozenset(session or ()),
        actors=frozenset(actor or ()),
    )
    if wanted == PruneSelection():
        raise CliError("prune: say what is to go: --older-than, --max-size, --session or --actor")
    outcomes = _outcomes(source, wanted, signing_key(key_file), dry_run=dry_run)
    if as_json:
        print_json([_as_data(one) for one in outcomes])
    else:
        _show(outcomes, dry_run=dry_run)
    if any(one.problem for one in outcomes):
        raise typer.Exit(NOT_ALL)


def _outcomes(source: str, wanted: PruneSelection, key: bytes | None, *, dry_run: bool) -> list[PrunedFile]:
    there = any(mark in source for mark in "*?[") or Path(source).expanduser().exists()
    outcomes = prune(source, wanted, key=key, dry_run=dry_run) if there else []
    if not outcomes:
        raise CliError("INPUT: there is no file of events")
    return outcomes


def _show(outcomes: list[PrunedFile], *, dry_run: bool) -> None:
    gone = sum((one.events for one in outcomes), Counter[str]())
    said = ", ".join(f"{count:,} by {reason}" for reason, count in sorted(gone.items()))
    does = "would go" if dry_run else "went"
    console.print(f"{gone.total():,} events {does}{f': {said}' if said else ''}")
    rows = [(one.file.name, one.removed, one.kept, one.problem) for one in outcomes if one.removed or one.problem]
    if rows:
        table("", ["file", "#" + does, "#stayed", "problem"], rows)


def _as_data(outcome: PrunedFile) -> dict[str, object]:
    return {
        "file": outcome.file.name,
        "removed": dict(outcome.events),
        "kept": outcome.kept,
        "problem": outcome.problem or None,
    }
