"""Ingestion: documents become passages in the index, a batch at a time (sub-contract 1).

The stage itself, without jobs: it takes what is waiting and reports as it goes. One bad document is
reported and the rest go on; only a full disk or a broken store ends the run, because nothing after it could
succeed either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spanforge.reference.embedding import Embedder
from spanforge.reference.failures import EmbeddingFailed, IndexFull, IndexUnavailable, RagFailure, undoing
from spanforge.reference.index import Index
from spanforge.reference.index.base import IndexRow, Selection, epoch
from spanforge.reference.ingesting.catalog import Catalog, DocumentRecord
from spanforge.reference.ingesting.chunking import Chunk, Chunker
from spanforge.reference.ingesting.loading import Waiting, is_gone
from spanforge.reference.ingesting.preparing import Vectors, embedded_texts, prepare
from spanforge.reference.models import PARTLY_READ, Document, DocumentFailure
from spanforge.reference.parsing import ParsedDocument
from spanforge.reference.workers import DEFAULT_LIMITS, CalledOff, Limits

PARSER_VERSION = "4"
"""Part of every fingerprint: a change in what parsers return makes documents be read anew."""
BATCH_CHUNKS = 2048
"""Passages held in memory between two writes, give or take one document."""
BATCH_DOCUMENTS = 512
_STAYS = "What was read of it before stays in the index."
_EMBEDDED_AT_ONCE = 256
"""Passages embedded between two looks at whether the run is to stop."""
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
        with undoing(lambda: self._lock.__exit__(None, None, None)):
            if not self._may_go_on():
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
    removed: int = 0
    chunks: int = 0
    vector_ids: list[str] = field(default_factory=list[str], repr=False)
    failures: list[DocumentFailure] = field(default_factory=list[DocumentFailure])
    warnings: list[DocumentFailure] = field(default_factory=list[DocumentFailure])
    stopped: bool = False

    def warn(self, document_id: str, message: str) -> None:
        """Note of a document that it was not read whole, if there is something to note."""
        if message:
            self.warnings.append(DocumentFailure(document_id=document_id, code=PARTLY_READ.upper(), message=message))


@dataclass(slots=True)
class _Batch:
    rows: list[IndexRow] = field(default_factory=list[IndexRow])
    records: list[DocumentRecord] = field(default_factory=list[DocumentRecord])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestor:
    """Reads, cuts, embeds and stores documents of one data source.

    Attributes:
        index: Where passages go.
        catalog: Where it is recorded which documents stand in the index as a whole.
        chunker: Cuts.
        embedder: Makes vectors; None for an index that searches by words alone.
        org_id: Whose documents they are.
        data_source_id: Where they belong.
        lock: Held while the run writes; a `Turn` may refuse, which ends the run.
        limits: What a document may cost.
        quota: Passages the organisation may keep; where they are used up, nothing more is read.
        folders: What identities of documents begin with that are ingested whole: of those that stand in the index, the
            ones that are not among the items any more are forgotten.
    """

    index: Index
    catalog: Catalog
    chunker: Chunker
    embedder: Embedder | None
    org_id: str
    data_source_id: str
    lock: AbstractContextManager[Any]
    limits: Limits = DEFAULT_LIMITS
    quota: int | None = None
    folders: Sequence[str] = ()

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
            stop: Asked before each document and again and again inside it; true ends the run. Documents done so far
                stay as a whole, and nothing of the one at hand is left.

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
        seen: set[str] = set()
        whole = True
        for item in items:
            if stop():
                whole = False
                break
            seen.add(item.document_id)
            try:
                self._take(item, batch, progress, stop)
                if len(batch.rows) >= BATCH_CHUNKS or len(batch.records) >= BATCH_DOCUMENTS:
                    self._write(batch, progress)
            except CalledOff:
                whole = False
                break
            except (IndexFull, IndexUnavailable):
                raise
            except RagFailure as failure:
                message = str(failure.args[0]) if failure.args else failure.remedy
                if self.catalog.document(self.org_id, self.data_source_id, item.document_id) is not None:
                    message += f" {_STAYS}"
                progress.failures.append(
                    DocumentFailure(document_id=item.document_id, code=failure.code, message=message)
                )
            report(progress)
        self._write(batch, progress)
        if whole:
            progress.removed = self._forget_missing(seen)
        if progress.indexed > progress.unchanged or progress.removed:
            with self.lock:
                self.index.settle()
        report(progress)

    def _forget_missing(self, seen: set[str]) -> int:
        """Forget what was deleted or moved from the folders since they were last ingested; return how many.

        What was not seen need not be gone: a folder may not be listed, or be away as a whole, and another process may
        have ingested what came since the folder was listed.
        """
        folders = tuple(folder for folder in self.folders if Path(folder).is_dir())
        known = self.catalog.documents(self.org_id, self.data_source_id) if folders else []
        missing = [one.document_id for one in known if one.document_id.startswith(folders)]
        missing = [one for one in missing if one not in seen and is_gone(one)]
        for begin in range(0, len(missing), BATCH_DOCUMENTS):
            names = tuple(missing[begin : begin + BATCH_DOCUMENTS])
            with self.lock:
                self.catalog.mark_unfinished(self.org_id, self.data_source_id, names)
                self.index.delete(Selection(self.org_id, (self.data_source_id,), document_ids=names))
                self.catalog.drop_documents(self.org_id, self.data_source_id, names)
        return len(missing)

    def _take(self, item: Waiting, batch: _Batch, progress: Progress, stop: Callable[[], bool]) -> None:
        document = item.load()
        fingerprint = self._fingerprint(document, item.source)
        known = self.catalog.document(self.org_id, self.data_source_id, item.document_id)
        if known is not None and known.fingerprint == fingerprint:
            progress.unchanged += 1
            progress.indexed += 1
            progress.chunks += known.chunks
            progress.warn(item.document_id, known.warning)
            return
        self._check_room(known, batch)
        scope = f"{self.org_id}\0{self.data_source_id}\0{document.document_id}"
        parsed, chunks, vectors = prepare(document, scope, self.chunker, self.embedder, limits=self.limits, stop=stop)
        if vectors is None:
            vectors = self._embedded(embedded_texts(chunks), stop)
        dated = document.model_copy(update={"timestamp": document.timestamp or parsed.date or item.modified()})
        rows = self._rows(dated, parsed, item.source, chunks, vectors)
        warning = " ".join(parsed.warnings)
        batch.rows.extend(rows)
        batch.records.append(DocumentRecord(item.document_id, fingerprint, len(chunks), warning))
        progress.warn(item.document_id, warning)

    def _check_room(self, known: DocumentRecord | None, batch: _Batch) -> None:
        """Refuse a document for which there is no room before it costs anything."""
        if self.quota is None:
            return
        used = self.index.count(Selection(self.org_id)) + len(batch.rows) - (known.chunks if known else 0)
        if used >= self.quota:
            raise IndexFull

    def _embedded(self, texts: list[str], stop: Callable[[], bool]) -> list[Any] | None:
        if self.embedder is None:
            return None
        vectors: list[Any] = []
        for begin in range(0, len(texts), _EMBEDDED_AT_ONCE):
            if begin and stop():
                raise CalledOff
            vectors.extend(self.embedder.embed(texts[begin : begin + _EMBEDDED_AT_ONCE]))
        if len(vectors) != len(texts):
            raise EmbeddingFailed("The embedding model returned another number of vectors than it was given texts.")
        return vectors

    def _rows(
        self,
        document: Document,
        parsed: ParsedDocument,
        source: str,
        chunks: list[Chunk],
        vectors: Sequence[Any] | Vectors,
    ) -> list[IndexRow]:
        noted = {PARTLY_READ: round(parsed.coverage, 3)} if parsed.warnings else {}
        metadata = json.dumps({**document.metadata, **noted}, default=str, ensure_ascii=False)
        return [
            IndexRow(
                **asdict(chunk),
                org_id=self.org_id,
                data_source_id=self.data_source_id,
                document_id=document.document_id,
                source=source,
                media_type=parsed.media_type,
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
            with self.lock:
                self._store(batch, progress)

    def _store(self, batch: _Batch, progress: Progress) -> None:
        if self.catalog.source(self.org_id, self.data_source_id) is None:
            # Deleted meanwhile: what is written now would belong to whoever takes the name next.
            raise Stopped
        names = tuple(record.document_id for record in batch.records)
        # Recorded last: a process killed in between leaves documents that count as not done.
        self.catalog.mark_unfinished(self.org_id, self.data_source_id, names)
        if batch.rows:
            self.index.upsert(batch.rows)
        kept = tuple(row.chunk_id for row in batch.rows)
        self.index.delete(Selection(self.org_id, (self.data_source_id,), document_ids=names, excluding_chunk_ids=kept))
        self.catalog.put_documents(self.org_id, self.data_source_id, batch.records)
        progress.indexed += len(batch.records)
        progress.chunks += len(batch.rows)
        progress.vector_ids.extend(kept[: MAX_VECTOR_IDS - len(progress.vector_ids)])
        batch.rows.clear()
        batch.records.clear()

    def _fingerprint(self, document: Document, source: str) -> str:
        digest = hashlib.sha256()
        embedder = self.embedder.name if self.embedder is not None else ""
        facts = [PARSER_VERSION, self.chunker.signature, embedder, source, document.media_type]
        facts += [
            repr(document.timestamp),
            repr(document.quality),
            json.dumps(document.metadata, default=str),
        ]
        digest.update("\0".join(facts).encode("utf-8", "replace"))
        digest.update(b"\0" + (document.content or b""))
        digest.update(b"\0" + (document.text or "").encode("utf-8", "replace"))
        return digest.hexdigest()
