"""One attempt at a question: the stages up to the prompt, and the stages after the answer, each traced.

What stands between them, the answer itself, comes whole or in pieces, at once or awaited; `flow` does that
part.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from spanforge import _clock
from spanforge.reference import tracing
from spanforge.reference.answering import Answerer
from spanforge.reference.answering.base import is_refusal
from spanforge.reference.asking import grounding_checks as checks
from spanforge.reference.asking.assembly import assemble, frame_tokens
from spanforge.reference.asking.grounding_checks import Grounder
from spanforge.reference.asking.results import answered, refusal
from spanforge.reference.asking.selection import SelectionSettings, select
from spanforge.reference.failures import GenerationFailed, GroundingFailed, NoResults, NotGrounded, RerankFailed
from spanforge.reference.grounding import AnswerGrounding
from spanforge.reference.models import (
    AnsweringInput,
    AnsweringOutput,
    AssemblyInput,
    AssemblyOutput,
    GroundingInput,
    GroundingOutput,
    QuestionInput,
    RagResult,
    RetrievedDocument,
)
from spanforge.reference.retrieving.retriever import Retriever, Searched
from spanforge.reference.retrieving.understanding import ProcessedQuery
from spanforge.reference.tokens import TokenCounter
from spanforge.sdk import sf_rag
from spanforge.sdk.scopes import GenerationScope, SessionScope


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run works with."""

    retriever: Retriever
    answerer: Answerer
    counter: TokenCounter
    selection: SelectionSettings
    grounder: Grounder


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked, and how."""

    request: QuestionInput
    query: ProcessedQuery
    org_id: str
    sources: tuple[str, ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prompt that is ready, and what was judged of its context; no judgement where the check failed."""

    assembled: AssemblyOutput
    before: GroundingOutput | None


