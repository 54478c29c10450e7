"""One question on its way through the stages, each traced.

A run owns what happens between a question and its result: the order of the stages, what is timed, what is
reported, and which failures end in an honest refusal instead of an exception.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from spanforge import _clock
from spanforge.reference import checks, tracing
from spanforge.reference.answering import is_refusal, used_citations
from spanforge.reference.answering.base import strip_citations
from spanforge.reference.assembly import REFUSAL, assemble, frame_tokens
from spanforge.reference.confidence import confidence
from spanforge.reference.failures import (
    GroundingFailed,
    InsufficientContext,
    NoResults,
    NotGrounded,
    RagFailure,
    RerankFailed,
)
from spanforge.reference.models import (
    AnsweringInput,
    AssemblyInput,
    GroundingInput,
    RagResult,
    RagStatus,
    RetrievalInput,
)
from spanforge.reference.selection import select

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from spanforge.reference.answering import Answerer
    from spanforge.reference.checks import Grounder
    from spanforge.reference.grounding import AnswerGrounding
    from spanforge.reference.models import AnsweringOutput, AssemblyOutput, GroundingOutput, RetrievedDocument
    from spanforge.reference.retrieval import Retriever
    from spanforge.reference.selection import SelectionSettings
    from spanforge.reference.tokens import TokenCounter
    from spanforge.reference.understanding import ProcessedQuery


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

    request: RetrievalInput
    query: ProcessedQuery
    org_id: str
    sources: tuple[str, ...]
    strict: bool
    max_tokens: int
    template: str | None
    model: str | None
    temperature: float
    now: datetime


@dataclass(slots=True)
class Run:
    """The state of one run."""

    parts: Parts
    ask: Ask
    latencies_ms: dict[str, float] = field(default_factory=dict[str, float])
    warnings: list[str] = field(default_factory=list[str])

    def execute(self, session: Any) -> RagResult:
        """Go through the stages inside an open session.

        Raises:
            RagFailure: A stage failed for good; what the documents merely do not answer is a refusal, not a
            failure.
        """
        try:
            documents = self.retrieve(session)
            assembled = self.assemble(documents)
            assembled, before = self.check_context(assembled)
        except (NoResults, InsufficientContext) as failure:
            return self._refusal(failure)
        return self.answer(session, assembled, before)

    # --- stages ---

    def retrieve(self, session: Any) -> list[RetrievedDocument]:
        """Search, then rerank; both traced."""
        retriever, ask = self.parts.retriever, self.ask
        nothing: NoResults | None = None
        if retriever.embedder is None:
            self.warnings.append("LEXICAL_ONLY")
        with self._timed("retrieval"), session.retrieval() as span:
            try:
                searched = retriever.search(ask.request, ask.query, org_id=ask.org_id, sources=ask.sources)
                documents = retriever.rank(searched, ask.query, rerank=False, top_k=ask.request.top_k)
            except NoResults as failure:
                nothing, documents = failure, []
                searched = None
            span.record(
                tracing.hits_of(documents),
                total_found=len(searched.candidates) if searched else 0,
                ranking_method=self._ranking_method(),
                retrieval_strategy="single_pass",
            )
        if searched is None:
            raise nothing or NoResults()
        if not ask.request.rerank:
            return documents
        with self._timed("rerank"), session.rerank(retriever.reranker.name) as span:
            status = "ok"
            try:
                documents = retriever.rank(searched, ask.query, rerank=True, top_k=ask.request.top_k)
            except RerankFailed as failure:
                self.warnings.append(failure.code)
                status = "partial"
            span.record(
                tracing.hits_of(documents),
                input_count=len(searched.candidates),
                output_count=len(documents),
                status=status,
            )
        return documents

    def assemble(self, documents: list[RetrievedDocument]) -> AssemblyOutput:
        """Choose the context and build the prompt."""
        ask, counter = self.ask, self.parts.counter
        with self._timed("context_assembly"):
            frame = frame_tokens(ask.query.original_query, ask.template, counter)
            settings = replace(self.parts.selection, max_tokens=max(1, ask.max_tokens - frame))
            chosen = select(documents, settings, now=ask.now)
            return assemble(self._assembly(chosen), counter)

    def check_context(self, assembled: AssemblyOutput) -> tuple[AssemblyOutput, GroundingOutput | None]:
        """Judge the context; passages that do not bear on the question leave the prompt."""
        ask = self.ask
        with self._timed("grounding"):
            request = GroundingInput(
                query=ask.query.original_query,
                documents=assembled.documents,
                prompt=assembled.prompt,
                strict_mode=ask.strict,
            )
            try:
                before = checks.check_context(request, self.parts.grounder)
            except GroundingFailed as failure:
                if ask.strict:
                    raise
                self.warnings.append(failure.code)
                return assembled, None
            if 0 < len(before.relevant_docs) < len(assembled.documents):
                assembled = assemble(self._assembly(before.relevant_docs), self.parts.counter)
            return assembled, before

    def answer(self, session: Any, assembled: AssemblyOutput, before: GroundingOutput | None) -> RagResult:
        """Write the answer, verify it, and make the result."""
        answerer = self.parts.answerer
        request = self.answering_input(assembled)
        with session.generation(self.ask.model or answerer.model, provider=answerer.provider) as span:
            with self._timed("answering"):
                output = answerer.answer(request)
            after, failed = self._verify(output, assembled)
            span.record(
                chunk_ids_used=[document.chunk_id for document in assembled.documents],
                context_tokens=sum(document.tokens for document in assembled.documents),
                prompt_tokens=output.prompt_tokens or assembled.token_count,
                output_tokens=output.output_tokens or self.parts.counter.count(output.answer),
                grounding_score=after.score if after is not None else None,
                finish_reason=output.finish_reason,
            )
        if after is not None:
            tracing.evaluation(
                grounding_score=after.score,
                context_relevance=before.grounding_score if before else None,
                claims_total=after.claims_total,
                claims_supported=after.claims_supported,
                latency_ms=self.latencies_ms.get("verification", 0.0),
            )
        return self._result(output, assembled, before, after, failed=failed)

    def answering_input(self, assembled: AssemblyOutput) -> AnsweringInput:
        """Return the answerer's input for an assembled context."""
        ask = self.ask
        return AnsweringInput(
            query=ask.query.original_query,
            prompt=assembled.prompt,
            grounded_docs=assembled.documents,
            citations=assembled.citations,
            model=ask.model,
            temperature=ask.temperature,
        )

    # --- results ---

    def _verify(
        self, output: AnsweringOutput, assembled: AssemblyOutput
    ) -> tuple[AnswerGrounding | None, bool]:
        if is_refusal(output.answer):
            return None, False
        with self._timed("verification"):
            try:
                plain = strip_citations(output.answer)
                return checks.check_answer(
                    plain, assembled.documents, self.ask.query.original_query, self.parts.grounder
                ), False
            except GroundingFailed as failure:
                if self.ask.strict:
                    raise
                self.warnings.append(failure.code)
                return None, True

    def _result(
        self,
        output: AnsweringOutput,
        assembled: AssemblyOutput,
        before: GroundingOutput | None,
        after: AnswerGrounding | None,
        *,
        failed: bool,
    ) -> RagResult:
        gaps = before.gaps if before else []
        if is_refusal(output.answer):
            return self._refusal(None, gaps, assembled.documents)
        score = after.score if after is not None else None
        if self.ask.strict and score is not None and score < checks.GROUNDED_AT:
            return self._refusal(NotGrounded(), gaps, assembled.documents)
        used = used_citations(output.answer, assembled.citations)
        status = RagStatus.UNVERIFIED if failed or score is None else status_of(score)
        if status is RagStatus.NOT_GROUNDED:
            self.warnings.append(NotGrounded.code)
        if not used:
            self.warnings.append("CONTEXT_IGNORED")
        return RagResult(
            answer=output.answer,
            citations_used=used,
            sources=list(dict.fromkeys(citation.source for citation in used)),
            confidence=self._confidence(assembled.documents, score),
            grounding_score=score,
            status=status,
            claims_total=after.claims_total if after else 0,
            claims_supported=after.claims_supported if after else 0,
            ungrounded_claims=[v.claim for v in after.verdicts if v.verdict != "supported"] if after else [],
            gaps=gaps,
            warnings=[*self.warnings, *output.warnings],
            documents=assembled.documents,
            latencies_ms=dict(self.latencies_ms),
        )

    def _refusal(
        self,
        failure: RagFailure | None,
        gaps: list[str] | None = None,
        documents: list[RetrievedDocument] | None = None,
    ) -> RagResult:
        return RagResult(
            answer=REFUSAL,
            citations_used=[],
            sources=[],
            confidence=0.0,
            grounding_score=None,
            status=RagStatus.NO_INFORMATION,
            gaps=gaps or [],
            warnings=list(self.warnings),
            failure=failure.code if failure else None,
            documents=documents or [],
            latencies_ms=dict(self.latencies_ms),
        )

    def _confidence(self, documents: list[RetrievedDocument], grounding_score: float | None) -> float:
        best = max((document.relevance for document in documents), default=0.0)
        scores = sorted((document.score for document in documents), reverse=True)
        margin = scores[0] - scores[1] if len(scores) > 1 else 0.0
        return confidence(best, grounding_score, margin)

    def _assembly(self, documents: list[RetrievedDocument]) -> AssemblyInput:
        ask = self.ask
        return AssemblyInput(
            query=ask.query.original_query,
            documents=documents,
            max_tokens=ask.max_tokens,
            template=ask.template,
        )

    def _ranking_method(self) -> str:
        retriever = self.parts.retriever
        if retriever.settings.fusion == "rrf":
            return "rrf"
        return "hybrid" if retriever.embedder is not None else "bm25"

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = _clock.monotonic_ns()
        try:
            yield
        finally:
            spent = (_clock.monotonic_ns() - started) / 1e6
            self.latencies_ms[stage] = self.latencies_ms.get(stage, 0.0) + spent


def status_of(score: float) -> RagStatus:
    """Return the status that a grounding score stands for."""
    if score >= checks.GROUNDED_AT:
        return RagStatus.GROUNDED
    return RagStatus.PARTIALLY_GROUNDED if score >= checks.ESCALATE_BELOW else RagStatus.NOT_GROUNDED
