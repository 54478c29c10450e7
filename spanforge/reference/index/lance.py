"""The embedded engine: LanceDB tables in a folder, words and vectors in one row, one file format.

Words are indexed as stems made by this package, so that this engine finds by the same words as the exact one.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import IndexFull, IndexUnavailable, RagFailure, Translated
from spanforge.reference.index.base import (
    ROW_FIELDS,
    IndexRow,
    SearchHits,
    SearchRequest,
    Selection,
    storable,
)
from spanforge.reference.index.conditions import SQL, expression
from spanforge.reference.index.words import best, bm25, candidate, counted
from spanforge.reference.lexical import terms

T = TypeVar("T")

_TABLE = "chunks"
_INTEGERS = ("page", "start", "end", "tokens")
_FLOATS = ("timestamp", "quality")
_COUNTED = ("total_rows", "total_data_files", "total_deletion_file_rows")
_MARKER = ""
"""Chunk id of the one row that belongs to nobody; see `LanceIndex.settle`."""
MAX_FILES = 20
"""Files a table may have before they are joined; a search over 32 files takes 1.6 times as long as over one."""
MAX_WORD_INDEXES = 4
"""Word indexes of older versions that may wait on the disk before they are dropped."""
RENEWED_AFTER = 50
"""Searches after which a table that has changed is opened anew."""
_READ_ATTEMPTS = 5
"""How often something is read whose files are dropped meanwhile."""
_AT_ONCE = timedelta(milliseconds=1)
"""Age at which old versions are dropped: the least that the store takes without warning of readers of old versions.

