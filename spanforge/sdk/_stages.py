"""The stages of a run, as trace calls: what each takes, and how it becomes a payload.

What was not said is None in a payload, and absent from the event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanforge._text import Note
from spanforge.namespaces.stages import ESCALATED, EVALUATED, GENERATED, RERANKED, RETRIEVED
from spanforge.sdk import _coerce as coerce
from spanforge.sdk._base import SFServiceClient, new_session_id
from spanforge.sdk._chunks import Chunks, read_chunks
from spanforge.sdk._context import current_session, found_session
from spanforge.sdk._keywords import Hits
from spanforge.sdk._never_raises import never_raises
from spanforge.sdk._runtime import Runtime
from spanforge.sdk._unsaid import COUNT, TIME, TOP_K

__all__ = ["StageCalls", "nothing", "own_session_id", "session_of"]

_RETRIEVAL_STATUS: Final = frozenset({"ok", "partial", "error", "timeout"})
_GENERATION_STATUS: Final = frozenset({"ok", "error", "timeout", "cancelled"})
_STRATEGIES: Final = frozenset({"single_pass", "multi_pass", "iterative", "exhaustive"})
_RANKINGS: Final = frozenset({"cosine", "bm25", "hybrid", "rrf"})
_TRIGGERS: Final = frozenset({"grounding", "rating", "no_documents", "latency", "manual", "custom"})
_STAGE_BYTES: Final = 1_300
_ID_BYTES: Final = 110
_BYTES_PER_CHARACTER: Final = 4
_EMPTY: Final[dict[str, Any]] = {}
_MAX_REASONS: Final = 16


def own_session_id(client: SFServiceClient, /, *_args: Any, session_id: Any = None, **_kwargs: Any) -> str:
    """What `trace_query` returns when all else failed: the caller's id, or a new one, so that its next call works."""
    return coerce.identifier(session_id) or new_session_id(client)


def nothing(*_args: Any, **_kwargs: Any) -> Any:
    """What a call that returns nothing returns when all else failed."""
    return None


