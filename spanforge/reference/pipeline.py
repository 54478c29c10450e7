"""The facade: ingest documents, ask questions, everything else by default.

Example:
    >>> from spanforge.reference import Pipeline
    >>> pipeline = Pipeline()
    >>> job = pipeline.ingest_bundled_corpus()
    >>> pipeline.ask("What is the capital of France?").answer
    'Paris [1]'
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from importlib import resources
from pathlib import Path
from typing import Self, Unpack

from spanforge import _clock
from spanforge.reference import grounding, tracing
from spanforge.reference.access import accessible, may_change
from spanforge.reference.answering import Answerer, ExtractiveAnswerer
from spanforge.reference.asking.attempt import Ask, Parts
from spanforge.reference.asking.flow import Flow, Told, at_once, awaited, without_waiting
from spanforge.reference.asking.following import Conversations
from spanforge.reference.asking.grounding_checks import Grounder
from spanforge.reference.asking.options import LOCAL_USER, AskOptions, RetrieveOptions, retrieval_input, to_ask, user_of
from spanforge.reference.asking.recovery import AnswerCache, RecoverySettings
from spanforge.reference.asking.selection import SelectionSettings
from spanforge.reference.embedding import Embedder
from spanforge.reference.failures import InvalidInput, NotGrounded, PermissionDenied
from spanforge.reference.home import Home
from spanforge.reference.index import Index, IndexRow, Selection
from spanforge.reference.ingesting.catalog import DocumentRecord
from spanforge.reference.ingesting.chunking import Chunker
from spanforge.reference.ingesting.ingestor import Ingestor, Turn
from spanforge.reference.ingesting.jobs import Jobs
from spanforge.reference.ingesting.loading import folders
from spanforge.reference.ingesting.run import CANCELLED, failed
from spanforge.reference.models import (
    DataSource,
    Document,
    IngestionInput,
    IngestionOutput,
    RagResult,
    RagStatus,
    RetrievalOutput,
    User,
)
from spanforge.reference.retrieving.reranking import Reranker
from spanforge.reference.retrieving.retriever import RetrievalSettings, Retriever
from spanforge.reference.retrieving.understanding import process_query
from spanforge.reference.tokens import default_counter
from spanforge.reference.wording import checked
from spanforge.reference.workers import DEFAULT_LIMITS, Limits

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
        limits: What a document may cost; beyond it, it fails with PARSE_ERROR and the others go on.
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
        self._answers = AnswerCache()
        self._flow = Flow(self._parts, recovery or RecoverySettings(), self._answers)
        self._conversations = Conversations()
        self.writing = self._home.write_lock
        self.jobs = Jobs(self.catalog, self._home.path, self._ingestor, self.writing)
        self._limits = limits
        self._quota = max_chunks
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

    @property
    def retriever(self) -> Retriever:
        """Who searches and ranks."""
        return self._parts.retriever

    # --- ingestion ---

    def ingest(
        self,
        documents: Iterable[Document | Path | str] | Document | Path | str,
        data_source_id: str = DEFAULT_SOURCE,
        *,
        chunk_size: int = 512,
        chunk_overlap: int | None = None,
        embedding_model: str | None = None,
        keep_missing: bool = False,
        user: User = LOCAL_USER,
        report: Callable[[IngestionOutput], None] | None = None,
        background: bool = False,
    ) -> IngestionOutput:
        """Ingest files, folders or documents into a data source, and return the job.

        A data source that does not exist is created: public in the user's organisation, owned by the user. Of a folder
        that was ingested before, what is not in it any more is forgotten.

        Args:
            documents: Paths of files and folders, or documents.
            data_source_id: Where they belong.
            chunk_size: Greatest length of a passage in tokens.
            chunk_overlap: Tokens neighbouring passages may share, at most half of the size; 50 or that half where left
                out.
            embedding_model: Left out, or the name of the index's own; see `modes`.
            keep_missing: Keep in the index what is gone from the folders.
            user: Who ingests.
            report: Called with the job's state after each document.
            background: Return at once with a queued job and work on in a thread.

        Raises:
            PermissionDenied: The user may not change the data source.
            InvalidInput: A value is outside what the contract allows.
        """
        items = [documents] if isinstance(documents, str | Path | Document) else list(documents)
        said = {"chunk_size": chunk_size, "chunk_overlap": chunk_overlap, "embedding_model": embedding_model}
        given = {name: value for name, value in said.items() if value is not None}
        request = checked(IngestionInput, {"documents": items, "data_source_id": data_source_id, **given})
        if request.embedding_model not in (None, self.modes["embedder"]):
            raise InvalidInput("embedding_model: must be left out, or name the index's own; see Pipeline.modes.")
        self._writable_source(data_source_id, user)
        synced = [] if keep_missing else folders(request.documents)
        job = self.jobs.create(request.documents, user, data_source_id, {**request.cut, "folders": synced})
        if background:
            self.jobs.start(job)
            return job
        # Nothing to do only where it was cancelled, or its source deleted, since.
        return self.jobs.run(job.job_id, report) or failed(job, CANCELLED)

    def ingest_bundled_corpus(self, data_source_id: str = "bundled") -> IngestionOutput:
        """Ingest the small corpus that comes with the package."""
        with resources.as_file(resources.files("spanforge.reference") / "corpus") as folder:
            return self.ingest(folder, data_source_id)

    # --- data sources ---

    def put_source(self, source: DataSource, user: User = LOCAL_USER) -> None:
        """Create a data source, or change who may see it.

        Raises:
            PermissionDenied: It exists and is not the user's to change, or would belong to another organisation, or to
                another owner without the owner's own doing.
        """

        def may_replace(known: DataSource) -> bool:
            # Who owns a source is its owner's to say.
            return may_change(user, known) and known.owner_id in {source.owner_id, user.user_id}

        if source.org_id != user.org_id or not self.catalog.put_source(source, may_replace):
            raise PermissionDenied

    def sources(self, user: User = LOCAL_USER) -> list[DataSource]:
        """Return the data sources the user may query."""
        known = self.catalog.sources(user.org_id)
        names = set(accessible(user, known))
        return [source for source in known if source.data_source_id in names]

    def documents(self, data_source_id: str = DEFAULT_SOURCE, *, user: User = LOCAL_USER) -> list[DocumentRecord]:
        """Return the documents of a data source that stand in the index.

        Raises:
            PermissionDenied: There is no such data source that the user may query or change.
        """
        source = self.catalog.source(user.org_id, data_source_id)
        if source is None or not (accessible(user, [source]) or may_change(user, source)):
            raise PermissionDenied
        return self.catalog.documents(user.org_id, data_source_id)

    def passage(self, chunk_id: str, *, user: User = LOCAL_USER) -> IndexRow | None:
        """Return a passage of a data source that the user may query, None where there is none of this id.

        Raises:
            IndexUnavailable: The index cannot be read.
        """
        sources = accessible(user, self.catalog.sources(user.org_id))
        found = self.index.rows(Selection(user.org_id, sources, chunk_ids=(chunk_id,)), 1)
        return found[0] if found else None

    def delete(self, data_source_id: str, document_ids: Sequence[str] | None = None, *, user: User = LOCAL_USER) -> int:
        """Delete documents, or a whole data source, and return how many passages went.

        Their text is gone from the index's files when this returns.

        Raises:
            PermissionDenied: There is no such data source that the user may change.
        """
        wanted = None if document_ids is None else tuple(document_ids)
        with self.writing:
            source = self.catalog.source(user.org_id, data_source_id)
            if source is None or not may_change(user, source):
                raise PermissionDenied
            known = [one.document_id for one in self.catalog.documents(user.org_id, data_source_id)]
            doomed = known if wanted is None else set(known) & set(wanted)
            # Dropped last: what a killed process leaves can be seen, and deleted once more.
            self.catalog.mark_unfinished(user.org_id, data_source_id, doomed)
            deleted = self.index.delete(Selection(user.org_id, (data_source_id,), document_ids=wanted))
            self.index.settle()
            if wanted is None:
                self.jobs.forget(self.catalog.drop_source(user.org_id, data_source_id))
            else:
                self.catalog.drop_documents(user.org_id, data_source_id, doomed)
            self.forget_answers()
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
        user = user_of(options, RetrieveOptions)
        request = retrieval_input(query, options)
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
        *_, result = without_waiting(self._run(question, options, at_once, stream=False))
        return _result(result)

    def stream(self, question: str, **options: Unpack[AskOptions]) -> Iterator[str | RagResult]:
        """Answer as `ask` does, yielding the pieces of the answer as they come and last the result.

        In strict mode an answer is shown only after it is verified: the result comes without pieces before
        it.
        """
        return without_waiting(self._run(question, options, at_once, stream=True))

    async def aask(self, question: str, **options: Unpack[AskOptions]) -> RagResult:
        """Answer as `ask` does, without blocking the event loop while a model writes."""
        *_, result = [item async for item in self._run(question, options, awaited, stream=False)]
        return _result(result)

    def astream(self, question: str, **options: Unpack[AskOptions]) -> AsyncIterator[str | RagResult]:
        """Answer as `stream` does, without blocking the event loop while a model writes."""
        return self._run(question, options, awaited, stream=True)

    def forget_answers(self) -> None:
        """Forget the answers that are remembered for when a model fails."""
        self._answers.clear()

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

    def _run(self, question: str, options: AskOptions, told: Told, *, stream: bool) -> AsyncGenerator[str | RagResult]:
        user_of(options, AskOptions)
        ask = to_ask(question, options, self._accessible(options), self._conversations)
        return self._traced(question, ask, told, stream=stream)

    async def _traced(self, question: str, ask: Ask, told: Told, *, stream: bool) -> AsyncGenerator[str | RagResult]:
        result: RagResult | None = None
        with tracing.session(
            question,
            top_k=ask.request.top_k,
            embedding_model=self.embedder.name if self.embedder else "",
            namespace=self._namespace,
            pipeline_name=self._pipeline_name,
            conversation_id=ask.request.conversation_id,
        ) as session:
            started = _clock.monotonic_ns()
            async with aclosing(self._flow.run(ask, session, told, stream=stream)) as items:
                async for item in items:
                    if isinstance(item, RagResult):
                        result = _ended(item, session.session_id, (_clock.monotonic_ns() - started) / 1e6)
                    else:
                        yield item
        # Behind the session's end, which the caller may wait for.
        if result is not None:
            yield result

    def _accessible(self, options: RetrieveOptions) -> tuple[str, ...]:
        user = options.get("user", LOCAL_USER)
        return accessible(user, self.catalog.sources(user.org_id), options.get("data_sources"))

    def _writable_source(self, data_source_id: str, user: User) -> None:
        wanted = DataSource(data_source_id=data_source_id, org_id=user.org_id, owner_id=user.user_id)
        if not may_change(user, self.catalog.ensure_source(wanted)):
            raise PermissionDenied

    def _ingestor(
        self,
        org_id: str,
        data_source_id: str,
        may_go_on: Callable[[], bool],
        *,
        chunk_size: int,
        chunk_overlap: int,
        folders: Sequence[str] = (),
    ) -> Ingestor:
        return Ingestor(
            index=self.index,
            catalog=self.catalog,
            chunker=Chunker(self._counter, chunk_size, chunk_overlap),
            embedder=self.embedder,
            org_id=org_id,
            data_source_id=data_source_id,
            lock=Turn(self.writing, may_go_on),
            limits=self._limits,
            quota=self._quota,
            folders=folders,
        )


def _ended(result: RagResult, session_id: str, spent_ms: float) -> RagResult:
    """Ask for a person where one is to be asked, and return the result with its session and what it took."""
    tracing.escalate_where_due(
        session_id,
        grounding_score=result.grounding_score,
        nothing_found=result.status is RagStatus.NO_INFORMATION,
        withheld=result.failure == NotGrounded.code,
        latency_ms=spent_ms,
    )
    return result.model_copy(
        update={"session_id": session_id, "latencies_ms": {**result.latencies_ms, "total": spent_ms}}
    )


def _result(item: str | RagResult) -> RagResult:
    if not isinstance(item, RagResult):
        raise TypeError("a run ends with its result")
    return item
