"""The exact index in memory: every vector compared, every word scored. The measure of the other engines."""

from __future__ import annotations

import operator
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanforge.reference.failures import IndexFull
from spanforge.reference.index.base import Candidate, IndexRow, SearchHits, SearchRequest, Selection, filter_value
from spanforge.reference.index.conditions import check_filter
from spanforge.reference.index.words import best, bm25
from spanforge.reference.lexical import terms
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
    """Rows in a dictionary; the structures that searches read are made at the first search after a change.

    They grow by what was added, and are made anew where something was replaced or deleted.
    """

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
            if not self._rows.keys().isdisjoint(analysed):
                self._built = None
            self._rows.update((row.chunk_id, row) for row in rows)
            self._terms.update(analysed)
            self._changes += 1

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
        total = int(np.count_nonzero(built.mask(request.selection.sources)))
        by_words = built.by_words(terms(request.text), mask, total, request.limit)
        cosines, nearest = built.by_vector(request.vector, mask, request.limit)
        return SearchHits(
            tuple(
                Candidate(
                    built.rows[i],
                    tuple(built.terms[i]),
                    by_words.get(i),
                    None if cosines is None else float(cosines[i]),
                )
                for i in sorted({*by_words, *nearest})
            )
        )

    def rows(self, selection: Selection, limit: int) -> list[IndexRow]:
        """Return selected rows, in the order they came."""
        with self._lock:
            return list(islice((row for row in self._rows.values() if selects(selection, row)), limit))

    def delete(self, selection: Selection) -> int:
        """Drop the selected rows and every structure that holds their text."""
        with self._lock:
            doomed = [key for key, row in self._rows.items() if selects(selection, row)]
            for key in doomed:
                del self._rows[key], self._terms[key]
            if doomed:
                self._built = None
                self._changes += 1
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
            self._built = None
            self._changes += 1

    def _build(self) -> _Built:
        with self._lock:
            built = self._built or _Built()
            known = len(built.rows)
            if known < len(self._rows):
                rows, row_terms = islice(self._rows.values(), known, None), islice(self._terms.values(), known, None)
                built = built.with_more(list(rows), list(row_terms))
            self._built = built
            return built


class _Built:
    """What a search reads: never altered, as searches may be at work in it while rows are added."""

    def __init__(self) -> None:
        self.rows: list[IndexRow] = []
        self.terms: list[list[str]] = []
        self._codes: dict[tuple[str, str], int] = {}
        self._code_of_row = np.zeros(0, dtype=np.int64)
        self._lengths = np.zeros(0, dtype=np.int64)
        self._holders: dict[str, list[tuple[int, int]]] = {}
        self._matrix: NDArray[np.float32] | None = None

    def with_more(self, rows: list[IndexRow], row_terms: list[list[str]]) -> _Built:
        """Return the same with rows behind those that are here."""
        grown, known = _Built(), len(self.rows)
        grown.rows, grown.terms = self.rows + rows, self.terms + row_terms
        codes = grown._codes = dict(self._codes)
        added = [codes.setdefault((row.org_id, row.data_source_id), len(codes)) for row in rows]
        grown._code_of_row = np.append(self._code_of_row, np.array(added, dtype=np.int64))
        lengths = np.array([len(own) for own in row_terms], dtype=np.int64)
        grown._lengths = np.append(self._lengths, lengths)
        holders: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for i, own in enumerate(row_terms, known):
            for term, count in Counter(own).items():
                holders[term].append((i, count))
        grown._holders = self._holders | {term: self._holders.get(term, []) + held for term, held in holders.items()}
        vectors = [row.vector for row in rows if row.vector is not None]
        if len(vectors) == len(rows) and (not known or self._matrix is not None):
            grown._matrix = np.stack(vectors) if self._matrix is None else np.vstack((self._matrix, *vectors))
        return grown

    def mask(self, selection: Selection) -> NDArray[np.bool_]:
        """Tell for every row whether it is selected; whole sources at once where nothing finer is asked."""
        wanted = [
            code
            for (org_id, source_id), code in self._codes.items()
            if org_id == selection.org_id
            and (selection.data_source_ids is None or source_id in selection.data_source_ids)
        ]
        mask = np.isin(self._code_of_row, wanted)
        if (
            selection.document_ids is not None
            or selection.chunk_ids is not None
            or selection.excluding_chunk_ids
            or selection.filters
        ):
            for i in np.flatnonzero(mask):
                mask[i] = selects(selection, self.rows[i])
        return mask

    def by_words(self, query: list[str], mask: NDArray[np.bool_], total: int, limit: int) -> dict[int, float]:
        """Return the best selected rows by words, with their scores."""
        pairs = [np.array(self._holders.get(term, ()), dtype=np.int64).reshape(-1, 2) for term in dict.fromkeys(query)]
        held = [pair[mask[pair[:, 0]]] for pair in pairs]
        found = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(pair[:, 0] for pair in held)]))
        frequencies = np.zeros((len(found), len(held)), dtype=np.int64)
        for place, pair in enumerate(held):
            frequencies[np.searchsorted(found, pair[:, 0]), place] = pair[:, 1]
        scores = bm25(Counter(query), frequencies, self._lengths[found], total)
        return {int(found[i]): float(scores[i]) for i in best(scores, lambda i: self._name(found[i]), limit)}

    def by_vector(
        self, vector: NDArray[np.float32] | None, mask: NDArray[np.bool_], limit: int
    ) -> tuple[NDArray[np.float32] | None, list[int]]:
        """Return how near the selected rows are, and which are the best."""
        if vector is None or self._matrix is None:
            return None, []
        rows = np.flatnonzero(mask)
        cosines = np.zeros(len(mask), dtype=np.float32)
        # The selected rows alone: how a product of matrices rounds depends on their size.
        cosines[rows] = self._matrix[rows] @ vector
        return cosines, [int(rows[i]) for i in best(cosines[rows], lambda i: self._name(rows[i]), limit)]

    def _name(self, row: np.intp) -> str:
        return self.rows[int(row)].chunk_id


def selects(selection: Selection, row: IndexRow) -> bool:
    """Tell whether a row is inside a selection."""
    return (
        row.org_id == selection.org_id
        and (selection.data_source_ids is None or row.data_source_id in selection.data_source_ids)
        and (selection.document_ids is None or row.document_id in selection.document_ids)
        and (selection.chunk_ids is None or row.chunk_id in selection.chunk_ids)
        and row.chunk_id not in selection.excluding_chunk_ids
        and all(_passes(condition, row) for condition in selection.filters)
    )


def _passes(condition: Filter, row: IndexRow) -> bool:
    value = getattr(row, condition.field)
    # As in SQL, an absent value satisfies no comparison.
    return value is not None and _COMPARE[condition.op](value, filter_value(condition.value))
