"""Ingestion: documents become passages in the index, a batch at a time (sub-contract 1).

The stage itself, without jobs: it takes what is waiting and reports as it goes. One bad document is
reported and the rest go on; only a full disk or a broken store ends the run, because nothing after it could
succeed either.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from spanforge.reference.catalog import DocumentRecord
from spanforge.reference.failures import EmbeddingFailed, IndexFull, IndexUnavailable, RagFailure
from spanforge.reference.index.base import IndexRow, Selection, epoch, under_heading
from spanforge.reference.models import DocumentFailure
from spanforge.reference.parsing import DEFAULT_LIMITS, Limits, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from spanforge.reference.catalog import Catalog
    from spanforge.reference.chunking import Chunk, Chunker
    from spanforge.reference.embedding import Embedder
    from spanforge.reference.index import Index
    from spanforge.reference.loading import Waiting
    from spanforge.reference.models import Document
    from spanforge.reference.parsing import ParsedDocument

PARSER_VERSION = "2"
"""Part of every fingerprint: a change in what parsers return makes documents be read anew."""
BATCH_CHUNKS = 2048
"""Passages held in memory between two writes, give or take one document."""
BATCH_DOCUMENTS = 512
MAX_VECTOR_IDS = 10_000
"""Ids a report lists at most, so that a job's memory does not grow with the corpus."""


class Stopped(Exception):  # noqa: N818 - no error: it ends a run from within
    """The run may not write any more."""


class Turn:
    """A run's turn to write: the lock of all writers, given only while the run may go on.

    Asking inside the lock is what makes a cancellation, or the deletion of a data source, final: whoever holds the lock
    to do either knows that nothing is written behind it, and a name that is taken anew gets nothing of the old one.
    """

    def __init__(self, lock: AbstractContextManager[Any], may_go_on: Callable[[], bool]) -> None:
        self._lock = lock
        self._may_go_on = may_go_on

    def __enter__(self) -> Self:
        self._lock.__enter__()
        given = False
        try:
            given = self._may_go_on()
        finally:
            if not given:
                self._lock.__exit__(None, None, None)
        if not given:
            raise Stopped
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.__exit__(kind, error, traceback)


@dataclass(slots=True)
class Progress:
    """What became of the documents so far.

    Attributes:
        stopped: Whether the run was refused its turn to write, so that it ended before its end.
    """

    indexed: int = 0
    unchanged: int = 0
    chunks: int = 0
    vector_ids: list[str] = field(default_factory=list[str], repr=False)
    failures: list[DocumentFailure] = field(default_factory=list[DocumentFailure])
    stopped: bool = False


@dataclass(slots=True)
class _Batch:
    rows: list[IndexRow] = field(default_factory=list[IndexRow])
    records: list[DocumentRecord] = field(default_factory=list[DocumentRecord])


