"""The jsonl sink: one event a line, many processes on one file, nothing torn or lost."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, get_args

from pydantic import SecretStr

from spanforge import _clock, _hashing, _ids
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.chain import Chain
from spanforge.namespaces.event import Event
from spanforge.sinks._append import AppendFile
from spanforge.sinks._files import absolute, code_of, sync_folder
from spanforge.sinks._rotation import Rotation
from spanforge.sinks.base import BaseSink

__all__ = ["Fsync", "JsonlSink"]

Fsync = Literal["never", "interval", "always"]

_UNENCODABLE: Final = (TypeError, ValueError, RecursionError)


class JsonlSink(BaseSink):
    """Appends events to a file.

    Args:
        path: The file; its folder is made where it is missing. A relative path is fixed when the sink is made.
        max_bytes: Size that the file is rotated to stay under, however many processes write to it. A line longer than
            that gets a file of its own.
        max_age_s: Seconds after the first event of a file when it is rotated.
        keep: Rotated files kept; None keeps all of them.
        fsync: When the disk is waited for. `never` leaves it to the system (a crash of the process loses
            nothing, a crash of the machine may), `interval` syncs every `fsync_interval_s`, `always` after
            every batch.
        fsync_interval_s: Seconds between syncs.
        chain: Seal each line and link it to the one before; by default where there is a signing key. A chain
            belongs to one process and one opening of the file.
        signing_key: Key of the seals' HMAC-SHA-256.
        name: What the ledger calls it; `jsonl:` and the file's name by default.

    Raises:
        ConfigError: An argument cannot be used; the message names it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int | None = None,
        max_age_s: float | None = None,
        keep: int | None = None,
        fsync: Fsync = "never",
        fsync_interval_s: float = 1.0,
        chain: bool | None = None,
        signing_key: bytes | SecretStr | None = None,
        name: str | None = None,
    ) -> None:
        _check("max_bytes", max_bytes, whole=True, above=0)
        _check("max_age_s", max_age_s, whole=False, above=0)
        _check("keep", keep, whole=True, above=-1)
        _check("fsync_interval_s", fsync_interval_s, whole=False, above=0)
        if fsync not in get_args(Fsync):
            raise ConfigError(f"fsync: use one of {', '.join(get_args(Fsync))}")
        self._path = absolute(path)
        self._fsync: Fsync = fsync
        self._interval = fsync_interval_s
        self._rotation = Rotation(
            self._path, max_bytes=max_bytes, max_age_s=max_age_s, keep=keep, durable=fsync != "never"
        )
        self._key = _key_bytes(signing_key)
        self._chained = self._key is not None if chain is None else chain
        self.name = name or f"jsonl:{self._path.name}"
        self._forget()

    def _forget(self) -> None:
        self._file: AppendFile | None = None
        self._chain: Chain | None = None
        self._born_ns = 0
        self._unsynced = False
        self._synced_at = _clock.monotonic()

    # -- what a sink does ---------------------------------------------------------------------------------------

    def write(self, events: Sequence[Event], /) -> None:
        """Append the events, each batch with one system call.

        Raises:
            SinkWriteError: Only the first `delivered` events are safely in the file. A torn line is left behind,
                and the next one begins on its own.
        """
        done, problem, retryable = 0, "", True
        try:
            while done < len(events) and not problem:
                self._opened()
                with self._rotation.turn():
                    file, lines, problem = self._prepare(events[done:])
                    whole = file.append(lines) if lines else 0
                retryable = not problem
                if whole < len(lines):
                    problem, retryable = "short write", True
                if whole and not file.is_lost:
                    self._written(file, events[done + whole - 1])
                    done += whole
        except OSError as error:
            problem, retryable = code_of(error), True
        if problem:
            raise SinkWriteError(problem, delivered=done, retryable=retryable)

    def idle(self) -> None:
        """Sync what is due and rotate an old file.

        Raises:
            SinkWriteError: The disk did not take it.
        """
        self._guarded_by_code(self._tidy)

    def close(self) -> None:
        """Sync where the policy says so, and close the file.

        Raises:
            SinkWriteError: The disk did not take it.
        """
        self._guarded_by_code(self._close)

    def after_fork(self) -> None:
        """Let the child open the file anew, with a chain of its own, when it writes; close nothing."""
        self._forget()

    # -- how --------------------------------------------------------------------------------------------------

    def _opened(self) -> AppendFile:
        """Return the file that the path leads to now."""
        if self._file is not None and self._file.is_stale():
            self._close()
        if self._file is None:
            self._file = AppendFile(self._path)
            self._born_ns = self._rotation.born_ns(self._file)
            if self._fsync != "never" and not self._file.size():
                sync_folder(self._path.parent)
            if self._chained:
                self._chain = Chain(_ids.encode(_ids.IdSource().mint(_clock.wall_ns())), self._key)
        return self._file

    def _prepare(self, events: Sequence[Event]) -> tuple[AppendFile, list[bytes], str]:
        """Return the file to write to, as many lines as fit into it, and what is wrong with the event after them."""
        file = self._opened()
        size = file.size()
        if not size:
            self._born_ns = _clock.wall_ns()
        elif self._rotation.is_old(self._born_ns):
            file = self._rotate(file)
            size = file.size()
        lines, problem = self._lines(events, self._rotation.room(size), at_least=0 if size else 1)
        if not lines and not problem:
            file = self._rotate(file)
            lines, problem = self._lines(events, self._rotation.room(0), at_least=1)
        return file, lines, problem

    def _rotate(self, file: AppendFile) -> AppendFile:
        self._rotation.rotate(file)
        return self._opened()

    def _lines(self, events: Iterable[Event], room: float, *, at_least: int) -> tuple[list[bytes], str]:
        lines: list[bytes] = []
        try:
            for event in self._chain.seal_all(events) if self._chain else events:
                line = event.encode()
                room -= len(line) + 1
                if room < 0 and len(lines) >= at_least:
                    break
                lines.append(line)
        except _UNENCODABLE as error:
            return lines, type(error).__name__
        return lines, ""

    def _written(self, file: AppendFile, last: Event) -> None:
        """Link the chain to the last line written, and sync where that is due."""
        if self._chain:
            self._chain.commit(last.event_id)
        self._unsynced = True
        if self._fsync == "always" or self._is_sync_due():
            self._sync(file)

    def _is_sync_due(self) -> bool:
        return self._fsync == "interval" and self._unsynced and _clock.monotonic() - self._synced_at >= self._interval

    def _sync(self, file: AppendFile) -> None:
        self._unsynced = False
        self._synced_at = _clock.monotonic()
        try:
            file.sync()
        except OSError:
            # What the disk holds is unknown now. The events will be tried again, so they need a chain of their own.
            self._forget()
            file.close()
            raise

    def _tidy(self) -> None:
        file = self._file
        if file is None:
            return
        if file.is_stale():
            self._close()
        elif file.size() and self._rotation.is_old(self._born_ns):
            self._rotate(file)
        elif self._is_sync_due():
            self._sync(file)

    def _close(self) -> None:
        file, unsynced = self._file, self._unsynced
        self._forget()
        if file is not None:
            try:
                if unsynced and self._fsync != "never":
                    file.sync()
            finally:
                file.close()

    def _guarded_by_code(self, action: Callable[[], None]) -> None:
        """Run `action`; its error leaves as a code."""
        problem = ""
        try:
            action()
        except OSError as error:
            problem = code_of(error)
        if problem:
            raise SinkWriteError(problem)


def _check(name: str, value: object, *, above: int, whole: bool) -> None:
    """Refuse what is no number, or not above a bound; None stands for no limit."""
    if value is None:
        return
    kind = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not above < value < math.inf:
        what = "a whole number" if whole else "a number of seconds"
        raise ConfigError(f"{name}: use {what} above {above}, or None")


def _key_bytes(key: bytes | SecretStr | None) -> bytes | None:
    if key is None:
        return None
    secret = _hashing.utf8(key.get_secret_value()) if isinstance(key, SecretStr) else key
    if not isinstance(secret, bytes) or not secret:  # pyright: ignore[reportUnnecessaryIsInstance]  callers are not all typed
        raise ConfigError("signing_key: give bytes or a SecretStr that is not empty; secrets.token_bytes(32) makes one")
    return secret