class StageCalls(SFServiceClient):
    """The trace calls of a client: one for each stage."""

    @never_raises(own_session_id, last="")
    def trace_query(
        self,
        query: str,
        *,
        session_id: str | None = None,
        top_k: int = TOP_K,
        retriever_name: str = "",
        embedding_model: str = "",
        namespace: str = "",
        latency_ms: float = TIME,
        filters: Mapping[str, object] | None = None,
        embedding_dimensions: int | None = None,
        pipeline_name: str = "",
        embedding_provider: str | None = None,
        conversation_id: str | None = None,
        once: bool = False,
    ) -> str:
        """Record a query and open its session.

        Args:
            query: The question; only its SHA-256 digest is kept.
            session_id: Joins an open session, or names the new one. Without it the session of the scope is meant;
                outside of any, a new one, whose id is a ULID. One that has ended begins a new run, which the same id
                stands for from then on.
            top_k: Chunks asked for, at least 1; without it 5, marked as assumed.
            retriever_name: Vector store or retriever.
            embedding_model: Model that embeds the query.
            namespace: Index, collection or namespace in the store.
            latency_ms: Time spent on the query itself, in milliseconds; absent where it was not measured.
            filters: Metadata filters; string values become type and digest.
            embedding_dimensions: Length of the query vector.
            pipeline_name: Name of the whole pipeline.
            embedding_provider: Who serves the embedding model.
            conversation_id: The conversation that this run is a turn of, kept as given; a session id of your own
                names it without one.
            once: Record nothing where the open session has this query among its latest 16, as whatever traces for
                others does, for the application may have recorded it.

        Returns:
            The session id, for the calls that follow.
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return coerce.identifier(session_id) or runtime.new_session_id()
        return self._query(
            runtime,
            runtime.cleaner.hasher.digest(query if type(query) is str else coerce.query_text(query, runtime.note)),
            session_id if session_id is not None else current_session.get(),
            top_k,
            retriever_name,
            embedding_model,
            namespace,
            latency_ms,
            filters,
            embedding_dimensions,
            pipeline_name,
            embedding_provider,
            conversation_id,
            once,
        )

    def _query(  # noqa: PLR0917  by position, because it is on every traced call's path
        self,
        runtime: Runtime,
        query_hash: str,
        session_id: Any = None,
        top_k: Any = TOP_K,
        retriever_name: Any = "",
        embedding_model: Any = "",
        namespace: Any = "",
        latency_ms: Any = TIME,
        filters: Any = None,
        embedding_dimensions: Any = None,
        pipeline_name: Any = "",
        embedding_provider: Any = None,
        conversation_id: Any = None,
        once: Any = False,
    ) -> str:
        note = runtime.note
        own_id = coerce.session_id(session_id, note)
        if runtime.settings.disabled:
            return own_id or runtime.new_session_id()
        wanted = 0 if top_k is TOP_K else coerce.count(top_k, "top_k", note, minimum=1)
        payload: dict[str, Any] = {
            "session_id": "",
            "query_hash": query_hash,
            "top_k": wanted or int(TOP_K),
            "retriever_name": coerce.name(retriever_name, "retriever_name", note),
            "embedding_model": coerce.name(embedding_model, "embedding_model", note),
            "namespace": coerce.name(namespace, "namespace", note),
            "filters": _EMPTY if filters is None else runtime.cleaner.mapping(filters, note),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
            "pipeline_name": coerce.name(pipeline_name, "pipeline_name", note) or None,
            "assumed": None if wanted else ("top_k",),
        }
        if runtime.cleaner.hasher.key_id:
            payload["query_hash_alg"] = runtime.cleaner.hasher.algorithm
            payload["query_hash_key_id"] = runtime.cleaner.hasher.key_id
        if not (embedding_dimensions is embedding_provider is None):
            payload |= {
                "embedding_dimensions": coerce.count(embedding_dimensions, "embedding_dimensions", note, minimum=1),
                "embedding_provider": coerce.name(embedding_provider, "embedding_provider", note) or None,
            }
        conversation = None if conversation_id is None else coerce.session_id(conversation_id, note)
        size = _STAGE_BYTES + _values(payload["filters"])
        return runtime.query(own_id, payload, size, conversation or "", once=once is True)

    @never_raises(nothing)
    def trace_retrieval(
        self,
        session_id: str | None = None,
        chunks: Hits = (),
        *,
        total_found: int | None = None,
        latency_ms: float = TIME,
        query_hash: str = "",
        status: str = "ok",
        error_message: str | BaseException | None = None,
        retrieval_strategy: str | None = None,
        ranking_method: str | None = None,
        budget_exhausted: bool | None = None,
        ceiling_reached: str | None = None,
        metric: str = "",
    ) -> None:
        """Record what a retriever returned.

        Args:
            session_id: From `trace_query`; may be left out inside a scope, then what follows is given by keyword.
            chunks: Hits as the store gives them: its response, dicts, `(document, score)` pairs, documents of
                LangChain, LlamaIndex or Haystack. Their text is hashed and dropped. The answer to several queries at
                once is recorded as a retrieval for each; the latency belongs to the first.
            total_found: Matches before the cut at top_k; without it what the store counted, or the number of chunks.
            latency_ms: Retrieval time in milliseconds; absent where it was not measured.
            query_hash: Digest of the query; the session's latest without it.
            status: `ok`, `partial`, `error` or `timeout`.
            error_message: An exception (its class is kept), a failure code, or text (type and digest are kept).
            retrieval_strategy: `single_pass`, `multi_pass`, `iterative` or `exhaustive`.
            ranking_method: `cosine`, `bm25`, `hybrid` or `rrf`.
            budget_exhausted: The search stopped at a budget.
            ceiling_reached: Which budget, as "token budget of 8192 exhausted after 47 chunks": numbers and words of
                that kind are kept, and any other description is left out.
            metric: What the store's numbers are: `cosine`, `ip`, `dot`, `bm25`, `l2`, `cosine_distance`, `<=>` …, or
                just `similarity` or `distance`. Without it the order of the hits tells, which come best first.
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return
        note = runtime.note
        payload: dict[str, Any] = {
            "session_id": "",
            "query_hash": runtime.cleaner.digest(query_hash),
            "status": coerce.choice(status, "status", _RETRIEVAL_STATUS, note, otherwise="error"),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
        }
        # Of what most callers leave out, one look at all of it is cheaper than one at each.
        if not (error_message is retrieval_strategy is ranking_method is budget_exhausted is ceiling_reached is None):
            payload |= {
                "error_message": _error(error_message, runtime),
                "retrieval_strategy": _word(retrieval_strategy, "retrieval_strategy", _STRATEGIES, note),
                "ranking_method": _word(ranking_method, "ranking_method", _RANKINGS, note),
                "budget_exhausted": coerce.flag(budget_exhausted),
                "ceiling_reached": coerce.ceiling(ceiling_reached, "ceiling_reached", note),
            }
        total = coerce.count(total_found, "total_found", note)
        metric = coerce.metric(metric, note)
        for found in read_chunks(chunks, runtime.cleaner, note, runtime.settings.max_chunk_ids, metric):
            # A store that counts its matches otherwise than we do found at least what it returned.
            one = {**payload, **_chunks_of(found, payload), "total_found": max(total or found.total, found.given)}
            runtime.stage(RETRIEVED, session_of(session_id, runtime), one, _STAGE_BYTES + found.size)
            payload["latency_ms"] = None

    @never_raises(nothing)
    def trace_rerank(
        self,
        session_id: str | None = None,
        model: str = "",
        *,
        chunks: Hits = (),
        input_count: int | None = None,
        output_count: int | None = None,
        latency_ms: float = TIME,
        status: str = "ok",
        error_message: str | BaseException | None = None,
    ) -> None:
        """Record a rerank.

        Args:
            session_id: From `trace_query`; may be left out inside a scope.
            model: Reranking model.
            chunks: The new order, best first, as for `trace_retrieval`.
            input_count: Chunks before; absent without it.
            output_count: Chunks after; the number of `chunks` without it, where there are any.
            latency_ms: Time in milliseconds; absent where it was not measured.
            status: `ok`, `partial`, `error` or `timeout`.
            error_message: As for `trace_retrieval`.
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return
        note = runtime.note
        payload: dict[str, Any] = {
            "session_id": "",
            "model": _model(model, runtime),
            "status": coerce.choice(status, "status", _RETRIEVAL_STATUS, note, otherwise="error"),
            "error_message": _error(error_message, runtime),
            "input_count": coerce.count(input_count, "input_count", note),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
        }
        after = coerce.count(output_count, "output_count", note)
        for found in read_chunks(chunks, runtime.cleaner, note, runtime.settings.max_chunk_ids):
            kept = (found.given or None) if output_count is None else after
            one = {**payload, **_chunks_of(found, payload), "output_count": kept}
            runtime.stage(RERANKED, session_of(session_id, runtime), one, _STAGE_BYTES + found.size)
            payload["latency_ms"] = None

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
            "model": _model(model, runtime),
            "chunk_ids_used": used,
            "status": coerce.choice(status, "status", _GENERATION_STATUS, note, otherwise="error"),
            "context_tokens": coerce.count(context_tokens, "context_tokens", note),
            "prompt_tokens": coerce.count(prompt_tokens, "prompt_tokens", note),
            "output_tokens": coerce.count(output_tokens, "output_tokens", note),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
            "grounding_score": coerce.score(grounding_score, "grounding_score", note),
        }
        # Of what most callers leave out, one look at all of a kind is cheaper than one at each.
        if not (error_message is provider is finish_reason is finish_reasons is response_id is response_model is None):
            payload |= {
                "error_message": _error(error_message, runtime),
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
        size = _STAGE_BYTES + _ID_BYTES * len(used)
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
        runtime.stage(EVALUATED, session_of(session_id, runtime), payload, _STAGE_BYTES)

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
        runtime.stage(ESCALATED, session_of(session_id, runtime), payload, _STAGE_BYTES)


def session_of(given: object, runtime: Runtime) -> str | None:
    """Return the session a call is about: the one given, else the one of the scope."""
    if given is None:
        own = found_session()
        if own is None:
            runtime.note("session_id_missing")
        return own
    return coerce.session_id(given, runtime.note)


def _chunks_of(found: Chunks, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a payload that its chunks fill."""
    fields: dict[str, Any] = {"chunks": found.payloads}
    if found.is_partial and payload["status"] == "ok":
        fields["status"] = "partial"
    if found.rule:
        fields["score_rule"] = found.rule
    return fields


def _model(given: object, runtime: Runtime) -> str:
    model = coerce.name(given, "model", runtime.note)
    if not model:
        runtime.note("model_missing")
    return model or "unknown"


def _error(given: object, runtime: Runtime) -> str | None:
    return None if given is None else runtime.cleaner.error(given)


def _word(given: object, field: str, allowed: frozenset[str], note: Note) -> str | None:
    """Return one of the allowed words; None, noted, for any other."""
    return None if given is None else coerce.choice(given, field, allowed, note, otherwise="") or None


def _values(filters: dict[str, Any]) -> int:
    return _BYTES_PER_CHARACTER * len(str(filters)) if filters else 0