class Ingestor:
    """Reads, cuts, embeds and stores documents of one data source.

    Args:
        index: Where passages go.
        catalog: Where it is recorded which documents stand in the index as a whole.
        chunker: Cuts.
        embedder: Makes vectors; None for an index that searches by words alone.
        org_id: Whose documents they are.
        data_source_id: Where they belong.
        lock: Held while the run writes; a `Turn` may refuse, which ends the run.
        limits: What a document may unfold to.
    """

    def __init__(
        self,
        index: Index,
        catalog: Catalog,
        chunker: Chunker,
        embedder: Embedder | None,
        *,
        org_id: str,
        data_source_id: str,
        lock: AbstractContextManager[Any],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._lock = lock
        self._limits = limits
        self._index = index
        self._catalog = catalog
        self._chunker = chunker
        self._embedder = embedder
        self._org_id = org_id
        self._source_id = data_source_id

    def run(
        self,
        items: Iterable[Waiting],
        *,
        report: Callable[[Progress], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Progress:
        """Ingest what is waiting.

        Args:
            items: Documents in order.
            report: Called after each document.
            stop: Asked before each document; true ends the run. Documents done so far stay as a whole, and
                nothing of the one at hand is left.

        Returns:
            What was done.

        Raises:
            IndexFull: The quota or the disk is used up.
            IndexUnavailable: The store cannot be written.
        """
        progress = Progress()
        try:
            self._run(items, progress, report, stop)
        except Stopped:
            progress.stopped = True
        return progress

    def _run(
        self,
        items: Iterable[Waiting],
        progress: Progress,
        report: Callable[[Progress], None],
        stop: Callable[[], bool],
    ) -> None:
        batch = _Batch()
        for item in items:
            if stop():
                break
            try:
                self._take(item, batch, progress)
                if len(batch.rows) >= BATCH_CHUNKS or len(batch.records) >= BATCH_DOCUMENTS:
                    self._write(batch, progress)
            except (IndexFull, IndexUnavailable):
                raise
            except RagFailure as failure:
                message = str(failure.args[0]) if failure.args else failure.remedy
                progress.failures.append(
                    DocumentFailure(document_id=item.document_id, code=failure.code, message=message)
                )
            report(progress)
        self._write(batch, progress)
        if progress.indexed > progress.unchanged:
            with self._lock:
                self._index.settle()
        report(progress)

    def _take(self, item: Waiting, batch: _Batch, progress: Progress) -> None:
        document = item.load()
        fingerprint = self._fingerprint(document, item.source)
        known = self._catalog.document(self._org_id, self._source_id, item.document_id)
        if known is not None and known.fingerprint == fingerprint:
            progress.unchanged += 1
            progress.indexed += 1
            progress.chunks += known.chunks
            return
        parsed = parse(document, self._limits)
        scope = f"{self._org_id}\0{self._source_id}\0{item.document_id}"
        chunks = self._chunker.cut(parsed, scope=scope)
        batch.rows.extend(self._rows(document, parsed, item.source, chunks))
        batch.records.append(DocumentRecord(item.document_id, fingerprint, len(chunks)))

    def _rows(self, document: Document, parsed: ParsedDocument, source: str, chunks: list[Chunk]) -> list[IndexRow]:
        texts = [under_heading(chunk.heading, chunk.text) for chunk in chunks]
        vectors = None if self._embedder is None else self._embedder.embed(texts)
        if vectors is not None and len(vectors) != len(texts):
            raise EmbeddingFailed("The embedding model returned another number of vectors than it was given texts.")
        metadata = json.dumps(document.metadata, default=str, ensure_ascii=False)
        return [
            IndexRow(
                chunk_id=chunk.chunk_id,
                org_id=self._org_id,
                data_source_id=self._source_id,
                document_id=document.document_id,
                text=chunk.text,
                content_hash=chunk.content_hash,
                source=source,
                media_type=parsed.media_type,
                heading=chunk.heading,
                page=chunk.page,
                start=chunk.start,
                end=chunk.end,
                tokens=chunk.tokens,
                timestamp=None if document.timestamp is None else epoch(document.timestamp),
                quality=document.quality,
                metadata=metadata,
                vector=None if vectors is None else vectors[i],
            )
            for i, chunk in enumerate(chunks)
        ]

    def _write(self, batch: _Batch, progress: Progress) -> None:
        if batch.records:
            # Two writers of one document would each delete what the other wrote: the whole sequence is one
            # turn.
            with self._lock:
                self._store(batch, progress)

    def _store(self, batch: _Batch, progress: Progress) -> None:
        if self._catalog.source(self._org_id, self._source_id) is None:
            # Deleted meanwhile: what is written now would belong to whoever takes the name next.
            raise Stopped
        names = tuple(record.document_id for record in batch.records)
        # Forgotten first, recorded last: a process killed in between leaves documents that count as not done.
        self._catalog.drop_documents(self._org_id, self._source_id, names)
        if batch.rows:
            self._index.upsert(batch.rows)
        kept = tuple(row.chunk_id for row in batch.rows)
        self._index.delete(Selection(self._org_id, (self._source_id,), document_ids=names, excluding_chunk_ids=kept))
        self._catalog.put_documents(self._org_id, self._source_id, batch.records)
        progress.indexed += len(batch.records)
        progress.chunks += len(batch.rows)
        progress.vector_ids.extend(kept[: MAX_VECTOR_IDS - len(progress.vector_ids)])
        batch.rows.clear()
        batch.records.clear()

    def _fingerprint(self, document: Document, source: str) -> str:
        digest = hashlib.sha256()
        embedder = self._embedder.name if self._embedder is not None else ""
        facts = [PARSER_VERSION, self._chunker.signature, embedder, source, document.media_type]
        facts += [
            repr(document.timestamp),
            repr(document.quality),
            json.dumps(document.metadata, default=str),
        ]
        digest.update("\0".join(facts).encode("utf-8", "replace"))
        digest.update(b"\0" + (document.content or b""))
        digest.update(b"\0" + (document.text or "").encode("utf-8", "replace"))
        return digest.hexdigest()
