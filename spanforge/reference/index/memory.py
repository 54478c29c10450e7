"""The exact index in memory: every vector compared, every word scored. The measure of the other engines."""

from __future__ import annotations

import operator
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from spanforge.reference._extras import load
from spanforge.reference.failures import IndexFull
from spanforge.reference.index.base import Candidate, SearchHits, filter_value
from spanforge.reference.index.conditions import check_filter
from spanforge.reference.lexical import K1, B, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spanforge.reference.index.base import IndexRow, SearchRequest, Selection
    from spanforge.reference.models import Filter

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "in": lambda left, right: left in right,
}


class MemoryIndex:
    """Rows in a dictionary; the structures that searches read are rebuilt at the first search after a change."""

    name = "memory"

    def __init__(self, *, max_rows: int | None = None) -> None:
        self._rows: dict[str, IndexRow] = {}
        self._terms: dict[str, list[str]] = {}
        self._max_rows = max_rows
        self._changes = 0
        self._built: _Built | None = None
        self._lock = threading.RLock()

    @property
    def version(self) -> str:
        """Count of changes."""
        return str(self._changes)

    def upsert(self, rows: Sequence[IndexRow]) -> None:
        """Add or replace rows; all of them or none."""
        analysed = {row.chunk_id: terms(row.search_text) for row in rows}
        with self._lock:
            if self._max_rows is not None and len(self._rows.keys() | analysed.keys()) > self._max_rows:
                raise IndexFull
            self._rows.update((row.chunk_id, row) for row in rows)
            self._terms.update(analysed)
            self._touch()

    def search(self, request: SearchRequest) -> SearchHits:
        """Score every selected row and return the best of each kind."""
        for condition in request.selection.filters:
            check_filter(condition)
        built = self._build()
        if not built.rows:
            return SearchHits(())
        mask = built.mask(request.selection)
        if not mask.any():
            return SearchHits(())
        chosen: set[int] = set()
        bm25 = built.bm25(terms(request.text), mask)
        if bm25 is not None:
            chosen.update(int(i) for i in _best(bm25, mask & (bm25 > 0), request.limit))
        cosine = built.cosine(request.vector)
        if cosine is not None:
            chosen.update(int(i) for i in _best(cosine, mask, request.limit))
        return SearchHits(
            tuple(
                Candidate(
                    built.rows[i],
                    tuple(built.terms[i]),
                    float(bm25[i]) if bm25 is not None and bm25[i] > 0 else None,
                    float(cosine[i]) if cosine is not None else None,
                )
                for i in sorted(chosen)
            )
        )

    def delete(self, selection: Selection) -> int:
        """Drop the selected rows and every structure that holds their text."""
        with self._lock:
            doomed = [key for key, row in self._rows.items() if selects(selection, row)]
            for key in doomed:
                del self._rows[key], self._terms[key]
            if doomed:
                self._touch()
            return len(doomed)

    def count(self, selection: Selection) -> int:
        """Count the selected rows."""
        with self._lock:
            return sum(selects(selection, row) for row in self._rows.values())

    def settle(self) -> None:
        """Nothing waits: every change is whole at once."""

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._rows.clear()
            self._terms.clear()
            self._touch()

    def _touch(self) -> None:
        self._changes += 1
        self._built = None

    def _build(self) -> _Built:
        with self._lock:
            if self._built is None:
                self._built = _Built(list(self._rows.values()), list(self._terms.values()))
            return self._built


class _Built:
    """What a search reads: made once a change, never altered afterwards."""

    def __init__(self, rows: list[IndexRow], row_terms: list[list[str]]) -> None:
        self.rows = rows
        self.terms = row_terms
        self._codes: dict[tuple[str, str], int] = {}
        codes = [self._codes.setdefault((row.org_id, row.data_source_id), len(self._codes)) for row in rows]
        self._code_of_row = np.array(codes, dtype=np.int64)
        self._bm25: Any = None
        self._matrix: NDArray[np.float32] | None = None
        if any(row_terms):
            self._bm25 = load("bm25s", "reference").BM25(k1=K1, b=B)
            self._bm25.index(row_terms, show_progress=False)
        vectors = [row.vector for row in rows if row.vector is not None]
        if vectors and len(vectors) == len(rows):
            self._matrix = np.stack(vectors)

    def mask(self, selection: Selection) -> NDArray[np.bool_]:
        """Tell for every row whether it is selected; whole sources at once where nothing finer is asked."""
        wanted = [
            code
            for (org_id, source_id), code in self._codes.items()
            if org_id == selection.org_id
            and (selection.data_source_ids is None or source_id in selection.data_source_ids)
        ]
        mask = np.isin(self._code_of_row, wanted)
        if selection.document_ids is not None or selection.excluding_chunk_ids or selection.filters:
            for i in np.flatnonzero(mask):
                mask[i] = selects(selection, self.rows[i])
        return mask

    def bm25(self, query: list[str], mask: NDArray[np.bool_]) -> NDArray[np.float32] | None:
        if self._bm25 is None:
            return None
        known = [term for term in query if term in self._bm25.vocab_dict]
        if not known:
            return None
        return self._bm25.get_scores(known, weight_mask=mask.astype(np.float32))

    def cosine(self, vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        return None if vector is None or self._matrix is None else self._matrix @ vector


def _best(scores: NDArray[np.float32], allowed: NDArray[np.bool_], limit: int) -> NDArray[np.intp]:
    indices = np.flatnonzero(allowed)
    if len(indices) > limit:
        indices = indices[np.argpartition(-scores[indices], limit - 1)[:limit]]
    return indices


def selects(selection: Selection, row: IndexRow) -> bool:
    """Tell whether a row is inside a selection."""
    return (
        row.org_id == selection.org_id
        and (selection.data_source_ids is None or row.data_source_id in selection.data_source_ids)
        and (selection.document_ids is None or row.document_id in selection.document_ids)
        and row.chunk_id not in selection.excluding_chunk_ids
        and all(_passes(condition, row) for condition in selection.filters)
    )


def _passes(condition: Filter, row: IndexRow) -> bool:
    value = getattr(row, condition.field)
    # As in SQL, an absent value satisfies no comparison.
    return value is not None and _COMPARE[condition.op](value, filter_value(condition.value))
