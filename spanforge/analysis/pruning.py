"""Events taken out of files and stores that others go on writing to."""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from spanforge import _clock
from spanforge._version import __version__
from spanforge.analysis.selection import Doomed, PruneSelection
from spanforge.analysis.table_pruning import prune_table
from spanforge.exceptions import ConfigError, MissingExtraError
from spanforge.namespaces.tombstones import Gaps
from spanforge.reader import MAX_LINE_BYTES, Paths, expand, family, stored_lines
from spanforge.reader.decoding import events_in
from spanforge.reader.tables import PARQUET_MAGIC
from spanforge.sinks import retention
from spanforge.sinks.rewriting import MovedError, Piece, opened, pieces, rewrite

__all__ = ["PrunedFile", "prune"]

_SOURCE: Final = f"spanforge@{__version__}"
_STORE: Final = b"SQLite format 3\0"
_ROUNDS: Final = 5
_UNREADABLE: Final = {
    "corrupt": "the database is damaged",
    "locked": "another program has locked the database: try again",
    "not_a_store": "it is a database of something else",
}
_PROBLEMS: Final[Mapping[type[Exception], str]] = {
    retention.NotAStoreError: _UNREADABLE["not_a_store"],
    retention.NewerSchemaError: "a newer spanforge wrote it: upgrade spanforge",
    EOFError: "it is compressed, and breaks off",
    zlib.error: "it is compressed, and damaged",
}


@dataclass(slots=True)
class PrunedFile:
    """What became of one file.

    Attributes:
        file: The file.
        events: Events that went, by reason: `age`, `size`, `session`, `actor`.
        kept: Lines that stayed.
        problem: Why the file is as it was, or what is left to be done in a store.
    """

    file: Path
    events: Counter[str] = field(default_factory=Counter[str])
    kept: int = 0
    problem: str = ""

    @property
    def removed(self) -> int:
        """How many events went."""
        return self.events.total()

    def count(self, reason: str) -> bool:
        """Count a line that goes for a reason, or stays for none; return whether it goes."""
        if reason:
            self.events[reason] += 1
        else:
            self.kept += 1
        return bool(reason)


def prune(paths: Paths, wanted: PruneSelection, *, key: bytes | None = None, dry_run: bool = False) -> list[PrunedFile]:
    """Take events out of files and stores, while others go on writing to them.

    Each file is replaced in one step, so that an interrupted run leaves it as it was or done. In place of what went
    stand tombstones, which `spanforge verify` accepts; in a store there are none. Indexes that were kept beside the
    files are removed: the next reader makes them anew.

    Args:
        paths: As of `read_events`; a file stands for those that were rotated from it too.
        wanted: What is to go.
        key: The signing key, where the files are signed.
        dry_run: Say what would go, and change nothing.

    Returns:
        An outcome for each file. One that has a `problem` is as it was; a store, but for the `events` it says.

    Raises:
        ConfigError: A path is a URL.
        FileNotFoundError: A path leads to nothing.
    """
    doomed = Doomed(wanted, _clock.wall_ns())
    doomed.look_at(_files(paths))
    outcomes: list[PrunedFile] = []
    seen: set[tuple[int, int]] = set()
    for _ in range(_ROUNDS):  # what is rotated meanwhile has another name in the next one
        new = [file for file in _files(paths) if _identity(file) not in seen]
        for file in new:
            outcome = _pruned(file, doomed, key, dry_run=dry_run)
            if outcome is not None:
                outcomes.append(outcome)
                seen.add(_identity(file))
        if dry_run or not new:
            break
    return outcomes


def _files(paths: Paths) -> list[Path]:
    """Return the files that are meant, each by one of its names: what is there twice must not count twice."""
    named = [one for one in expand(paths) if isinstance(one, Path)]
    if not named:
        raise ConfigError("INPUT: only files on this machine can be pruned")
    files: dict[tuple[int, int], Path] = {}
    for file in (file for one in named for file in [*family(one, packed=True), one]):
        if file.is_file():
            files.setdefault(_identity(file), file)
    return list(files.values())


