"""A question from start to result: one attempt or two, whole or in pieces, with the recoveries in between.

It is written once, as it is awaited; `without_waiting` goes through it in the caller's thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from spanforge.reference.answering import Answerer
from spanforge.reference.asking import recovery
from spanforge.reference.asking.attempt import Ask, Parts, Prepared, Run
from spanforge.reference.asking.recovery import AnswerCache, RecoverySettings
from spanforge.reference.asking.results import refusal
from spanforge.reference.failures import GenerationFailed, IndexUnavailable, InsufficientContext, NoResults, RagFailure
from spanforge.reference.models import AnsweringInput, AnsweringOutput, RagResult, RagStatus
from spanforge.reference.tracing import ESCALATE_BELOW
from spanforge.sdk.scopes import SessionScope

T = TypeVar("T")
Told: TypeAlias = Callable[[Answerer, AnsweringInput], AsyncGenerator[str | AnsweringOutput]]
"""How an answerer is listened to: gives the pieces of the answer where a stream is asked for, then the whole."""


async def awaited(answerer: Answerer, request: AnsweringInput) -> AsyncGenerator[str | AnsweringOutput]:
    """Listen without blocking the event loop."""
    if request.stream:
        async for item in answerer.astream(request):
            yield item
    else:
        yield await answerer.aanswer(request)


async def at_once(answerer: Answerer, request: AnsweringInput) -> AsyncGenerator[str | AnsweringOutput]:
    """Listen in the caller's thread: nothing is awaited, so that `without_waiting` can go through it."""
    for item in answerer.stream(request) if request.stream else (answerer.answer(request),):
        yield item


def without_waiting(items: AsyncGenerator[T]) -> Iterator[T]:
    """Yield what an asynchronous generator gives that awaits nothing, in the caller's thread."""
    try:
        while (step := _step(items)) is not None:
            yield step.value
    finally:
        with suppress(StopIteration):
            items.aclose().send(None)


def _step(items: AsyncGenerator[Any]) -> StopIteration | None:
    """Return what holds the next item, None behind the last."""
    try:
        items.__anext__().send(None)
    except StopIteration as step:
        return step
    except StopAsyncIteration:
        return None
    raise RuntimeError("something waits for the event loop where there may be none")


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

    async def run(
        self, ask: Ask, session: SessionScope, told: Told, *, stream: bool = False
    ) -> AsyncGenerator[str | RagResult]:
        """Yield the pieces of the answer where ``stream`` asks for them, then the result.

        In strict mode an answer may still be refused after it is written, so its pieces are kept back until
        then.

        Args:
            ask: What is asked.
            session: The open session.
            told: `at_once`, with which nothing here is ever waited for, or `awaited`.
            stream: Whether pieces are wanted.

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
                    async with aclosing(told(self.parts.answerer, request)) as items:
                        async for item in items:
                            if isinstance(item, AnsweringOutput):
                                output = item
                            else:
                                span.first_token()
                                if not ask.request.strict_mode:
                                    yield item
                result = attempt.conclude(span, output, prepared)
            attempt.report_check(prepared)
        except GenerationFailed:
            result = self._cached(ask, instead_of_failure=True)
            if result is None:
                raise
        again = self._again(ask, result, stream=stream)
        if again is not None:
            async for item in self.run(again, session, told):
                result = _better(result, item)
        yield self._end(ask, attempt, result)

    def _begin(self, ask: Ask, session: SessionScope) -> tuple[Run, Prepared | RagResult]:
        """Prepare an attempt, or end with what can be said without one."""
        attempt = Run(self.parts, ask, session, self._key(ask))
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
        return self.settings.direct_answer and not ask.request.strict_mode and self.parts.answerer.generative

    def _direct(self, attempt: Run, failure: RagFailure) -> RagResult:
        """Let the model answer by itself, and say so in every way there is."""
        query = attempt.ask.query.original_query
        request = AnsweringInput(
            query=query,
            prompt=query,
            grounded_docs=[],
            citations=[],
            model=attempt.ask.request.model,
            temperature=attempt.ask.request.temperature,
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
        if ask.request.temperature <= self.settings.regenerate_temperature:
            return None
        top_k, temperature = min(1000, ask.request.top_k * self.settings.widen), self.settings.regenerate_temperature
        return replace(ask, request=ask.request.model_copy(update={"top_k": top_k, "temperature": temperature}))

    def _end(self, ask: Ask, attempt: Run, result: RagResult) -> RagResult:
        result = _timed(result, attempt)
        # Made from documents of which some may be gone since, an answer is nobody's any more.
        if self.settings.cached_answers != "never" and self._key(ask) == attempt.key:
            self.cache.put(attempt.key, result)
        return result

    def _key(self, ask: Ask) -> Hashable:
        request = ask.request
        return (
            " ".join(ask.query.original_query.split()).casefold(),
            ask.org_id,
            ask.sources,
            self.parts.retriever.index.version,
            tuple(condition.model_dump_json() for condition in request.filters),
            (request.top_k, request.rerank, request.strict_mode, request.max_tokens, request.template, request.model),
        )


def _better(first: RagResult, second: str | RagResult) -> RagResult:
    if not isinstance(second, RagResult) or (second.grounding_score or 0.0) <= (first.grounding_score or 0.0):
        return first
    return second.model_copy(update={"recovery": recovery.REGENERATED})


def _timed(result: RagResult, attempt: Run) -> RagResult:
    return result.model_copy(update={"latencies_ms": dict(attempt.latencies_ms)})
