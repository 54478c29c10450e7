"""An index of stored events, kept beside them: a log that grows is read once.

Its folder holds Parquet files and a manifest that names them. A file is never changed once the manifest names it, and
the manifest is replaced in one step: so any process reads a whole index while another writes the next, and of two that
write at a time the last one's counts.
"""

from __future__ import annotations

import gc
import json
import shutil
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from uuid import uuid4
from zlib import crc32

from spanforge.analysis import expressions
from spanforge.analysis.rows import FEW_VALUES, SCHEMA, arrow, tables
from spanforge.reader import (
    MAX_LINE_BYTES,
    File,
    Line,
    Mark,
    Paths,
    Record,
    RecordDecoder,
    expand,
    lines_since,
    mark,
    unread,
)

__all__ = ["Index", "Manifest"]

compute: Final[Any] = import_module("pyarrow.compute")
parquet: Final[Any] = import_module("pyarrow.parquet")

_VERSION: Final = 4
_BYTES_EACH: Final = 1 << 29
"""Bytes of log whose sessions are folded at once: what bounds the memory."""
_DELTA_SHARE: Final = 0.1
# Almost every id is another, and no query asks for a range: dictionaries and statistics of them would help nobody.
_AS_ROWS: Final[Mapping[str, Any]] = {"compression": "snappy", "use_dictionary": FEW_VALUES, "write_statistics": False}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index holds.

    Attributes:
        marks: How far each file was read, by its path.
        rows: Files of events, apart by session; `delta` is the file of those that came after, empty where none did.
        sessions: Files of sessions; `delta_sessions` is the file of those that the delta changed.
        events: Events read, repeats included.
        rest: How many lines were not plain, and read one by one.
        damaged: What was skipped, by reason.
    """

    marks: Mapping[str, Mark] = field(default_factory=dict[str, Mark])
    rows: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    delta: str = ""
    delta_sessions: str = ""
    events: int = 0
    rest: int = 0
    damaged: Mapping[str, int] = field(default_factory=dict[str, int])

    def save(self, folder: Path) -> None:
        """Make this the manifest of a folder, in one step."""
        written = folder / f"manifest-{uuid4().hex}.tmp"
        written.write_text(json.dumps({"version": _VERSION, **asdict(self)}), "utf-8")
        written.replace(folder / "manifest.json")

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """Return the manifest of a folder, an empty one where none can be used."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            data = json.loads((folder / "manifest.json").read_text("utf-8"))
            if data.pop("version") == _VERSION:
                marks = {path: Mark(*values) for path, values in data.pop("marks").items()}
                rows, sessions = tuple(data.pop("rows")), tuple(data.pop("sessions"))
                return cls(marks=marks, rows=rows, sessions=sessions, **data)
        return cls()

    @property
    def files(self) -> set[str]:
        """Names of the files it needs."""
        return {*self.rows, *self.sessions, self.delta, self.delta_sessions} - {""}