Readers here read the newest, and again where it is dropped meanwhile. To silence the warning instead would change what
the whole process warns of, and two threads that did so at once would change it for good.
"""


class LanceIndex:
    """Rows in one LanceDB table.

    Args:
        folder: Where the table lives: a folder, or an address of object storage that LanceDB knows.
        dimensions: Length of the vectors; 0 for an index that searches by words alone.
        max_rows: Quota.
    """

    name = "lancedb"

    def __init__(self, folder: str | Path, dimensions: int, *, max_rows: int | None = None) -> None:
        self._dimensions = dimensions
        self._max_rows = max_rows
        self._folder = str(folder)
        self._lance = load("lancedb", "reference")
        self._loop = load("lancedb.background_loop", "reference").LOOP
        self._arrow = load("pyarrow", "reference")
        self._lock = threading.RLock()
        self._stale = False
        self._has_words = False
        self._version = 0
        self._reads = 0
        with _store_errors():
            self._table = self._opened()
            mismatch = self._read(lambda table: table.schema()) != self._schema()
        if mismatch:
            raise IndexUnavailable(
                "The index was written with another embedding model or by another version; use that, or ingest anew."
            )

    @property
    def version(self) -> str:
        """Version of the table."""
        with _store_errors():
            return str(self._read(lambda table: table.version()))

    def upsert(self, rows: Sequence[IndexRow]) -> None:
        """Add or replace rows in one commit."""
        with self._lock, _store_errors():
            self._check_quota(rows)
            if self._known(rows):
                self._merge(self._encode(rows))
                self._stale = True
            else:  # the store reads the ids of all its rows to merge, and no more than the new ones to add
                self._wait(self._table.add(self._encode(rows)))
            if not self._words_are_indexed():
                self._index_words()
            _give_back()

    def search(self, request: SearchRequest) -> SearchHits:
        """Search by words and by vector, each inside the selection, and join the two lists."""
        where = expression(request.selection, SQL)
        with _store_errors():
            self._renew()
            found, scores = self._find(request, where)
        return SearchHits(tuple(candidate(fields, request.vector, scores.get(name)) for name, fields in found.items()))

    def rows(self, selection: Selection, limit: int) -> list[IndexRow]:
        """Return selected rows, in no particular order."""
        with _store_errors():
            self._renew()
            where, columns = expression(selection, SQL), list(ROW_FIELDS)
            found = self._read(lambda table: table.query().where(where).select(columns).limit(limit).to_arrow())
        return [IndexRow(**fields) for fields in found.to_pylist()]

    def delete(self, selection: Selection) -> int:
        """Delete the selected rows. Their text leaves the files at the next `settle`."""
        where = expression(selection, SQL)
        with self._lock, _store_errors():
            if not self._count(where):  # deleting nothing would be a version of its own
                return 0
            self._stale = True
            return int(self._wait(self._table.delete(where)).num_deleted_rows)

    def count(self, selection: Selection) -> int:
        """Count the selected rows."""
        with _store_errors():
            return self._count(expression(selection, SQL))

    def settle(self) -> None:
        """Bring the word index up to date; drop deleted text and old versions where there are any worth it.

        Joining files takes the store buffers of up to 8 MiB a column and rewrites every row, so that a run of mere
        additions leaves it out while the files are few.
        """
        with self._lock, _store_errors():
            self._settle()
            self._table = self._opened()

    def close(self) -> None:
        """Nothing is held open."""

    def _opened(self) -> Untyped:
        """Return the table with nothing read of it: the store keeps what it read of every version, files included."""

        async def opened() -> tuple[Untyped, int]:
            db = await self._lance.connect_async(self._folder)
            table = await db.create_table(_TABLE, schema=self._schema(), exist_ok=True)
            return table, int(await table.version())

        table, self._version = _lasting(lambda: self._wait(opened()))
        self._reads = 0
        return table

    def _wait(self, task: Coroutine[Any, Any, T]) -> T:
        """Have something done on the store's own thread."""
        return self._loop.run(task)

    def _read(self, ask: Callable[[Untyped], Coroutine[Any, Any, T]]) -> T:
        """Ask the table as it is now, with what other processes wrote."""

        async def asked() -> T:
            table = self._table
            # Once for all that is asked: each look costs as much as a small read.
            await table.checkout_latest()
            return await ask(table)

        return _lasting(lambda: self._wait(asked()))

    def _count(self, where: str | None = None) -> int:
        return int(self._read(lambda table: table.count_rows(where)))

    def _renew(self) -> None:
        """Open the table anew now and then, where others change it; those who settle do so each time."""
        self._reads += 1
        if self._reads > RENEWED_AFTER:
            self._reads = 0
            if int(self._read(lambda table: table.version())) != self._version:
                self._table = self._opened()

    def _settle(self) -> None:
        if self._holds_deleted():
            # The store rewrites a file only when it joins it with another: the marker makes one beside every file.
            self._merge(self._encode([_marker(self._dimensions)]))
            self._stale = True
        if not self._count():
            return
        # Made anew: the store's own merge of new words into the old index takes as long, and memory that
        # grows with all words of the table.
        self._index_words()
        if any("vector" in index.columns for index in self._read(lambda table: table.list_indices())):
            # Of an earlier version, and not asked any more.
            self._wait(self._table.drop_index("vector_idx"))
        _give_back()
        if self._stale or self._scattered():
            self._join_files()
            _give_back()
        self._stale = False

    def _join_files(self) -> None:
        for _ in range(2):  # the first joins files, the second drops the versions that held them apart
            time.sleep(_AT_ONCE.total_seconds())
            self._wait(self._table.optimize(cleanup_older_than=_AT_ONCE))

    def _holds_deleted(self) -> bool:
        """Tell whether files hold deleted rows, be it that another process deleted them and died before it settled."""
        versions = self._versions()
        deleted = any(facts["total_deletion_file_rows"] > 0 for facts in versions)
        return self._stale or deleted or any(new["total_rows"] < old["total_rows"] for old, new in pairwise(versions))

    def _scattered(self) -> bool:
        versions = self._versions()
        # A version that changes no row is that of an index.
        indexes = sum(old == new for old, new in pairwise(versions))
        return versions[-1]["total_data_files"] > MAX_FILES or indexes > MAX_WORD_INDEXES

    def _versions(self) -> list[dict[str, int]]:
        """Return what the store counts of each version that it still has, oldest first."""
        listed = sorted(self._read(lambda table: table.list_versions()), key=lambda version: version["version"])
        return [{name: int(version["metadata"][name]) for name in _COUNTED} for version in listed]

    def _schema(self) -> Untyped:
        pa = self._arrow
        kinds = {**dict.fromkeys(_INTEGERS, pa.int64()), **dict.fromkeys(_FLOATS, pa.float64())}
        fields = [pa.field(name, kinds.get(name, pa.string())) for name in (*ROW_FIELDS, "terms")]
        if self._dimensions:
            fields.append(pa.field("vector", pa.list_(pa.float32(), self._dimensions)))
        return pa.schema(fields)

    def _encode(self, rows: Sequence[IndexRow]) -> Untyped:
        pa = self._arrow
        columns: dict[str, Any] = {name: [storable(getattr(row, name)) for row in rows] for name in ROW_FIELDS}
        columns["terms"] = [" ".join(terms(row.search_text)) for row in rows]
        if self._dimensions:
            zero = np.zeros(self._dimensions, dtype=np.float32)
            matrix = np.stack([zero if row.vector is None else row.vector for row in rows])
            flat = pa.array(np.ascontiguousarray(matrix, dtype=np.float32).ravel())
            columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, self._dimensions)
        return pa.table(columns, schema=self._schema())

    def _merge(self, table: Untyped) -> None:
        merge = self._table.merge_insert("chunk_id").when_matched_update_all().when_not_matched_insert_all()
        self._wait(merge.execute(table))

    def _index_words(self) -> None:
        config = self._lance.index.FTS(
            base_tokenizer="whitespace",
            stem=False,
            remove_stop_words=False,
            lower_case=False,
            ascii_folding=False,
            with_position=False,
        )
        self._wait(self._table.create_index("terms", config=config, replace=True))

    def _words_are_indexed(self) -> bool:
        # Once they are, they stay so.
        self._has_words = self._has_words or bool(self._read(lambda table: table.list_indices()))
        return self._has_words

    def _check_quota(self, rows: Sequence[IndexRow]) -> None:
        if self._max_rows is None:
            return
        if self._count("chunk_id != ''") + len(rows) - self._known(rows) > self._max_rows:
            raise IndexFull

    def _known(self, rows: Sequence[IndexRow]) -> int:
        names = ", ".join(SQL.quote(row.chunk_id) for row in rows)
        return self._count(f"chunk_id IN ({names})")

    def _find(self, request: SearchRequest, where: str) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
        """Return the rows found by chunk id, and the scores of those found by words."""
        query = terms(request.text) if self._words_are_indexed() else []

        async def both(table: Untyped) -> tuple[int, Untyped | None, Untyped | None]:
            """Search both ways side by side, as each leaves a core idle for long."""
            total = int(await table.count_rows(expression(request.selection.sources, SQL)))
            return total, *await asyncio.gather(
                self._holding(table, query, where, total), self._nearest(table, request, where)
            )

        total, held, nearest = self._read(both)
        scores = {} if held is None else _best(query, held, total, request.limit)
        known = set[str]() if nearest is None else set(nearest["chunk_id"].to_pylist())
        others = self._rows([name for name in scores if name not in known])
        return self._join([table for table in (others, nearest) if table is not None]), scores

    async def _holding(self, table: Untyped, query: list[str], where: str, total: int) -> Untyped | None:
        """Return the terms of all rows that hold one of a question's."""
        if not query:
            return None
        matching = table.query().nearest_to_text(self._lance.query.MatchQuery(" ".join(query), "terms"))
        columns = ["chunk_id", "terms", "_score"]
        return await matching.where(where).select(columns).limit(max(1, total)).to_arrow()

    async def _nearest(self, table: Untyped, request: SearchRequest, where: str) -> Untyped | None:
        """Return the rows nearest to a question's vector."""
        if request.vector is None or not self._dimensions:
            return None
        # Every vector is compared: what an index of vectors finds depends on all that are in it.
        nearest = table.query().nearest_to(request.vector).column("vector").bypass_vector_index()
        found = nearest.distance_type("cosine").where(where).select([*self._columns, "_distance"])
        return await found.limit(request.limit).to_arrow()

    def _rows(self, names: Sequence[str]) -> Untyped | None:
        if not names:
            return None
        where = f"chunk_id IN ({', '.join(SQL.quote(name) for name in names)})"
        return self._read(lambda table: table.query().where(where).select(self._columns).limit(len(names)).to_arrow())

    @property
    def _columns(self) -> list[str]:
        return [*ROW_FIELDS, "terms", *(["vector"] if self._dimensions else [])]

    def _join(self, tables: Sequence[Untyped]) -> dict[str, dict[str, Any]]:
        """Return the rows of all tables by chunk id, each once."""
        found: dict[str, dict[str, Any]] = {}
        for table in tables:
            rows = table.drop_columns(["vector"]) if self._dimensions else table
            vectors = self._vectors(table) if self._dimensions else None
            for i, fields in enumerate(rows.to_pylist()):
                known = found.setdefault(fields["chunk_id"], fields)
                if vectors is not None:
                    known["vector"] = vectors[i]
        return found

    def _vectors(self, table: Untyped) -> NDArray[np.float32]:
        flat = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, dtype=np.float32).reshape(-1, self._dimensions)


