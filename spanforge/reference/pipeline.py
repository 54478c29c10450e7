"""The facade: ingest documents, ask questions, everything else by default.

Example:
    >>> from spanforge.reference import Pipeline
    >>> pipeline = Pipeline()
    >>> job = pipeline.ingest_bundled_corpus()
    >>> pipeline.ask("What is the capital of France?").answer
    'Paris [1]'
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from spanforge import _clock
from spanforge.reference import grounding, tracing
from spanforge.reference._extras import load
from spanforge.reference.access import accessible, may_change
from spanforge.reference.answering import ExtractiveAnswerer
from spanforge.reference.catalog import Catalog
from spanforge.reference.chunking import Chunker
from spanforge.reference.embedding import open_embedder
from spanforge.reference.failures import EmbeddingFailed, IndexUnavailable, InvalidInput, PermissionDenied
from spanforge.reference.index import MemoryIndex, Selection
from spanforge.reference.index.lance import LanceIndex
from spanforge.reference.ingestion import Ingestor
from spanforge.reference.jobs import Jobs
from spanforge.reference.models import DataSource, RagStatus, RetrievalInput, User
from spanforge.reference.retrieval import Retriever
from spanforge.reference.run import Ask, Parts, Run
from spanforge.reference.selection import SelectionSettings
from spanforge.reference.tokens import default_counter
from spanforge.reference.understanding import process_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from spanforge.reference.answering import Answerer
    from spanforge.reference.checks import Grounder
    from spanforge.reference.embedding import Embedder
    from spanforge.reference.index import Index
    from spanforge.reference.models import Document, Filter, IngestionOutput, RagResult, RetrievalOutput
    from spanforge.reference.rerank import Reranker
    from spanforge.reference.retrieval import RetrievalSettings

LOCAL_USER = User()
DEFAULT_SOURCE = "default"


class Pipeline:
    """A whole RAG in one object.

    Args:
        home: Folder that keeps the index between processes; absent, everything is in memory.
        index: An index of your own in place of the one ``home`` implies.
        embedder: A specification for `open_embedder`, an embedder, ``auto`` (the bundled one, or by words
            alone where its package is missing: shown in `modes`, and as the warning ``LEXICAL_ONLY`` of
            every result), or None to search by words alone.
        answerer: Who writes answers; absent, the extractive one, which needs no model.
        reranker: Who reorders results; absent, the lexical one.
        retrieval: How results are fused and judged.
        selection: How the context is chosen.
        max_chunks: Quota of the index; beyond it documents fail with INDEX_FULL.
        pipeline_name: Name in the trace.
        namespace: Namespace in the trace.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        index: Index | None = None,
        embedder: str | Embedder | None = "auto",
        answerer: Answerer | None = None,
        reranker: Reranker | None = None,
        grounder: Grounder = grounding,
        retrieval: RetrievalSettings | None = None,
        selection: SelectionSettings | None = None,
        max_chunks: int | None = None,
        pipeline_name: str = "spanforge-reference",
        namespace: str = "",
    ) -> None:
        self._home = None if home is None else Path(home)
        if self._home is not None:
            self._home.mkdir(parents=True, exist_ok=True)
        self.catalog = Catalog(None if self._home is None else self._home / "catalog.sqlite")
        self._write_lock = self._lock()
        self.embedder = self._open_embedder(embedder)
        self.index: Index = index or self._open_index(max_chunks)
        self._counter = default_counter()
        self._parts = Parts(
            retriever=Retriever(self.index, self.embedder, retrieval, reranker),
            answerer=answerer or ExtractiveAnswerer(),
            counter=self._counter,
            selection=selection or SelectionSettings(),
            grounder=grounder,
        )
        self.jobs = Jobs(self.catalog, self._home, self._ingestor)
        self._pipeline_name = pipeline_name
        self._namespace = namespace

    @property
    def modes(self) -> dict[str, str]:
        """Which engine does what: index, embedder, tokens, answerer, reranker."""
        return {
            "index": self.index.name,
            "embedder": self.embedder.name if self.embedder else "none: by words alone",
            "tokens": self._counter.name,
            "answerer": self._parts.answerer.model,
            "reranker": self._parts.retriever.reranker.name,
        }

    # --- ingestion ---

    def ingest(
        self,
        documents: Iterable[Document | Path | str] | Document | Path | str,
        data_source_id: str = DEFAULT_SOURCE,
        *,
        chunk_size: int = 512,
        chunk_overlap: int = 50,
        user: User = LOCAL_USER,
        report: Callable[[IngestionOutput], None] | None = None,
        background: bool = False,
    ) -> IngestionOutput:
        """Ingest files, folders or documents into a data source, and return the job.

        A data source that does not exist is created: public in the user's organisation, owned by the user.

        Args:
            documents: Paths of files and folders, or documents.
            data_source_id: Where they belong.
            chunk_size: Greatest length of a passage in tokens.
            chunk_overlap: Tokens neighbouring passages may share.
            user: Who ingests.
            report: Called with the job's state after each document.
            background: Return at once with a queued job and work on in a thread.

        Raises:
            PermissionDenied: The user may not change the data source.
            InvalidInput: chunk_overlap is not less than chunk_size.
        """
        if not 0 <= chunk_overlap < chunk_size:
            raise InvalidInput("chunk_overlap must be at least 0 and less than chunk_size.")
        source = self.catalog.source(user.org_id, data_source_id)
        if source is None:
            self.catalog.put_source(_new_source(data_source_id, user))
        elif not may_change(user, source):
            raise PermissionDenied
        items = [documents] if isinstance(documents, str | Path) or not _is_iterable(documents) else documents
        settings = {"chunk_size": chunk_size, "chunk_overlap": chunk_overlap}
        job, todo = self.jobs.create(items, user, data_source_id, settings)  # pyright: ignore[reportArgumentType]
        if background:
            self.jobs.start(job, todo, user, settings)
            return job
        return self.jobs.run(job, todo, user, settings, report)

    def ingest_bundled_corpus(self, data_source_id: str = "bundled") -> IngestionOutput:
        """Ingest the small corpus that comes with the package."""
        with resources.as_file(resources.files("spanforge.reference") / "corpus") as folder:
            return self.ingest(folder, data_source_id)

    # --- data sources ---

    def put_source(self, source: DataSource, user: User = LOCAL_USER) -> None:
        """Create a data source, or change who may see it.

        Raises:
            PermissionDenied: It exists and is not the user's to change, or would belong to another
            organisation.
        """
        known = self.catalog.source(source.org_id, source.data_source_id)
        if source.org_id != user.org_id or (known is not None and not may_change(user, known)):
            raise PermissionDenied
        self.catalog.put_source(source)

    def sources(self, user: User = LOCAL_USER) -> list[DataSource]:
        """Return the data sources the user may query."""
        known = self.catalog.sources(user.org_id)
        names = set(accessible(user, known))
        return [source for source in known if source.data_source_id in names]

    def delete(
        self, data_source_id: str, document_ids: Sequence[str] | None = None, *, user: User = LOCAL_USER
    ) -> int:
        """Delete documents, or a whole data source, and return how many passages went.

        Raises:
            PermissionDenied: There is none the user may change.
        """
        source = self.catalog.source(user.org_id, data_source_id)
        if source is None or not may_change(user, source):
            raise PermissionDenied
        wanted = None if document_ids is None else tuple(document_ids)
        with self._write_lock:
            if wanted is None:
                self.catalog.drop_source(user.org_id, data_source_id)
            else:
                self.catalog.drop_documents(user.org_id, data_source_id, wanted)
            deleted = self.index.delete(Selection(user.org_id, (data_source_id,), document_ids=wanted))
            self.index.settle()
            return deleted

    # --- questions ---

    def retrieve(
        self,
        query: str,
        *,
        data_sources: Sequence[str] | None = None,
        top_k: int = 10,
        filters: Sequence[Filter] = (),
        rerank: bool = True,
        user: User = LOCAL_USER,
    ) -> RetrievalOutput:
        """Find passages without answering; not traced.

        Raises:
            NoResults: Nothing relevant was found.
            NoAccessibleSources: The user may query none of the sources.
            IndexUnavailable: The index cannot be read.
        """
        request = _checked(query, data_sources, top_k, filters, rerank=rerank)
        return self._parts.retriever.retrieve(
            request, process_query(query), org_id=user.org_id, sources=self._accessible(user, data_sources)
        )

    def ask(
        self,
        question: str,
        *,
        data_sources: Sequence[str] | None = None,
        top_k: int = 10,
        filters: Sequence[Filter] = (),
        rerank: bool = True,
        strict: bool = False,
        max_tokens: int = 2000,
        template: str | None = None,
        model: str | None = None,
        temperature: float = 0.3,
        user: User = LOCAL_USER,
    ) -> RagResult:
        """Answer a question from the documents, traced as one session.

        Args:
            question: What is asked.
            data_sources: Narrow to these; absent, all the user may query.
            top_k: Passages to retrieve.
            filters: Conditions on typed fields.
            rerank: Whether to reorder what was found.
            strict: Refuse rather than answer beyond the documents.
            max_tokens: Budget of the whole prompt.
            template: Prompt template with ``{context}`` and ``{query}``.
            model: Model for an answerer that has several.
            temperature: Randomness of a model's wording.
            user: Who asks.

        Raises:
            NoAccessibleSources: The user may query none of the sources.
            IndexUnavailable: The index cannot be read.
            EmbeddingFailed: The question cannot be embedded.
            ContextOverflow: The budget is too small for one passage.
            TemplateError: The template is unusable.
            GenerationFailed: The model did not answer.
            InvalidInput: An argument is out of range.
        """
        request = _checked(question, data_sources, top_k, filters, rerank=rerank)
        ask = Ask(
            request=request,
            query=process_query(question),
            org_id=user.org_id,
            sources=self._accessible(user, data_sources),
            strict=strict,
            max_tokens=max_tokens,
            template=template,
            model=model,
            temperature=temperature,
            now=datetime.fromtimestamp(_clock.wall_ns() / 1e9, UTC),
        )
        started = _clock.monotonic_ns()
        with tracing.session(
            question,
            top_k=top_k,
            embedding_model=self.embedder.name if self.embedder else "",
            namespace=self._namespace,
            pipeline_name=self._pipeline_name,
        ) as session:
            result = Run(self._parts, ask).execute(session)
            spent = (_clock.monotonic_ns() - started) / 1e6
            tracing.escalate_where_due(
                session.session_id,
                grounding_score=result.grounding_score,
                nothing_found=result.status is RagStatus.NO_INFORMATION,
                latency_ms=spent,
            )
        latencies = {**result.latencies_ms, "total": spent}
        return result.model_copy(update={"session_id": session.session_id, "latencies_ms": latencies})

    def close(self) -> None:
        """Close the index and the catalogue."""
        self.index.close()
        self.catalog.close()

    def _accessible(self, user: User, wanted: Sequence[str] | None) -> tuple[str, ...]:
        return accessible(user, self.catalog.sources(user.org_id), wanted)

    def _ingestor(self, org_id: str, data_source_id: str, *, chunk_size: int, chunk_overlap: int) -> Ingestor:
        return Ingestor(
            self.index,
            self.catalog,
            Chunker(self._counter, chunk_size, chunk_overlap),
            self.embedder,
            org_id=org_id,
            data_source_id=data_source_id,
            lock=self._write_lock,
        )

    def _open_embedder(self, wanted: str | Embedder | None) -> Embedder | None:
        if wanted == "auto":
            stored = self.catalog.setting("embedder")
            try:
                embedder = open_embedder(stored or "wordllama") if stored != "" else None
            except EmbeddingFailed:
                if stored:
                    raise
                embedder = None
        else:
            embedder = open_embedder(wanted) if isinstance(wanted, str) else wanted
        name = embedder.name if embedder is not None else ""
        if self.catalog.remember("embedder", name) != name:
            raise IndexUnavailable("The index was made with another embedding model; open it with that one.")
        return embedder

    def _open_index(self, max_chunks: int | None) -> Index:
        if self._home is None:
            return MemoryIndex(max_rows=max_chunks)
        dimensions = self.embedder.dimensions if self.embedder is not None else 0
        with self._write_lock:
            return LanceIndex(self._home / "index", dimensions, max_rows=max_chunks)

    def _lock(self) -> AbstractContextManager[Any]:
        if self._home is None:
            return threading.RLock()
        return load("filelock", "reference").FileLock(self._home / "write.lock")


def _checked(
    query: str, data_sources: Sequence[str] | None, top_k: int, filters: Sequence[Filter], *, rerank: bool
) -> RetrievalInput:
    fields: list[str] = []
    try:
        return RetrievalInput(
            query=query,
            data_sources=None if data_sources is None else list(data_sources),
            top_k=top_k,
            filters=list(filters),
            rerank=rerank,
        )
    except ValidationError as error:
        # The error object carries the input: only the names of the fields leave this block.
        fields = sorted({str(item["loc"][0]) for item in error.errors(include_input=False)})
    raise InvalidInput(f"{', '.join(fields)}: outside what the contract allows.")


def _new_source(data_source_id: str, user: User) -> DataSource:
    return DataSource(data_source_id=data_source_id, org_id=user.org_id, owner_id=user.user_id)


def _is_iterable(value: object) -> bool:
    return hasattr(value, "__iter__") and not hasattr(value, "document_id")
