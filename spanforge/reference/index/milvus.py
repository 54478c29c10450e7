"""The engine for more than one machine: pymilvus, against a Milvus cluster or its embedded form.

The same code runs on both; only the address differs: a server's URL, or a file for the embedded one.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import IndexFull, IndexUnavailable, Translated
from spanforge.reference.index.base import (
    ROW_FIELDS,
    IndexRow,
    SearchHits,
    SearchRequest,
    Selection,
    storable,
)
from spanforge.reference.index.conditions import MILVUS, expression
from spanforge.reference.index.words import best, bm25, candidate, counted
from spanforge.reference.lexical import K1, B, terms

_MAX_TEXT = 65_535
"""Bytes of the longest text a field holds; a passage of the largest allowed chunk size stays below."""
_INTEGERS = ("page", "start", "end", "tokens")
_FLOATS = ("timestamp", "quality")
_WRITE = 512
_COLUMNS = [*ROW_FIELDS, "terms", "vector"]
MOST_MATCHES = 16_384
"""Most rows that a server returns at once: where more of those selected hold a word of the question, the server's own
order says which of them are scored."""
CONNECT_SECONDS = 10.0
"""Longest wait of the first attempt to connect; every further one waits twice as long."""
EMBEDDED_ATTEMPTS = 3
"""Attempts to connect to the embedded form. It is served by threads of this very process: where those are slow to be
scheduled, a wait that is long enough for any server that is up ends too early."""


class MilvusIndex:
    """Rows in one Milvus collection.

    Args:
        address: ``http://host:19530`` of a server, or the path of a file that ends in ``.db``.
        dimensions: Length of the vectors; at least 1, for Milvus has no collections without vectors of
            fixed length.
        collection: Name of the collection.
        token: Credentials of a server.
        max_rows: Quota.
    """

    name = "milvus"

    def __init__(
        self,
        address: str,
        dimensions: int,
        *,
        collection: str = "spanforge_chunks",
        token: str = "",
        max_rows: int | None = None,
    ) -> None:
        self._milvus = load("pymilvus", "milvus")
        self._dimensions = dimensions
        self._embedded = "://" not in address
        self._collection = collection
        self._max_rows = max_rows
        self._changes = 0
        self._lock = threading.RLock()
        with self._store_errors():
            self._client = self._connect(address, token)
            if not self._client.has_collection(collection):
                self._create()
            self._client.load_collection(collection)

    @property
    def version(self) -> str:
        """Count of the changes made here, and of the rows, which tells of changes made elsewhere."""
        with self._store_errors():
            rows = self._client.get_collection_stats(self._collection)["row_count"]
        return f"{self._changes}:{rows}"

    def upsert(self, rows: Sequence[IndexRow]) -> None:
        """Add or replace rows."""
        with self._lock, self._store_errors():
            self._check_quota(rows)
            encoded = [self._encode(row) for row in rows]
            for i in range(0, len(encoded), _WRITE):
                self._client.upsert(self._collection, encoded[i : i + _WRITE])
            self._changes += 1

    def search(self, request: SearchRequest) -> SearchHits:
        """Search by words and by vector, each inside the selection, and join the two lists."""
        where = expression(request.selection, MILVUS)
        with self._store_errors():
            found, scores = self._by_words(request, where)
            if request.vector is not None:
                vector = [float(value) for value in request.vector]
                for hit in self._nearest(vector, "vector", where, request.limit):
                    found.setdefault(hit["chunk_id"], dict(hit["entity"]))
        return SearchHits(tuple(candidate(fields, request.vector, scores.get(name)) for name, fields in found.items()))

    def rows(self, selection: Selection, limit: int) -> list[IndexRow]:
        """Return selected rows, in no particular order."""
        where, columns = expression(selection, MILVUS), list(ROW_FIELDS)
        with self._store_errors():
            found = self._client.query(self._collection, filter=where, output_fields=columns, limit=limit)
        return [IndexRow(**{name: fields.get(name) for name in ROW_FIELDS}) for fields in found]

    def delete(self, selection: Selection) -> int:
        """Delete the selected rows and count them."""
        with self._lock, self._store_errors():
            where = expression(selection, MILVUS)
            doomed = self._count(where)
            if doomed:
                self._client.delete(self._collection, filter=where)
                self._changes += 1
            return doomed

    def count(self, selection: Selection) -> int:
        """Count the selected rows."""
        with self._store_errors():
            return self._count(expression(selection, MILVUS))

    def settle(self) -> None:
        """Write what is in memory, and let the server join its segments without the deleted rows."""
        with self._lock, self._store_errors():
            self._client.flush(self._collection)

    def close(self) -> None:
        """Close the connection."""
        with self._store_errors():
            self._client.close()

    def _connect(self, address: str, token: str) -> Untyped:
        attempts = EMBEDDED_ATTEMPTS if self._embedded else 1
        for attempt in range(attempts - 1):
            try:
                return self._milvus.MilvusClient(address, token=token, timeout=CONNECT_SECONDS * 2**attempt)
            except self._milvus.MilvusException as error:
                if error.code != self._milvus.Status.CONNECT_FAILED:
                    raise
        return self._milvus.MilvusClient(address, token=token, timeout=CONNECT_SECONDS * 2 ** (attempts - 1))

    def _create(self) -> None:
        milvus, kind = self._milvus, self._milvus.DataType
        schema = milvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("chunk_id", kind.VARCHAR, is_primary=True, max_length=64)
        for name in ROW_FIELDS:
            if name in _INTEGERS:
                schema.add_field(name, kind.INT64, nullable=True)
            elif name in _FLOATS:
                schema.add_field(name, kind.DOUBLE, nullable=True)
            elif name != "chunk_id":
                schema.add_field(name, kind.VARCHAR, max_length=_MAX_TEXT)
        schema.add_field(
            "terms",
            kind.VARCHAR,
            max_length=_MAX_TEXT,
            enable_analyzer=True,
            analyzer_params={"tokenizer": "standard"},
        )
        schema.add_field("sparse", kind.SPARSE_FLOAT_VECTOR)
        schema.add_field("vector", kind.FLOAT_VECTOR, dim=self._dimensions)
        schema.add_function(
            milvus.Function(
                name="bm25",
                function_type=milvus.FunctionType.BM25,
                input_field_names=["terms"],
                output_field_names=["sparse"],
            )
        )
        indexes = self._client.prepare_index_params()
        parameters = {"bm25_k1": K1, "bm25_b": B}
        indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=parameters)
        # Every vector is compared: what an index of vectors finds depends on all that are in it.
        indexes.add_index("vector", index_type="FLAT", metric_type="COSINE")
        self._client.create_collection(
            self._collection, schema=schema, index_params=indexes, consistency_level="Strong"
        )

    def _encode(self, row: IndexRow) -> dict[str, object]:
        fields: dict[str, object] = {name: storable(getattr(row, name)) for name in ROW_FIELDS}
        fields["terms"] = " ".join(terms(row.search_text))
        vector = np.zeros(self._dimensions, dtype=np.float32) if row.vector is None else row.vector
        fields["vector"] = [float(value) for value in vector]
        return fields

    def _by_words(self, request: SearchRequest, where: str) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
        """Return the best rows by words, and their scores, by chunk id."""
        query = terms(request.text)
        held = self._nearest(" ".join(query), "sparse", where, MOST_MATCHES) if query else []
        if not held:
            return {}, {}
        total = max(len(held), self._count(expression(request.selection.sources, MILVUS)))
        texts = load("pyarrow", "reference").array([hit["entity"]["terms"] for hit in held])
        scores = bm25(Counter(query), *counted(query, [texts]), total)
        chosen = best(scores, lambda i: held[i]["chunk_id"], request.limit)
        found = {held[i]["chunk_id"]: dict(held[i]["entity"]) for i in chosen}
        return found, {held[i]["chunk_id"]: float(scores[i]) for i in chosen}

    def _nearest(self, query: Untyped, field: str, where: str, limit: int) -> list[Any]:
        found = self._client.search(
            self._collection, data=[query], anns_field=field, limit=limit, filter=where, output_fields=_COLUMNS
        )
        return list(found[0])

    def _count(self, where: str) -> int:
        rows = self._client.query(self._collection, filter=where, output_fields=["count(*)"])
        return int(rows[0]["count(*)"])

    def _check_quota(self, rows: Sequence[IndexRow]) -> None:
        if self._max_rows is None:
            return
        names = ", ".join(MILVUS.quote(row.chunk_id) for row in rows)
        known = self._count(f"chunk_id in [{names}]")
        if self._count('chunk_id != ""') + len(rows) - known > self._max_rows:
            raise IndexFull

    def _store_errors(self) -> Translated:
        return Translated((self._milvus.MilvusException, OSError), lambda _: IndexUnavailable())
