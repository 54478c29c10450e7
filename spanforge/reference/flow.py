"""A question from start to result: one attempt or two, whole or in pieces, with the recoveries in between.

The synchronous and the awaited form differ only in how they wait for the answerer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spanforge.reference import recovery
from spanforge.reference.checks import ESCALATE_BELOW
from spanforge.reference.failures import GenerationFailed, IndexUnavailable, InsufficientContext, NoResults
from spanforge.reference.models import AnsweringInput, AnsweringOutput, RagResult, RagStatus
from spanforge.reference.results import refusal
from spanforge.reference.run import Run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable, Iterator

    from spanforge.reference.failures import RagFailure
    from spanforge.reference.recovery import AnswerCache, RecoverySettings
    from spanforge.reference.run import Ask, Parts, Prepared
    from spanforge.sdk.scopes import GenerationScope, SessionScope


@dataclass(slots=True)
class Flow:
    """One question inside one open session.

    Args:
        parts: What runs work with.
        settings: Which recoveries are in use.
        cache: Earlier answers.
    """

    parts: Parts
    settings: RecoverySettings
    cache: AnswerCache

    def run(self, ask: Ask, session: SessionScope, *, stream: bool = False) -> Iterator[str | RagResult]:
        """Yield the pieces of the answer where ``stream`` asks for them, then the result.

        In strict mode an answer may still be refused after it is written, so its pieces are kept back until
        then.

        Raises:
            RagFailure: A stage failed and no recovery applied.
        """
        attempt, prepared = self._begin(ask, session)
        if isinstance(prepared, RagResult):
            yield prepared
            return
        result: RagResult | None = None
        try:
            with attempt.generation() as span:
                output: AnsweringOutput | None = None
                request = attempt.answering_input(prepared, stream=stream)
                with attempt.timed("answering"):
                    if stream:
                        for item in self.parts.answerer.stream(request):
                            if isinstance(item, AnsweringOutput):
                                output = item
                            else:
                                span.first_token()
                                if not ask.strict:
                                    yield item
                    else:
                        output = self.parts.answerer.answer(request)
                result = _conclude(attempt, span, output, prepared)
            attempt.report_check(prepared)
        except GenerationFailed:
            result = self._cached(ask, instead_of_failure=True)
            if result is None:
                raise
        again = self._again(ask, result, stream=stream)
        if again is not None:
            *_, second = self.run(again, session)
            result = _better(result, second)
        yield self._end(ask, attempt, result)

    async def arun(self, ask: Ask, session: SessionScope, *, stream: bool = False) -> AsyncIterator[str | RagResult]:
        """Do as `run` does, without blocking the event loop while the model writes."""
        attempt, prepared = self._begin(ask, session)
        if isinstance(prepared, RagResult):
            yield prepared
            return
        result: RagResult | None = None
        try:
            async with attempt.generation() as span:
                output: AnsweringOutput | None = None
                request = attempt.answering_input(prepared, stream=stream)
                with attempt.timed("answering"):
                    if stream:
                        async for item in self.parts.answerer.astream(request):
                            if isinstance(item, AnsweringOutput):
                                output = item
                            else:
                                span.first_token()
                                if not ask.strict:
                                    yield item
                    else:
                        output = await self.parts.answerer.aanswer(request)
                result = _conclude(attempt, span, output, prepared)
            attempt.report_check(prepared)
        except GenerationFailed:
            result = self._cached(ask, instead_of_failure=True)
            if result is None:
                raise
        again = self._again(ask, result, stream=stream)
        if again is not None:
            async for item in self.arun(again, session):
                if isinstance(item, RagResult):
                    result = _better(result, item)
        yield self._end(ask, attempt, result)

    def _begin(self, ask: Ask, session: SessionScope) -> tuple[Run, Prepared | RagResult]:
        """Prepare an attempt, or end with what can be said without one."""
        attempt = Run(self.parts, ask, session)
        remembered = self._cached(ask, instead_of_failure=False)
        if remembered is not None:
            return attempt, remembered
        failure: RagFailure
        try:
            return attempt, attempt.prepare()
        except (NoResults, InsufficientContext) as error:
            failure = error
        except IndexUnavailable as error:
            if not self._direct_allowed(ask):
                raise
            failure = error
        if self._direct_allowed(ask):
            return attempt, self._direct(attempt, failure)
        return attempt, _timed(refusal(failure, warnings=attempt.warnings), attempt)

    def _direct_allowed(self, ask: Ask) -> bool:
        return self.settings.direct_answer and not ask.strict and self.parts.answerer.generative

    def _direct(self, attempt: Run, failure: RagFailure) -> RagResult:
        """Let the model answer by itself, and say so in every way there is."""
        query = attempt.ask.query.original_query
        request = AnsweringInput(
            query=query,
            prompt=query,
            grounded_docs=[],
            citations=[],
            model=attempt.ask.model,
            temperature=attempt.ask.temperature,
        )
        with attempt.generation() as span:
            with attempt.timed("answering"):
                output = self.parts.answerer.answer(request)
            span.record(
                prompt_tokens=output.prompt_tokens,
                output_tokens=output.output_tokens,
                finish_reason=output.finish_reason,
            )
        result = RagResult(
            answer=output.answer,
            citations_used=[],
            sources=[],
            confidence=0.0,
            grounding_score=None,
            status=RagStatus.NOT_GROUNDED,
            warnings=[*attempt.warnings, recovery.UNGROUNDED_WARNING],
            failure=failure.code,
            recovery=recovery.DIRECT_ANSWER,
        )
        return _timed(result, attempt)

    def _cached(self, ask: Ask, *, instead_of_failure: bool) -> RagResult | None:
        mode = self.settings.cached_answers
        if mode == "never" or (mode == "on_failure" and not instead_of_failure):
            return None
        return self.cache.get(self._key(ask))

    def _again(self, ask: Ask, result: RagResult, *, stream: bool) -> Ask | None:
        """Return the second attempt that a poorly grounded answer calls for.

        What was streamed has been read: there is no second attempt behind it.
        """
        score = result.grounding_score
        due = score is not None and score < ESCALATE_BELOW and result.recovery is None
        if not due or stream or not self.settings.regenerate or not self.parts.answerer.generative:
            return None
        if ask.temperature <= self.settings.regenerate_temperature:
            return None
        wider = ask.request.model_copy(update={"top_k": min(1000, ask.request.top_k * self.settings.widen)})
        return replace(ask, request=wider, temperature=self.settings.regenerate_temperature)

    def _end(self, ask: Ask, attempt: Run, result: RagResult) -> RagResult:
        result = _timed(result, attempt)
        if self.settings.cached_answers != "never":
            self.cache.put(self._key(ask), result)
        return result

    def _key(self, ask: Ask) -> Hashable:
        request = ask.request
        return (
            " ".join(ask.query.original_query.split()).casefold(),
            ask.org_id,
            ask.sources,
            self.parts.retriever.index.version,
            tuple(condition.model_dump_json() for condition in request.filters),
            (request.top_k, request.rerank, ask.strict, ask.max_tokens, ask.template, ask.model),
        )


def _conclude(attempt: Run, span: GenerationScope, output: AnsweringOutput | None, prepared: Prepared) -> RagResult:
    if output is None:
        raise GenerationFailed("The answerer ended its stream without the whole answer.")
    return attempt.conclude(span, output, prepared)


def _better(first: RagResult, second: str | RagResult) -> RagResult:
    if not isinstance(second, RagResult) or (second.grounding_score or 0.0) <= (first.grounding_score or 0.0):
        return first
    return second.model_copy(update={"recovery": recovery.REGENERATED})


def _timed(result: RagResult, attempt: Run) -> RagResult:
    return result.model_copy(update={"latencies_ms": dict(attempt.latencies_ms)})