class Index:
    """The sessions of some files, kept in a folder.

    Args:
        paths: Files, folders and patterns, as of `read_events`.
        folder: Where it is kept.
        connection: Ibis connection of DuckDB.
    """

    def __init__(self, paths: Paths, folder: Path, connection: Any) -> None:
        self.folder = folder
        self._paths = paths
        self._connection = connection
        folder.mkdir(parents=True, exist_ok=True)
        self.manifest = Manifest.load(folder)

    def refresh(self) -> Manifest:
        """Read what has been written since the last time, all of it where something of it is gone."""
        before, files = self.manifest, expand(self._paths)
        marks = _known(before, files) if _all_there(before, self.folder) else None
        new = {path: unread(path) for path in files}
        if before.rows and marks is not None and all(marks[path].offset == new[path] for path in files):
            return before
        grown = sum(new.values()) - sum(one.offset for one in (marks or {}).values())
        if marks is None or not before.rows or grown > _DELTA_SHARE * max(1, sum(new.values())):
            now = self._build(files, new)
        else:
            now = self._extend(before, marks, new)
        now.save(self.folder)
        self.manifest = now
        self._tidy(before, now)
        return now

    def sessions(self) -> Any:
        """Return the table of sessions: those of the base that the delta did not change, and the delta's."""
        base = self._read(self.manifest.sessions)
        if not self.manifest.delta_sessions:
            return base
        changed = self._read([self.manifest.delta_sessions])
        return base.anti_join(changed, list(expressions.KEY)).union(changed)

    def _build(self, files: list[File], ends: Mapping[File, int]) -> Manifest:
        decode, damaged = RecordDecoder(), Counter[str]()
        parts = 1 + sum(path.stat().st_size for path in files) // _BYTES_EACH
        names = [f"rows-{uuid4().hex}.parquet" for _ in range(parts)]
        lines = _lines(dict.fromkeys(files, 0), ends, damaged)
        events = self._write_rows(names, decode(lines, damaged), 0)
        return Manifest(
            marks={str(path): mark(path, ends[path]) for path in files},
            rows=tuple(names),
            sessions=tuple(self._fold([name]) for name in names),
            events=events,
            rest=decode.rest,
            damaged=dict(damaged),
        )

    def _extend(self, before: Manifest, marks: Mapping[File, Mark], ends: Mapping[File, int]) -> Manifest:
        decode, damaged = RecordDecoder(), Counter(before.damaged)
        name = f"delta-{uuid4().hex}.parquet"
        lines = _lines({path: one.offset for path, one in marks.items()}, ends, damaged)
        added = self._write_rows([name], decode(lines, damaged), before.events, before.delta)
        return Manifest(
            marks={str(path): mark(path, end) for path, end in ends.items()},
            rows=before.rows,
            sessions=before.sessions,
            delta=name,
            delta_sessions=self._fold([*before.rows, name], of=name),
            events=before.events + added,
            rest=before.rest + decode.rest,
            damaged=dict(damaged),
        )

    def _write_rows(self, names: list[str], records: Iterator[Record], start: int, first: str = "") -> int:
        """Write records to files, apart by session, behind the rows of another file; return how many they are."""
        count = 0
        with _settled(), ExitStack() as stack:
            paths = [self.folder / name for name in names]
            writers = [stack.enter_context(parquet.ParquetWriter(path, SCHEMA, **_AS_ROWS)) for path in paths]
            for batch in parquet.ParquetFile(self.folder / first).iter_batches() if first else ():
                writers[0].write_batch(batch)
            for table in tables(records, start):
                count += len(table)
                for writer, part in zip(writers, _apart(table, len(writers)), strict=True):
                    writer.write_table(part)
        return count

    def _fold(self, names: list[str], of: str = "") -> str:
        rows = self._read(names)
        if of:
            # Found once, for the fold looks at its rows three times.
            rows = self._read([self._write("changed", rows.semi_join(self._read([of]), list(expressions.KEY)))])
        return self._write("sessions", expressions.sessions(rows))

    def _write(self, kind: str, table: Any) -> str:
        name = f"{kind}-{uuid4().hex}.parquet"
        self._connection.to_parquet(table, self.folder / name)
        return name

    def _read(self, names: Any) -> Any:
        first, *others = (self._connection.read_parquet(str(self.folder / name)) for name in names)
        return first.union(*others) if others else first

    def _tidy(self, before: Manifest, now: Manifest) -> None:
        """Remove what neither this manifest nor the one before names: somebody may be reading by that one still."""
        for path in self.folder.glob("*-*.parquet"):
            if path.name not in before.files | now.files:
                # Spark makes a folder of parts of what others make one file.
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@contextmanager
def _settled() -> Generator[None]:
    """Let the garbage collector look at what is made from here on, and not at all there is for some thousand events."""
    if gc.get_freeze_count():
        # The application froze what it has, and thawing that is not ours to do.
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _apart(table: Any, parts: int) -> list[Any]:
    if parts == 1:
        return [table]
    places = arrow.array([crc32(one.encode()) % parts for one in table.column("session_id").to_pylist()])
    return [table.filter(compute.equal(places, number)) for number in range(parts)]


def _lines(starts: Mapping[File, int], ends: Mapping[File, int], damaged: Counter[str]) -> Iterator[Line]:
    for path, start in starts.items():
        if start < ends[path]:
            yield from lines_since(path, start, ends[path], MAX_LINE_BYTES, damaged)


def _known(manifest: Manifest, files: list[File]) -> dict[File, Mark] | None:
    """Return the mark of each file, by whatever name it was read before; None where something read is gone."""
    by_inode = {one.inode: one for one in manifest.marks.values()}
    marks = {path: by_inode.pop(path.stat().st_ino, None) for path in files}
    if by_inode or not all(one is None or one.holds(path) for path, one in marks.items()):
        return None
    return {path: one or Mark(path.stat().st_ino) for path, one in marks.items()}


def _all_there(manifest: Manifest, folder: Path) -> bool:
    return all((folder / name).exists() for name in manifest.files)