@dataclass(slots=True)
class Run:
    """The state of one attempt.

    Attributes:
        key: What was asked, of which documents, as it began.
    """

    parts: Parts
    ask: Ask
    session: SessionScope
    key: Hashable = None
    latencies_ms: dict[str, float] = field(default_factory=dict[str, float])
    warnings: list[str] = field(default_factory=list[str])
    _verdict: AnswerGrounding | None = field(default=None, init=False)

    def prepare(self) -> Prepared:
        """Go through the stages up to the prompt.

        Raises:
            NoResults: Nothing relevant was found.
            InsufficientContext: Strict mode, and the passages do not answer.
            RagFailure: A stage failed.
        """
        documents = self._rerank(self._search())
        with self.timed("context_assembly"):
            assembled = self._assemble(documents)
        with self.timed("grounding"):
            return self._check_context(assembled)

    def answering_input(self, prepared: Prepared, *, stream: bool) -> AnsweringInput:
        """Return what the answerer is given."""
        return AnsweringInput(
            query=self.ask.query.expanded_query,
            prompt=prepared.assembled.prompt,
            grounded_docs=prepared.assembled.documents,
            citations=prepared.assembled.citations,
            model=self.ask.request.model,
            temperature=self.ask.request.temperature,
            stream=stream,
        )

    def generation(self) -> GenerationScope:
        """Open the traced block in which the answer is made and verified."""
        answerer = self.parts.answerer
        return self.session.generation(self.ask.request.model or answerer.model, provider=answerer.provider)

    def conclude(self, span: GenerationScope, output: AnsweringOutput | None, prepared: Prepared) -> RagResult:
        """Verify the answer, report it on its block, and make the result.

        Raises:
            GenerationFailed: There is no output.
            GroundingFailed: Strict mode, and the grounder failed.
        """
        if output is None:
            raise GenerationFailed("The answerer ended its stream without the whole answer.")
        documents = prepared.assembled.documents
        verdict = self._verify(output, documents)
        span.record(
            latency_ms=self.latencies_ms["answering"],
            chunk_ids_used=[document.chunk_id for document in documents],
            context_tokens=sum(document.tokens for document in documents),
            prompt_tokens=output.prompt_tokens or prepared.assembled.token_count,
            output_tokens=output.output_tokens or self.parts.counter.count(output.answer),
            grounding_score=verdict.score if verdict is not None else None,
            finish_reason=output.finish_reason,
        )
        self._verdict = verdict
        gaps = prepared.before.gaps if prepared.before else ()
        if is_refusal(output.answer):
            return refusal(None, gaps=gaps, warnings=self.warnings, documents=documents)
        if self.ask.request.strict_mode and not _holds(verdict):
            return refusal(NotGrounded(), gaps=gaps, warnings=self.warnings, documents=documents)
        question = self.ask.query.expanded_query
        return answered(
            output,
            documents,
            verdict,
            question=question,
            gaps=gaps,
            warnings=self.warnings,
        )

    def report_check(self, prepared: Prepared) -> None:
        """Report the check of the answer, if there was one; its place is after the block that reports the answer."""
        verdict = self._verdict
        if verdict is not None:
            sf_rag.trace_evaluation(
                evaluator=tracing.EVALUATOR_NAME,
                groundedness=verdict.score,
                context_relevance=prepared.before.grounding_score if prepared.before else None,
                claims_total=verdict.claims_total,
                claims_supported=verdict.claims_supported,
                latency_ms=self.latencies_ms["verification"],
            )

    @contextmanager
    def timed(self, stage: str) -> Generator[None]:
        """Add the block's wall-clock time to a stage's latency."""
        started = _clock.monotonic_ns()
        try:
            yield
        finally:
            spent = (_clock.monotonic_ns() - started) / 1e6
            self.latencies_ms[stage] = self.latencies_ms.get(stage, 0.0) + spent

    def _search(self) -> Searched:
        retriever, ask = self.parts.retriever, self.ask
        if retriever.embedder is None:
            self.warnings.append("LEXICAL_ONLY")
        searched: Searched | None = None
        nothing: NoResults | None = None
        with self.timed("retrieval"), self.session.retrieval() as span:
            documents: list[RetrievedDocument] = []
            try:
                searched = retriever.search(ask.request, ask.query, org_id=ask.org_id, sources=ask.sources)
                documents = retriever.rank(searched, ask.query, rerank=False, top_k=ask.request.top_k)
            except NoResults as failure:
                nothing = failure  # an outcome of the stage, not an error of it
            span.record(
                tracing.hits_of(documents),
                total_found=len(searched.candidates) if searched else 0,
                ranking_method=retriever.ranking_method,
                retrieval_strategy="single_pass",
            )
        if searched is None:
            raise nothing or NoResults()
        return searched

    def _rerank(self, searched: Searched) -> list[RetrievedDocument]:
        retriever, ask = self.parts.retriever, self.ask
        if not ask.request.rerank:
            return retriever.rank(searched, ask.query, rerank=False, top_k=ask.request.top_k)
        with self.timed("rerank"), self.session.rerank(retriever.reranker.name) as span:
            status = "ok"
            try:
                documents = retriever.rank(searched, ask.query, rerank=True, top_k=ask.request.top_k)
            except RerankFailed as failure:
                self.warnings.append(failure.code)
                status = "partial"
                documents = retriever.rank(searched, ask.query, rerank=False, top_k=ask.request.top_k)
            span.record(
                tracing.hits_of(documents),
                input_count=len(searched.candidates),
                output_count=len(documents),
                status=status,
            )
        return documents

    def _assemble(self, documents: list[RetrievedDocument]) -> AssemblyOutput:
        ask, counter = self.ask, self.parts.counter
        frame = frame_tokens(ask.query.expanded_query, ask.request.template, counter)
        settings = replace(self.parts.selection, max_tokens=max(1, ask.request.max_tokens - frame))
        return assemble(self._assembly(select(documents, settings, now=ask.now)), counter)

    def _check_context(self, assembled: AssemblyOutput) -> Prepared:
        request = GroundingInput(
            query=self.ask.query.expanded_query,
            documents=assembled.documents,
            prompt=assembled.prompt,
            strict_mode=self.ask.request.strict_mode,
        )
        try:
            before = checks.check_context(request, self.parts.grounder)
        except GroundingFailed as failure:
            if self.ask.request.strict_mode:
                raise
            self.warnings.append(failure.code)
            return Prepared(assembled, None)
        if 0 < len(before.relevant_docs) < len(assembled.documents):
            assembled = assemble(self._assembly(before.relevant_docs), self.parts.counter)
        return Prepared(assembled, before)

    def _verify(self, output: AnsweringOutput, documents: list[RetrievedDocument]) -> AnswerGrounding | None:
        if is_refusal(output.answer):
            return None
        with self.timed("verification"):
            try:
                question = self.ask.query.expanded_query
                return checks.check_answer(output.answer, documents, question, self.parts.grounder)
            except GroundingFailed as failure:
                if self.ask.request.strict_mode:
                    raise
                self.warnings.append(failure.code)
                return None

    def _assembly(self, documents: list[RetrievedDocument]) -> AssemblyInput:
        return AssemblyInput(
            query=self.ask.query.expanded_query,
            documents=documents,
            max_tokens=self.ask.request.max_tokens,
            template=self.ask.request.template,
        )


def _holds(verdict: AnswerGrounding | None) -> bool:
    return verdict is not None and (verdict.score or 0.0) >= checks.GROUNDED_AT
