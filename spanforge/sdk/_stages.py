"""The trace calls of a run, of which those from the answer on are here: what each takes, and how it becomes a payload.

What was not said is None in a payload, and absent from the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from spanforge.namespaces.stages import ESCALATED, EVALUATED, GENERATED
from spanforge.sdk import _coerce as coerce
from spanforge.sdk._never_raises import never_raises
from spanforge.sdk._retrieval_calls import RetrievalCalls
from spanforge.sdk._stage_inputs import STAGE_BYTES, error_of, model_of, nothing, session_of
from spanforge.sdk._unsaid import COUNT, TIME

__all__ = ["StageCalls"]

_STATUS: Final = frozenset({"ok", "error", "timeout", "cancelled"})
_TRIGGERS: Final = frozenset({"grounding", "rating", "no_documents", "latency", "manual", "custom"})
_ID_BYTES: Final = 110
_MAX_REASONS: Final = 16


class StageCalls(RetrievalCalls):
    """The trace calls of a client: one for each stage."""

    @never_raises(nothing)
    def trace_generation(
        self,
        session_id: str | None = None,
        model: str = "",
        *,
        span_name: str = "rag-generation",
        chunk_ids_used: Sequence[str] | None = None,
        context_tokens: int = COUNT,
        prompt_tokens: int = COUNT,
        output_tokens: int = COUNT,
        latency_ms: float = TIME,
        status: str = "ok",
        grounding_score: float | None = None,
        error_message: str | BaseException | None = None,
        provider: str | None = None,
        finish_reason: str | None = None,
        time_to_first_token_ms: float | None = None,
        response_id: str | None = None,
        response_model: str | None = None,
        finish_reasons: Sequence[str] | None = None,
        cached_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        temperature: float | None = None,
        stream: bool | None = None,
        cost_usd: float | None = None,
        cost_basis: str | None = None,
    ) -> None:
        """Record a generation. What is not given is absent from the event and from every export, and is not zero.

        Args:
            session_id: From `trace_query`; may be left out inside a scope, then what follows is given by keyword.
            model: Model identifier.
            span_name: Label of this step.
            chunk_ids_used: Chunks in the context window.
            context_tokens: Tokens of retrieved context.
            prompt_tokens: Tokens of the whole prompt.
            output_tokens: Tokens of the answer.
            latency_ms: Time in milliseconds.
            status: `ok`, `error`, `timeout` or `cancelled`; the last is no error.
            grounding_score: Share of the answer the context supports, in [0, 1].
            error_message: As for `trace_retrieval`.
            provider: Who serves the model.
            finish_reason: Why the model stopped.
            time_to_first_token_ms: For streams, in milliseconds.
            response_id: The provider's id of the answer, kept as given.
            response_model: Model that answered, where it is not the one that was asked.
            finish_reasons: Why the model stopped, one for each choice, where there are several.
            cached_tokens: Of the prompt's tokens, those read from the provider's cache.
            cache_write_tokens: Of the prompt's tokens, those written to it.
            reasoning_tokens: Of the answer's tokens, those the model thought with.
            temperature: Sampling temperature.
            stream: Whether the answer came as a stream; known without it where a time to the first token is.
            cost_usd: What the call cost, in US dollars.
            cost_basis: How that was estimated, as `spanforge.integrations.prices` says; leave it out for a real cost.
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return
        note = runtime.note
        used = coerce.id_list(chunk_ids_used, "chunk_ids_used", runtime.settings.max_chunk_ids, note)
        payload: dict[str, Any] = {
            "session_id": "",
            "span_name": coerce.name(span_name, "span_name", note),
            "model": model_of(model, runtime),
            "chunk_ids_used": used,
            "status": coerce.choice(status, "status", _STATUS, note, otherwise="error"),
            "context_tokens": coerce.count(context_tokens, "context_tokens", note),
            "prompt_tokens": coerce.count(prompt_tokens, "prompt_tokens", note),
            "output_tokens": coerce.count(output_tokens, "output_tokens", note),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
            "grounding_score": coerce.score(grounding_score, "grounding_score", note),
        }
        # Of what most callers leave out, one look at all of a kind is cheaper than one at each.
        if not (error_message is provider is finish_reason is finish_reasons is response_id is response_model is None):
            payload |= {
                "error_message": error_of(error_message, runtime),
                "provider": coerce.name(provider, "provider", note) or None,
                "finish_reason": coerce.name(finish_reason, "finish_reason", note) or None,
                "finish_reasons": None
                if finish_reasons is None
                else coerce.id_list(finish_reasons, "finish_reasons", _MAX_REASONS, note),
                "response_id": coerce.name(response_id, "response_id", note) or None,
                "response_model": coerce.name(response_model, "response_model", note) or None,
            }
        if not (time_to_first_token_ms is cached_tokens is cache_write_tokens is reasoning_tokens is stream is None):
            payload |= {
                "time_to_first_token_ms": coerce.milliseconds(time_to_first_token_ms, "time_to_first_token_ms", note),
                "cached_tokens": coerce.count(cached_tokens, "cached_tokens", note),
                "cache_write_tokens": coerce.count(cache_write_tokens, "cache_write_tokens", note),
                "reasoning_tokens": coerce.count(reasoning_tokens, "reasoning_tokens", note),
                "stream": coerce.flag(stream),
            }
        if not (temperature is cost_usd is cost_basis is None):
            payload |= {
                "temperature": coerce.number(temperature, "temperature", note),
                "cost_usd": coerce.amount(cost_usd, "cost_usd", note),
                "cost_basis": coerce.name(cost_basis, "cost_basis", note) or None,
            }
        size = STAGE_BYTES + _ID_BYTES * len(used)
        runtime.stage(GENERATED, session_of(session_id, runtime), payload, size)

    @never_raises(nothing)
    def trace_evaluation(
        self,
        session_id: str | None = None,
        *,
        evaluator: str = "",
        context_relevance: float | None = None,
        answer_relevance: float | None = None,
        faithfulness: float | None = None,
        groundedness: float | None = None,
        claims_total: int | None = None,
        claims_supported: int | None = None,
        latency_ms: float = TIME,
        span_name: str | None = None,
    ) -> None:
        """Record a judgement of the run; each measure is in [0, 1], and absent where it was not made.

        Args:
            session_id: From `trace_query`; may be left out inside a scope.
            evaluator: Who or what judged.
            context_relevance: Relevance of the context to the question.
            answer_relevance: Relevance of the answer to the question.
            faithfulness: Faithfulness of the answer to the context.
            groundedness: Grounding of the answer in the sources.
            claims_total: Claims found in the answer.
            claims_supported: Claims the context supports.
            latency_ms: Time in milliseconds; absent where it was not measured.
            span_name: Label of the generation that was judged; without it, the last that succeeded.
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return
        note = runtime.note
        payload: dict[str, Any] = {
            "session_id": "",
            "evaluator": coerce.name(evaluator, "evaluator", note),
            "context_relevance": coerce.score(context_relevance, "context_relevance", note),
            "answer_relevance": coerce.score(answer_relevance, "answer_relevance", note),
            "faithfulness": coerce.score(faithfulness, "faithfulness", note),
            "groundedness": coerce.score(groundedness, "groundedness", note),
            "claims_total": coerce.count(claims_total, "claims_total", note),
            "claims_supported": coerce.count(claims_supported, "claims_supported", note),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
            "span_name": coerce.name(span_name, "span_name", note) or None,
        }
        runtime.stage(EVALUATED, session_of(session_id, runtime), payload, STAGE_BYTES)

    @never_raises(nothing)
    def escalate(
        self,
        session_id: str | None = None,
        rule: str = "",
        *,
        trigger: str = "custom",
        level: int = 1,
        value: float | None = None,
        threshold: float | None = None,
    ) -> None:
        """Record that a rule or a person asks for a human. It is sent whatever the sample rate, with its session.

        Args:
            session_id: From `trace_query`; may be left out inside a scope.
            rule: Name of the rule.
            trigger: `grounding`, `rating`, `no_documents`, `latency`, `manual` or `custom`.
            level: 1 tuning, 2 infrastructure, 3 strategy.
            value: What was measured.
            threshold: The limit it crossed.
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return
        note = runtime.note
        wanted = coerce.count(level, "level", note, default=1, minimum=1)
        payload: dict[str, Any] = {
            "session_id": "",
            "rule": coerce.name(rule, "rule", note) or "unnamed",
            "trigger": coerce.choice(trigger, "trigger", _TRIGGERS, note, otherwise="custom"),
            "level": min(wanted, 3),
            "value": coerce.number(value, "value", note),
            "threshold": coerce.number(threshold, "threshold", note),
        }
        runtime.stage(ESCALATED, session_of(session_id, runtime), payload, STAGE_BYTES)