def _identity(file: Path) -> tuple[int, int]:
    with suppress(FileNotFoundError):
        info = file.stat()
        return info.st_dev, info.st_ino
    return 0, 0


def _pruned(file: Path, doomed: Doomed, key: bytes | None, *, dry_run: bool) -> PrunedFile | None:
    """Prune one file; None where it has another name by now."""
    outcome, head = PrunedFile(file), b""
    try:
        with file.open("rb") as stream:
            head = stream.read(len(_STORE))
        if head == _STORE:
            _prune_store(outcome, doomed, dry_run=dry_run)
        elif head.startswith(PARQUET_MAGIC):
            prune_table(file, lambda line: outcome.count(doomed.reason_of_line(line)), dry_run=dry_run)
        else:
            _prune_lines(outcome, doomed, key, dry_run=dry_run)
    except (MovedError, FileNotFoundError):
        return None
    except (OSError, sqlite3.Error, ConfigError, MissingExtraError, *_PROBLEMS) as error:  # pyright: ignore[reportUnknownVariableType]
        problem = _said(error)  # pyright: ignore[reportUnknownArgumentType]
        # A store loses what it loses step by step; a file all of it, or nothing.
        outcome = replace(outcome, problem=problem) if head == _STORE else PrunedFile(file, problem=problem)
    if outcome.removed and not dry_run:
        retention.forget_index(file)
    return outcome


def _said(error: Exception) -> str:
    return _PROBLEMS.get(type(error)) or getattr(error, "strerror", None) or str(error)


def _prune_store(outcome: PrunedFile, doomed: Doomed, *, dry_run: bool) -> None:
    damaged = Counter[str]()
    for line in stored_lines(outcome.file, MAX_LINE_BYTES, damaged):
        outcome.count(doomed.reason_of_line(line.data))
    if unread := damaged.keys() & _UNREADABLE.keys():
        raise ConfigError(_UNREADABLE[unread.pop()])
    if dry_run:
        return
    owed, outcome.events = outcome.removed > 0 or retention.is_unfinished(outcome.file), Counter()
    if owed:
        retention.forget_index(outcome.file)  # which a store that was pruned halfway would be at odds with for ever
        retention.remove(outcome.file, doomed.reason_of_line, outcome.events)


def _prune_lines(outcome: PrunedFile, doomed: Doomed, key: bytes | None, *, dry_run: bool) -> None:
    if not any(doomed.reason_of_line(line) for line in _lines(outcome.file)):
        return
    if not any(True for line in _lines(outcome.file) for _ in events_in(line, Counter())):
        raise ConfigError("it mentions what is to go, and is no file of events")
    cut = _Cut(outcome, doomed, key)
    if dry_run:
        with ExitStack() as stack:
            for _ in cut(pieces(opened(outcome.file, stack)[1])):
                pass
    else:
        rewrite(outcome.file, cut, lambda: outcome.removed > 0)


def _lines(file: Path) -> Iterator[bytes]:
    with ExitStack() as stack:
        yield from (piece.data for piece in pieces(opened(file, stack)[1]) if piece.whole)


class _Cut:
    """Leaves lines of a file out, and counts.

    Args:
        outcome: Where it is counted.
        doomed: Tells which.
        key: The signing key, where lines are signed.
    """

    def __init__(self, outcome: PrunedFile, doomed: Doomed, key: bytes | None) -> None:
        self._outcome = outcome
        self._doomed = doomed
        self._gaps = Gaps(key, _SOURCE)

    def __call__(self, some: Iterable[Piece]) -> Iterator[bytes]:
        """Give what the new file holds."""
        ended = True
        for data, whole in some:
            reason = self._doomed.reason_of_line(data) if whole else ""
            self._outcome.count(reason)
            for line in self._gaps.take_out(data, reason) if reason else self._gaps.keep(data):
                yield line
                ended = line.endswith(b"\n")
        for line in self._gaps.rest():
            yield line if ended else b"\n" + line
            ended = True
