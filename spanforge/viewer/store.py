"""What the pages ask: a sqlite store itself, or a scratch one of the same shape that other files are read into."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.reader.paths import expand, family
from spanforge.reader.session_store import has_sessions
from spanforge.reader.store import connect
from spanforge.sinks.sqlite import SqliteSink
from spanforge.viewer.scratch import discard, new_folder
from spanforge.viewer.sources import Source, source_of

__all__ = ["Progress", "ViewedStore"]

_POLL_S: Final = 0.5
_BETWEEN_S: Final = 0.05
_AFTER_PROBLEM_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the store has been read.

    Attributes:
        complete: Everything that was stored when last looked has been read.
        done: How much has been read; `total` is of how much, both in `unit`.
        unit: `bytes` or `events`; `files` where a folder has both.
        damaged: What was left out, by reason.
        unsessioned: Events that belong to no session.
        exists: There is something at the store's path.
        problem: Code of what keeps the scratch store from being written; empty where nothing does.
    """

    complete: bool
    done: int
    total: int
    unit: str
    damaged: dict[str, int]
    unsessioned: int
    exists: bool
    problem: str = ""

    @property
    def share(self) -> float:
        """How much has been read, in [0, 1]."""
        return 1.0 if self.complete else min(self.done / self.total, 1.0) if self.total else 0.0


class ViewedStore:
    """A store to be looked at. Sessions are kept for each organisation apart.

    A database of the sqlite sink is asked as it is. Anything else is read into a scratch store, which is deleted
    with this one. Nothing is read before `start`.

    Args:
        path: A file of the jsonl or sqlite sink, a folder or a pattern; it may come to be later.
        poll_s: Seconds between looks once everything has been read.
    """

    def __init__(self, path: str | Path, *, poll_s: float = _POLL_S) -> None:
        self._path, self._poll_s = Path(path).expanduser(), poll_s
        folder, owned = new_folder()
        self._scratch = folder / "events.db"
        self._remove = weakref.finalize(self, discard, folder, owned)
        self._sink = SqliteSink(self._scratch)
        self._sources: dict[tuple[int, int], Source] = {}
        self._direct: tuple[int, int] | None = None
        self._unwritten: list[Event] = []
        self._complete, self._problem = False, ""
        self._stop, self._idle, self._first = threading.Event(), threading.Event(), threading.Event()
        self._idle.set()
        self._asking, self._lock = 0, threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        """What the store is called: the last part of its path."""
        return self._path.name or str(self._path)

    def start(self, wait_s: float = 0.5) -> None:
        """Begin to read, if that has not begun and is needed; wait shortly for the first sessions.

        Not done when it is made: a server that forks after loading its application would leave its threads.
        """
        if self._is_direct():
            return
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._sink.write([])
                self._thread = threading.Thread(target=self._run, name="spanforge-viewer", daemon=True)
                self._thread.start()
        self._first.wait(wait_s)

    def close(self) -> None:
        """Stop reading, and delete the scratch store."""
        self._stop.set()
        self._idle.set()
        if self._thread is not None:
            self._thread.join(10.0)
        self._sink.close()
        self._remove()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Give a connection that reads, and hold the background work up meanwhile.

        Two threads that share an interpreter wait for each other at every row; a person waits for only one of them.
        """
        with self._lock:
            self._asking += 1
            self._idle.clear()
        try:
            with closing(self._connected()) as connection:
                yield connection
        finally:
            with self._lock:
                self._asking -= 1
                if not self._asking:
                    self._idle.set()

    def catch_up(self) -> None:
        """Read everything that is there now, in this thread; for tests and scripts, where `start` was not called."""
        self._sink.write([])
        while self._step():
            continue
        self._complete = True

    def progress(self) -> Progress:
        """Return how far the store has been read."""
        direct, sources = self._is_direct(), list(self._sources.values())
        damaged = sum((source.damaged for source in sources), Counter[str]())
        with closing(self._connected()) as connection:
            damaged.update(dict(connection.execute("SELECT reason, times FROM damage")))
            folded, unsessioned, newest = connection.execute(
                "SELECT seq, without_session, (SELECT max(seq) FROM events) FROM folded"
            ).fetchone()
        if direct:
            done, total, unit = folded, newest or 0, "events"
        else:
            done, total, unit = _read_of(sources)
        return Progress(
            complete=done >= total if direct else self._complete,
            done=done,
            total=total,
            unit=unit,
            damaged={reason: count for reason, count in damaged.items() if count},
            unsessioned=unsessioned,
            exists=direct or bool(sources),
            problem=self._problem,
        )

    def _is_direct(self) -> bool:
        """Tell whether the store is asked as it is. One that was stays so while its file does, be it locked or not."""
        try:
            info = self._path.stat()
        except OSError:
            return False
        if self._direct != (info.st_dev, info.st_ino):
            self._direct = (info.st_dev, info.st_ino) if has_sessions(self._path) else None
        return self._direct is not None

    def _connected(self) -> sqlite3.Connection:
        if self._is_direct():
            return connect(self._path)
        if not self._scratch.exists():
            self._sink.write([])
        return connect(self._scratch)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                took = self._step()
            except SinkWriteError as error:  # no room for the scratch store: said on every page, and tried again
                self._problem = str(error)
                self._first.set()
                self._stop.wait(_AFTER_PROBLEM_S)
                continue
            self._complete = self._complete or not took
            self._first.set()
            if took:
                self._idle.wait(_BETWEEN_S)
            else:
                self._stop.wait(self._poll_s)

    def _step(self) -> bool:
        """Read a part of the newest file that has something; False where none has."""
        if not self._unwritten:
            self._discover()
            # Live files stand last in the order of names, and have the newest events.
            reads = (source.read() for source in reversed(self._sources.values()))
            found = next((events for events in reads if events is not None), None)
            if found is None:
                return False
            # A source gives its events once, so they are kept until they are written.
            self._unwritten = found
        self._sink.write(self._unwritten)
        self._unwritten, self._problem = [], ""
        return True

    def _discover(self) -> None:
        for path in [] if self._is_direct() else _files(self._path):
            with suppress(OSError):
                info = path.stat()
                key = info.st_dev, info.st_ino
                if key in self._sources:
                    self._sources[key].path = path
                elif (source := source_of(path)) is not None:
                    self._complete = False
                    self._sources[key] = source


def _read_of(sources: list[Source]) -> tuple[int, int, str]:
    """Return how much of files has been read, of how much, and in which unit."""
    units = {source.unit for source in sources}
    parts = [source.progress() for source in sources]
    if len(units) > 1:
        return sum(done >= total for done, total in parts), len(parts), "files"
    return sum(done for done, _ in parts), sum(total for _, total in parts), next(iter(units), "bytes")


def _files(path: Path) -> list[Path]:
    """Return the files of a store now: for one file, those that were rotated from it too."""
    try:
        files = [file for file in expand(path) if isinstance(file, Path)]
    except FileNotFoundError:
        return []
    if files == [path] and path.suffix not in {".db", ".sqlite", ".sqlite3", ".gz", ".zst"}:
        return [file for file in family(path) if file != path] + [path]
    return files
