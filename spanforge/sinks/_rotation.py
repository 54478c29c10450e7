"""When a file is full or old, and what becomes of it then.

`events.jsonl` becomes `events-20261128T001122.123456Z.jsonl`: sorted by name, rotated files stand in the order of
time, before the live one, and still match `*.jsonl`. Nothing is copied, so other processes may go on writing to
the old file until they notice; not a line is lost by that.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from spanforge import _clock
from spanforge.sinks._append import AppendFile
from spanforge.sinks._files import sync_folder
from spanforge.sinks._lock import held

__all__ = ["Rotation"]

_STAMP = r"\d{8}T\d{6}\.\d{6}Z"
_TIME = re.compile(rb'"timestamp":"([^"]{1,40})"')
_HEAD_BYTES = 1024
_RENAMING_S = 0.02
_TURN_S = 1.0
"""Longer than a turn takes on a busy machine; one that takes longer belongs to a process that is stopped."""
_SECOND = 1_000_000_000


class Rotation:
    """The limits of one file.

    Args:
        path: Absolute path of the live file.
        max_bytes: Size a file is kept under, None for no limit.
        max_age_s: Seconds after its first event when a file is closed, None for no limit.
        keep: Rotated files kept, None for all.
        durable: Sync the file and its folder when it is rotated.
    """

    def __init__(
        self, path: Path, *, max_bytes: int | None, max_age_s: float | None, keep: int | None, durable: bool
    ) -> None:
        self._path = path
        self._max_bytes = math.inf if max_bytes is None else max_bytes
        self._max_age_ns = math.inf if max_age_s is None else max_age_s * _SECOND
        self._keep = keep
        self._durable = durable
        self._is_our_turn = False
        # Whatever is appended to the name (by whoever compresses or ships it) leaves it a rotated file of ours.
        self._rotated = re.compile(
            f"{re.escape(self._path.stem)}-({_STAMP}){re.escape(self._path.suffix)}(?:\\.[a-z0-9]+)?"
        )

    @contextmanager
    def turn(self) -> Generator[None]:
        """Let no other process write for a block, where there is a size to keep to: what was seen stays true.

        A process that is stopped within its turn is not waited for without end; the limit may be passed then.
        """
        with ExitStack() as stack:
            if math.isfinite(self._max_bytes):
                with suppress(OSError):
                    self._is_our_turn = stack.enter_context(held(self._path, _TURN_S))
            try:
                yield
            finally:
                self._is_our_turn = False

    def room(self, size: int) -> float:
        """Return how many bytes still fit into a file of this size."""
        return self._max_bytes - size

    def born_ns(self, file: AppendFile) -> int:
        """Return the time of a file's first event, the same for every process; now, where that cannot be read."""
        if math.isfinite(self._max_age_ns) and file.size() and (found := _TIME.search(file.head(_HEAD_BYTES))):
            with suppress(ValueError):
                return _clock.parse_timestamp(found[1].decode("ascii", "replace"))
        return _clock.wall_ns()

    def is_old(self, born_ns: int) -> bool:
        """Tell whether a file whose first event has this time is due."""
        return _clock.wall_ns() - born_ns >= self._max_age_ns

    def rotate(self, file: AppendFile) -> None:
        """Give the file its final name, or wait a moment for another process that is doing so.

        `file` is stale afterwards. Where the file cannot be renamed it goes on growing, and the next write tries
        again.
        """
        with suppress(OSError):
            if self._is_our_turn:
                self._rename(file)
                return
            with held(self._path, _RENAMING_S) as ours:
                if ours:
                    self._rename(file)

    def _rename(self, file: AppendFile) -> None:
        if file.is_stale():
            return
        if self._durable:
            file.sync()
        if os.name == "nt":  # pragma: no cover  Windows does not rename what is open
            file.close()
        self._path.rename(self._next_name())
        if self._durable:
            sync_folder(self._path.parent)
        self._prune()

    def _next_name(self) -> Path:
        now = _clock.wall_ns()
        if names := self._names():
            last = self._rotated.fullmatch(names[-1])
            # Names keep the order of rotation, even if the clock steps back.
            now = max(now, _clock.parse_timestamp(last[1]) + 1000) if last else now
        stamp = _clock.timestamp(now).replace("-", "").replace(":", "")
        return self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")

    def _prune(self) -> None:
        if self._keep is not None:
            names = self._names()
            for name in names[: max(0, len(names) - self._keep)]:
                self._path.with_name(name).unlink(missing_ok=True)

    def _names(self) -> list[str]:
        return sorted(entry.name for entry in self._path.parent.iterdir() if self._rotated.fullmatch(entry.name))
