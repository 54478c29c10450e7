"""Builds the index in the background, newest events first, and goes on as the store grows."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spanforge.namespaces.event import Event
from spanforge.reader._decode import events_in
from spanforge.reader._paths import expand, family
from spanforge.server.viewer.index.lines import Found
from spanforge.server.viewer.index.schema import connect, create
from spanforge.server.viewer.index.scratch import discard, new_folder
from spanforge.server.viewer.index.sources import Source, source_of
from spanforge.server.viewer.index.writer import Placed, Stored, Writer, storable

__all__ = ["Index", "Progress"]

_POLL_S: Final = 0.5
_BETWEEN_S: Final = 0.05
_STEP: Final = 32
_AFTER_PROBLEM_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the index has come.

    Attributes:
        complete: Everything that was stored when last looked has been read.
        done: How much has been read; `total` is of how much, both in `unit`.
        unit: `bytes` or `events`; `files` where a folder has both.
        damaged: What was left out, by reason.
        unsessioned: Events that belong to no session.
        exists: There is something at the store's path.
        problem: Code of what keeps the index from being written; empty where nothing does.
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


class Index:
    """The figures of a store, in a scratch database that is deleted with the index.

    Nothing is read before `start`. Sessions are kept for each organisation apart.

    Args:
        store: A file of the jsonl or sqlite sink, a folder or a pattern; it may come to be later.
        poll_s: Seconds between looks once everything has been read.
    """

    def __init__(self, store: str | Path, *, poll_s: float = _POLL_S) -> None:
        self._store, self._poll_s = Path(store).expanduser(), poll_s
        self._folder, owned = new_folder()
        self._path = self._folder / "index.db"
        self._remove = weakref.finalize(self, discard, self._folder, owned)
        self._sources: list[Source] = []
        self._known: dict[tuple[int, int], Source] = {}
        self._damaged: Counter[str] = Counter()
        self._unwritten: dict[int, list[Placed]] = {}
        self._unsessioned = 0
        self._complete, self._problem = False, ""
        self._stop, self._idle, self._first = threading.Event(), threading.Event(), threading.Event()
        self._idle.set()
        self._asking, self._lock = 0, threading.Lock()
        self._thread: threading.Thread | None = None
        self._writer = Writer(create(self._path))

    @property
    def name(self) -> str:
        """What the store is called: the last part of its path."""
        return self._store.name or str(self._store)

    def start(self, wait_s: float = 0.5) -> None:
        """Begin to read, if that has not begun; wait shortly for the newest sessions.

        Not done when the index is made: a server that forks after loading its application would leave its threads.
        """
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="spanforge-viewer", daemon=True)
                self._thread.start()
        self._first.wait(wait_s)

    def close(self) -> None:
        """Stop reading, and delete the scratch database."""
        self._stop.set()
        self._idle.set()
        if self._thread is not None:
            self._thread.join(10.0)
        self._writer.close()
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
            with closing(connect(self._path)) as connection:
                yield connection
        finally:
            with self._lock:
                self._asking -= 1
                if not self._asking:
                    self._idle.set()

    def catch_up(self) -> None:
        """Read everything that is there now, in this thread; for tests and scripts, where `start` was not called."""
        self._discover()
        while sum(self._take(number) for number in range(len(self._sources))):
            continue
        self._complete = True

    def events_of(self, stored: Sequence[Stored], org: str) -> list[Event]:
        """Return stored events again; left out are those whose line is gone, or holds another event by now."""
        by_source: dict[int, list[int]] = {}
        for one in stored:
            by_source.setdefault(one.source, []).append(one.place)
        lines = {number: self._sources[number].lines_at(places) for number, places in by_source.items()}
        found: list[Event] = []
        for one in stored:
            data = one.line or lines[one.source].get(one.place, b"")
            same = (e for e in events_in(data, Counter()) if storable(e.event_id) == one.event_id)
            found.extend(event for event in same if storable(event.org_id) == org)
        return found

    def progress(self) -> Progress:
        """Return how far the index has come."""
        sources = list(self._sources)
        damaged = Counter(self._damaged)
        for source in sources:
            damaged.update(source.damaged)
        units = {source.unit for source in sources}
        parts = [source.progress() for source in sources]
        if len(units) > 1:
            done, total, unit = sum(a >= b for a, b in parts), len(parts), "files"
        else:
            done, total, unit = sum(a for a, _ in parts), sum(b for _, b in parts), next(iter(units), "bytes")
        return Progress(
            complete=self._complete,
            done=done,
            total=total,
            unit=unit,
            damaged={reason: count for reason, count in damaged.items() if count},
            unsessioned=self._unsessioned,
            exists=bool(sources),
            problem=self._problem,
        )

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._round()
            except sqlite3.Error as error:  # no room for the scratch database: said on every page, and tried again
                self._problem = getattr(error, "sqlite_errorname", "") or type(error).__name__
                self._first.set()
                self._stop.wait(_AFTER_PROBLEM_S)

    def _round(self) -> None:
        """Look once at every source until one has something, and wait where none has."""
        self._discover()
        # Live files stand last in the order of names, and have the newest events.
        took = any(self._take(number) for number in reversed(range(len(self._sources))))
        if not took:
            self._complete = True
            self._first.set()
            self._stop.wait(self._poll_s)
        else:
            self._first.set()

    def _discover(self) -> None:
        for path in _files(self._store):
            try:
                info = path.stat()
            except OSError:
                continue
            key = info.st_dev, info.st_ino
            source = self._known.get(key)
            if source is not None:
                source.moved(path)
            elif (source := source_of(path)) is not None:
                self._complete = False
                self._known[key] = source
                self._sources.append(source)

    def _take(self, number: int) -> bool:
        """Read some lines of a source; false where it has none now."""
        source = self._sources[number]
        if number not in self._unwritten:
            found = source.read()
            if not found:
                return False
            # A source gives its lines once, so what was made of them is kept until it is written.
            self._unwritten[number] = list(self._events(found))
        self._unsessioned += self._writer.write(number, self._unwritten[number], source.damaged)
        del self._unwritten[number]
        self._problem = ""
        return True

    def _events(self, found: list[Found]) -> Iterator[Placed]:
        for count, line in enumerate(found):
            if count % _STEP == 0 and not self._stop.is_set():
                self._idle.wait(_BETWEEN_S)
            for event in events_in(line.data, self._damaged):
                yield event, line.place, line.data if line.keep else None


def _files(store: Path) -> list[Path]:
    """Return the files of a store now: for one file, those that were rotated from it too."""
    try:
        files = expand(store)
    except FileNotFoundError:
        return []
    if files == [store] and not os.fspath(store).endswith((".db", ".sqlite", ".sqlite3", ".gz", ".zst")):
        return [file for file in family(store) if file != store] + [store]
    return files
