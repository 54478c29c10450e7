"""The embedded engine: LanceDB tables in a folder, words and vectors in one row, one file format.

Words are indexed as stems made by this package, so that this engine finds by the same words as the exact one.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import IndexFull, IndexUnavailable, RagFailure, Translated
from spanforge.reference.index.base import ROW_FIELDS, Candidate, IndexRow, SearchHits, storable
from spanforge.reference.index.conditions import SQL, expression
from spanforge.reference.index.heap import give_back
from spanforge.reference.lexical import terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from spanforge.reference.index.base import SearchRequest, Selection

T = TypeVar("T")

_TABLE = "chunks"
_INTEGERS = ("page", "start", "end", "tokens")
_FLOATS = ("timestamp", "quality")
_COUNTED = ("total_rows", "total_data_files", "total_deletion_file_rows")
_MARKER = ""
"""Chunk id of the one row that belongs to nobody; see `LanceIndex.settle`."""
ANN_ROWS = 50_000
"""Rows from which vectors get an approximate index; below, every vector is compared."""
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
        self._arrow = load("pyarrow", "reference")
        self._lock = threading.RLock()
        self._stale = False
        self._version = 0
        self._reads = 0
        with _store_errors():
            self._table = self._opened()
            mismatch = _lasting(lambda: self._table.schema) != self._schema()
        if mismatch:
            raise IndexUnavailable(
                "The index was written with another embedding model or by another version; use that, or ingest anew."
            )

    @property
    def version(self) -> str:
        """Version of the table."""
        with _store_errors():
            return _lasting(lambda: str(self._table.version))

    def upsert(self, rows: Sequence[IndexRow]) -> None:
        """Add or replace rows in one commit."""
        with self._lock, _store_errors():
            self._check_quota(rows)
            if self._known(rows):
                self._merge(self._encode(rows))
                self._stale = True
            else:  # the store reads the ids of all its rows to merge, and no more than the new ones to add
                self._table.add(self._encode(rows))
            if not self._table.list_indices():
                self._index_words()
            give_back()

    def search(self, request: SearchRequest) -> SearchHits:
        """Search by words and by vector, each inside the selection, and join the two lists."""
        where = expression(request.selection, SQL)
        with _store_errors():
            self._renew()
            found = self._join(_lasting(lambda: self._run(self._searches(request), where, request.limit)))
        return SearchHits(tuple(_candidate(fields, request.vector) for fields in found.values()))

    def delete(self, selection: Selection) -> int:
        """Delete the selected rows. Their text leaves the files at the next `settle`."""
        where = expression(selection, SQL)
        with self._lock, _store_errors():
            if not self._table.count_rows(where):  # deleting nothing would be a version of its own
                return 0
            self._stale = True
            return int(self._table.delete(where).num_deleted_rows)

    def count(self, selection: Selection) -> int:
        """Count the selected rows."""
        with _store_errors():
            return _lasting(lambda: int(self._table.count_rows(expression(selection, SQL))))

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
        # Zero: a reader sees what another process wrote, at its next query.
        db = self._lance.connect(self._folder, read_consistency_interval=timedelta(0))
        table = _lasting(lambda: db.create_table(_TABLE, schema=self._schema(), exist_ok=True))
        self._version = _lasting(lambda: int(table.version))
        self._reads = 0
        return table

    def _renew(self) -> None:
        """Open the table anew now and then, where others change it; those who settle do so each time."""
        self._reads += 1
        if self._reads > RENEWED_AFTER:
            self._reads = 0
            if _lasting(lambda: int(self._table.version)) != self._version:
                self._table = self._opened()

    def _settle(self) -> None:
        if self._holds_deleted():
            # The store rewrites a file only when it joins it with another: the marker makes one beside every file.
            self._merge(self._encode([_marker(self._dimensions)]))
            self._stale = True
        rows = int(self._table.count_rows())
        if not rows:
            return
        # Made anew: the store's own merge of new words into the old index takes as long, and memory that
        # grows with all words of the table.
        self._index_words()
        if rows >= ANN_ROWS and self._dimensions and not self._has_index("vector"):
            self._table.create_index("vector", config=self._lance.index.HnswSq(distance_type="cosine"))
        give_back()
        if self._stale or self._scattered():
            self._join_files()
            give_back()
        self._stale = False

    def _join_files(self) -> None:
        for _ in range(2):  # the first joins files, the second drops the versions that held them apart
            time.sleep(_AT_ONCE.total_seconds())
            self._table.optimize(cleanup_older_than=_AT_ONCE)

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
        listed = sorted(self._table.list_versions(), key=lambda version: version["version"])
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
        self._table.merge_insert("chunk_id").when_matched_update_all().when_not_matched_insert_all().execute(table)

    def _index_words(self) -> None:
        config = self._lance.index.FTS(
            base_tokenizer="whitespace",
            stem=False,
            remove_stop_words=False,
            lower_case=False,
            ascii_folding=False,
            with_position=False,
        )
        self._table.create_index("terms", config=config, replace=True)

    def _has_index(self, column: str) -> bool:
        return any(column in index.columns for index in self._table.list_indices())

    def _check_quota(self, rows: Sequence[IndexRow]) -> None:
        if self._max_rows is None:
            return
        if self._table.count_rows("chunk_id != ''") + len(rows) - self._known(rows) > self._max_rows:
            raise IndexFull

    def _known(self, rows: Sequence[IndexRow]) -> int:
        names = ", ".join(SQL.quote(row.chunk_id) for row in rows)
        return int(self._table.count_rows(f"chunk_id IN ({names})"))

    def _searches(self, request: SearchRequest) -> list[Untyped]:
        searches: list[Untyped] = []
        query = " ".join(terms(request.text))
        if query and self._table.list_indices():
            searches.append(self._table.search(self._lance.query.MatchQuery(query, "terms")))
        if request.vector is not None and self._dimensions:
            nearest = self._table.search(request.vector, vector_column_name="vector")
            searches.append(nearest.distance_type("cosine"))
        return searches

    def _run(self, searches: Sequence[Untyped], where: str, limit: int) -> list[Untyped]:
        """Return each search's rows as a table; two searches run side by side, as each leaves a core idle for long."""
        columns = [*ROW_FIELDS, "terms", *(["vector"] if self._dimensions else [])]

        def run(search: Untyped) -> Untyped:
            score = "_score" if search.__class__.__name__.endswith("FtsQueryBuilder") else "_distance"
            return search.where(where, prefilter=True).select([*columns, score]).limit(limit).to_arrow()

        if len(searches) < 2:  # noqa: PLR2004 - one alone needs no thread
            return [run(search) for search in searches]
        # Threads of one call: a pool that outlived it would be without its threads after a fork.
        with ThreadPoolExecutor(len(searches) - 1) as pool:
            others = [pool.submit(run, search) for search in searches[1:]]
            return [run(searches[0]), *(other.result() for other in others)]

    def _join(self, tables: Sequence[Untyped]) -> dict[str, dict[str, Any]]:
        """Return the rows of all tables by chunk id, each once, with the scores of every table that has it."""
        found: dict[str, dict[str, Any]] = {}
        for table in tables:
            rows = table.drop_columns(["vector"]) if self._dimensions else table
            vectors = self._vectors(table) if self._dimensions else None
            for i, fields in enumerate(rows.to_pylist()):
                known = found.setdefault(fields["chunk_id"], fields)
                known.update((key, fields[key]) for key in ("_score", "_distance") if key in fields)
                if vectors is not None:
                    known["vector"] = vectors[i]
        return found

    def _vectors(self, table: Untyped) -> NDArray[np.float32]:
        flat = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, dtype=np.float32).reshape(-1, self._dimensions)


def _candidate(fields: dict[str, Any], vector: Untyped) -> Candidate:
    bm25 = fields.pop("_score", None)
    fields.pop("_distance", None)
    own = fields.get("vector")
    words = tuple(fields.pop("terms").split())
    cosine = None if vector is None or own is None else float(np.dot(own, vector))
    return Candidate(IndexRow(**fields), words, bm25, cosine)


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