def _best(query: list[str], held: Untyped, total: int, limit: int) -> dict[str, float]:
    """Return the chunk ids of the best rows by words, with their scores."""
    scores = bm25(Counter(query), *counted(query, held["terms"].chunks), total) if len(held) else np.zeros(0)
    names = held["chunk_id"].to_pylist()
    return {names[i]: float(scores[i]) for i in best(scores, names.__getitem__, limit)}


def _marker(dimensions: int) -> IndexRow:
    vector = np.zeros(dimensions, dtype=np.float32) if dimensions else None
    return IndexRow(chunk_id=_MARKER, org_id="", data_source_id="", document_id="", text="", vector=vector)


def _lasting(read: Callable[[], T]) -> T:
    """Read, and again where another thread or process settled and dropped the files that were being read."""
    for _ in range(_READ_ATTEMPTS - 1):
        try:
            return read()
        except RuntimeError as error:
            if "not found" not in str(error).lower():
                raise
    return read()


def _store_errors() -> Translated:
    return Translated((RuntimeError, ValueError, OSError), _store_failure)


def _store_failure(error: Exception) -> RagFailure:
    message = str(error).lower()
    return IndexFull() if "no space left" in message or "file too large" in message else IndexUnavailable()


def _give_back() -> None:
    """Return to the system what the allocators hold of memory that is free.

    A store writes from many threads, and the C library keeps a heap for each of them: what one has freed another cannot
    use, so that a run of equal writes takes more and more. Where the C library is not glibc only Arrow's share goes
    back.
    """
    load("pyarrow", "reference").default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
