"""The facade: ingest documents, ask questions, everything else by default.

Example:
    >>> from spanforge.reference import Pipeline
    >>> pipeline = Pipeline()
    >>> job = pipeline.ingest_bundled_corpus()
    >>> pipeline.ask("What is the capital of France?").answer
    'Paris [1]'
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from spanforge import _clock
from spanforge.reference import grounding, tracing
from spanforge.reference.access import accessible, may_change
from spanforge.reference.answering import ExtractiveAnswerer
from spanforge.reference.chunking import Chunker
from spanforge.reference.failures import InvalidInput, PermissionDenied
from spanforge.reference.flow import Flow
from spanforge.reference.home import Home
from spanforge.reference.index import Selection
from spanforge.reference.ingestion import Ingestor, Turn
from spanforge.reference.jobs import Jobs
from spanforge.reference.models import DataSource, Document, RagResult, RagStatus
from spanforge.reference.options import LOCAL_USER, AskOptions, RetrieveOptions, retrieval_input, to_ask
from spanforge.reference.parsing import DEFAULT_LIMITS, Limits
from spanforge.reference.recovery import AnswerCache, RecoverySettings
from spanforge.reference.retrieval import Retriever
from spanforge.reference.run import Parts
from spanforge.reference.selection import SelectionSettings
from spanforge.reference.tokens import default_counter
from spanforge.reference.understanding import process_query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence

    from spanforge.reference.answering import Answerer
    from spanforge.reference.checks import Grounder
    from spanforge.reference.embedding import Embedder
    from spanforge.reference.index import Index
    from spanforge.reference.models import IngestionOutput, RetrievalOutput, User
    from spanforge.reference.rerank import Reranker
    from spanforge.reference.retrieval import RetrievalSettings
    from spanforge.sdk.scopes import SessionScope

DEFAULT_SOURCE = "default"


class Pipeline:
    """A whole RAG in one object. Safe to use from several threads, and on one folder from several processes.

    Args:
        home: Folder that keeps the index between processes; absent, everything is in memory.
        index: An index of your own in place of the one ``home`` implies.
        embedder: A specification for `open_embedder`, an embedder, ``auto`` (the bundled one, or by words
            alone where its package is missing: shown in `modes`, and as the warning ``LEXICAL_ONLY`` of
            every result), or None to search by words alone.
        answerer: Who writes answers; absent, the extractive one, which needs no model.
        reranker: Who reorders results; absent, the lexical one.
        grounder: Who judges contexts and answers; absent, the bundled one.
        retrieval: How results are fused and judged.
        selection: How the context is chosen.
        recovery: What is done when a run does not end well.
        max_chunks: Quota of the index; beyond it ingestion fails with INDEX_FULL.
        limits: What a document may unfold to; beyond it, it fails with PARSE_ERROR and the others go on.
        pipeline_name: Name in the trace.
        namespace: Namespace in the trace.

    Raises:
        EmbeddingFailed: The embedder asked for is missing.
        IndexUnavailable: The folder cannot be used, or its index was made with another embedder.
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
        recovery: RecoverySettings | None = None,
        max_chunks: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        pipeline_name: str = "spanforge-reference",
        namespace: str = "",
    ) -> None:
        self._home = Home(None if home is None else Path(home))
        self.catalog = self._home.catalog
        self.embedder = self._home.open_embedder(embedder)
        self.index: Index = index or self._home.open_index(self.embedder, max_chunks)
        self._counter = default_counter()
        self._parts = Parts(
            retriever=Retriever(self.index, self.embedder, retrieval, reranker),
            answerer=answerer or ExtractiveAnswerer(),
            counter=self._counter,
            selection=selection or SelectionSettings(),
            grounder=grounder,
        )
        self._flow = Flow(self._parts, recovery or RecoverySettings(), AnswerCache())
        self.jobs = Jobs(self.catalog, self._home.path, self._ingestor)
        self._limits = limits
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
            InvalidInput: ``data_source_id`` is empty, or ``chunk_overlap`` is not less than ``chunk_size``.
        """
        if not 0 <= chunk_overlap < chunk_size:
            raise InvalidInput("chunk_overlap must be at least 0 and less than chunk_size.")
        if not data_source_id:
            raise InvalidInput("data_source_id must not be empty.")
        self._writable_source(data_source_id, user)
        items = [documents] if isinstance(documents, str | Path | Document) else documents
        settings = {"chunk_size": chunk_size, "chunk_overlap": chunk_overlap}
        job, todo = self.jobs.create(items, user, data_source_id, settings)
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
        if source.org_id != user.org_id or not self.catalog.put_source(source, lambda known: may_change(user, known)):
            raise PermissionDenied

    def sources(self, user: User = LOCAL_USER) -> list[DataSource]:
        """Return the data sources the user may query."""
        known = self.catalog.sources(user.org_id)
        names = set(accessible(user, known))
        return [source for source in known if source.data_source_id in names]

    def delete(self, data_source_id: str, document_ids: Sequence[str] | None = None, *, user: User = LOCAL_USER) -> int:
        """Delete documents, or a whole data source, and return how many passages went.

        Their text is gone from the index's files when this returns.

        Raises:
            PermissionDenied: There is no such data source that the user may change.
        """
        wanted = None if document_ids is None else tuple(document_ids)
        with self._home.write_lock:
            source = self.catalog.source(user.org_id, data_source_id)
            if source is None or not may_change(user, source):
                raise PermissionDenied
            if wanted is None:
                self.catalog.drop_source(user.org_id, data_source_id)
            else:
                self.catalog.drop_documents(user.org_id, data_source_id, wanted)
            deleted = self.index.delete(Selection(user.org_id, (data_source_id,), document_ids=wanted))
            self.index.settle()
            return deleted

    # --- questions ---

    def retrieve(self, query: str, **options: Unpack[RetrieveOptions]) -> RetrievalOutput:
        """Find passages without answering; not traced.

        Args:
            query: What is looked for.
            **options: See `RetrieveOptions`.

        Raises:
            NoResults: Nothing relevant was found.
            NoAccessibleSources: The user may query none of the sources.
            IndexUnavailable: The index cannot be read.
            EmbeddingFailed: The question cannot be embedded.
            InvalidInput: A value is outside what the contract allows.
        """
        request = retrieval_input(query, options)
        user = options.get("user", LOCAL_USER)
        return self._parts.retriever.retrieve(
            request, process_query(query), org_id=user.org_id, sources=self._accessible(options)
        )

    def ask(self, question: str, **options: Unpack[AskOptions]) -> RagResult:
        """Answer a question from the documents, traced as one session.

        What the documents do not answer is a result with the constant refusal, not an error.

        Args:
            question: What is asked.
            **options: See `AskOptions`.

        Raises:
            NoAccessibleSources: The user may query none of the sources.
            IndexUnavailable: The index cannot be read.
            EmbeddingFailed: The question cannot be embedded.
            ContextOverflow: The budget is too small for one passage.
            TemplateError: The template is unusable.
            GenerationFailed: The model did not answer, and there was no earlier answer to fall back on.
            GroundingFailed: Strict mode, and the grounder failed.
            InvalidInput: A value is outside what the contract allows.
        """
        *_, result = self._run(question, options, stream=False)
        return _result(result)

    def stream(self, question: str, **options: Unpack[AskOptions]) -> Iterator[str | RagResult]:
        """Answer as `ask` does, yielding the pieces of the answer as they come and last the result.

        In strict mode an answer is shown only after it is verified: the result comes without pieces before
        it.
        """
        return self._run(question, options, stream=True)

    async def aask(self, question: str, **options: Unpack[AskOptions]) -> RagResult:
        """Answer as `ask` does, without blocking the event loop while a model writes."""
        result: str | RagResult = ""
        async for item in self._arun(question, options, stream=False):
            result = item
        return _result(result)

    def astream(self, question: str, **options: Unpack[AskOptions]) -> AsyncIterator[str | RagResult]:
        """Answer as `stream` does, without blocking the event loop while a model writes."""
        return self._arun(question, options, stream=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the jobs in the background, then close the answerer's connections, the index and the catalogue.

        Jobs that were at work end after the document at hand, and can be taken up again by `Jobs.resume`.
        """
        self.jobs.close()
        self._parts.answerer.close()
        self.index.close()
        self.catalog.close()

    def _run(self, question: str, options: AskOptions, *, stream: bool) -> Iterator[str | RagResult]:
        ask = to_ask(question, options, self._accessible(options))
        with self._session(question, ask.request.top_k) as ending:
            for item in self._flow.run(ask, ending.session, stream=stream):
                if not isinstance(item, RagResult):
                    yield item
                    continue
                ending.end(item)
        if ending.result is not None:
            yield ending.result

    async def _arun(self, question: str, options: AskOptions, *, stream: bool) -> AsyncIterator[str | RagResult]:
        ask = to_ask(question, options, self._accessible(options))
        with self._session(question, ask.request.top_k) as ending:
            async for item in self._flow.arun(ask, ending.session, stream=stream):
                if not isinstance(item, RagResult):
                    yield item
                    continue
                ending.end(item)
        if ending.result is not None:
            yield ending.result

    @contextmanager
    def _session(self, question: str, top_k: int) -> Generator[_Ending]:
        with tracing.session(
            question,
            top_k=top_k,
            embedding_model=self.embedder.name if self.embedder else "",
            namespace=self._namespace,
            pipeline_name=self._pipeline_name,
        ) as session:
            yield _Ending(session)

    def _accessible(self, options: RetrieveOptions) -> tuple[str, ...]:
        user = options.get("user", LOCAL_USER)
        return accessible(user, self.catalog.sources(user.org_id), options.get("data_sources"))

    def _writable_source(self, data_source_id: str, user: User) -> None:
        wanted = DataSource(data_source_id=data_source_id, org_id=user.org_id, owner_id=user.user_id)
        if not may_change(user, self.catalog.ensure_source(wanted)):
            raise PermissionDenied

    def _ingestor(
        self, org_id: str, data_source_id: str, may_go_on: Callable[[], bool], *, chunk_size: int, chunk_overlap: int
    ) -> Ingestor:
        return Ingestor(
            self.index,
            self.catalog,
            Chunker(self._counter, chunk_size, chunk_overlap),
            self.embedder,
            org_id=org_id,
            data_source_id=data_source_id,
            lock=Turn(self._home.write_lock, may_go_on),
            limits=self._limits,
        )


class _Ending:
    """A session's last step: what the run took, and whether a person is to be asked."""

    def __init__(self, session: SessionScope) -> None:
        self.session = session
        self.result: RagResult | None = None
        self._started = _clock.monotonic_ns()

    def end(self, result: RagResult) -> None:
        spent = (_clock.monotonic_ns() - self._started) / 1e6
        tracing.escalate_where_due(
            self.session.session_id,
            grounding_score=result.grounding_score,
            nothing_found=result.status is RagStatus.NO_INFORMATION,
            latency_ms=spent,
        )
        latencies = {**result.latencies_ms, "total": spent}
        self.result = result.model_copy(update={"session_id": self.session.session_id, "latencies_ms": latencies})


def _result(item: str | RagResult) -> RagResult:
    if not isinstance(item, RagResult):
        raise TypeError("a run ends with its result")
    return item
