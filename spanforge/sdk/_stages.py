"""The stages of a run, as trace calls: what each takes, and how it becomes a payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from spanforge.sdk import _coerce as coerce
from spanforge.sdk._base import SFServiceClient, never_raises, new_session_id
from spanforge.sdk._chunks import read_chunks
from spanforge.sdk._context import current_session
from spanforge.sdk._runtime import Runtime

__all__ = ["StageCalls", "nothing", "own_session_id", "session_of"]

_RETRIEVAL_STATUS: Final = frozenset({"ok", "partial", "error", "timeout"})
_GENERATION_STATUS: Final = frozenset({"ok", "error", "timeout"})
_STRATEGIES: Final = frozenset({"single_pass", "multi_pass", "iterative", "exhaustive"})
_RANKINGS: Final = frozenset({"cosine", "bm25", "hybrid", "rrf"})
_TRIGGERS: Final = frozenset({"grounding", "rating", "no_documents", "latency", "manual", "custom"})
_STAGE_BYTES: Final = 1_300
_ID_BYTES: Final = 110
_BYTES_PER_CHARACTER: Final = 4
_EMPTY: Final[dict[str, Any]] = {}


def own_session_id(client: SFServiceClient, /, *_args: Any, session_id: Any = None, **_kwargs: Any) -> str:
    """What `trace_query` returns when all else failed: the caller's id, or a new one, so that its next call works."""
    return coerce.identifier(session_id) or new_session_id(client)


def nothing(*_args: Any, **_kwargs: Any) -> None:
    """What a call that returns nothing returns when all else failed."""
    return


class StageCalls(SFServiceClient):
    """The trace calls of a client: one for each stage."""

    @never_raises(own_session_id)
    def trace_query(
        self,
        query: str,
        *,
        session_id: str | None = None,
        top_k: int = 5,
        retriever_name: str = "",
        embedding_model: str = "",
        namespace: str = "",
        latency_ms: float = 0.0,
        filters: Mapping[str, Any] | None = None,
        embedding_dimensions: int | None = None,
        pipeline_name: str = "",
    ) -> str:
        """Record a query and open its session.

        Args:
            query: The question; only its SHA-256 digest is kept.
            session_id: Joins an open session, or names the new one. Without it the session of the scope is meant;
                outside of any, a new one, whose id is a ULID.
            top_k: Chunks asked for, at least 1.
            retriever_name: Vector store or retriever.
            embedding_model: Model that embeds the query.
            namespace: Index, collection or namespace in the store.
            latency_ms: Time spent on the query itself, in milliseconds.
            filters: Metadata filters; string values become type and digest.
            embedding_dimensions: Length of the query vector.
            pipeline_name: Name of the whole pipeline.

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
        )

    def _query(  # noqa: PLR0917  by position, because it is on every traced call's path
        self,
        runtime: Runtime,
        query_hash: str,
        session_id: Any = None,
        top_k: Any = 5,
        retriever_name: Any = "",
        embedding_model: Any = "",
        namespace: Any = "",
        latency_ms: Any = 0.0,
        filters: Any = None,
        embedding_dimensions: Any = None,
        pipeline_name: Any = "",
    ) -> str:
        note = runtime.note
        own_id = coerce.session_id(session_id, note)
        if runtime.settings.disabled:
            return own_id or runtime.new_session_id()
        payload: dict[str, Any] = {
            "session_id": "",
            "query_hash": query_hash,
            "top_k": coerce.count(top_k, "top_k", note, default=5, minimum=1),
            "retriever_name": coerce.name(retriever_name, "retriever_name", note),
            "embedding_model": coerce.name(embedding_model, "embedding_model", note),
            "namespace": coerce.name(namespace, "namespace", note),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
            "filters": _EMPTY if filters is None else runtime.cleaner.mapping(filters, note),
        }
        if runtime.cleaner.hasher.key_id:
            payload["query_hash_alg"] = runtime.cleaner.hasher.algorithm
            payload["query_hash_key_id"] = runtime.cleaner.hasher.key_id
        if embedding_dimensions is not None and (
            dimensions := coerce.count(embedding_dimensions, "embedding_dimensions", note, minimum=1)
        ):
            payload["embedding_dimensions"] = dimensions
        if label := coerce.name(pipeline_name, "pipeline_name", note):
            payload["pipeline_name"] = label
        return runtime.query(own_id, payload, _STAGE_BYTES + _values(payload["filters"]))

    @never_raises(nothing)
    def trace_retrieval(
        self,
        session_id: str | None = None,
        chunks: Iterable[Any] | Mapping[str, Any] | None = (),
        *,
        total_found: int | None = None,
        latency_ms: float = 0.0,
        query_hash: str = "",
        status: str = "ok",
        error_message: str | BaseException | None = None,
        retrieval_strategy: str | None = None,
        ranking_method: str | None = None,
        budget_exhausted: bool | None = None,
        ceiling_reached: str | None = None,
    ) -> None:
        """Record what a retriever returned.

        Args:
            session_id: From `trace_query`; may be left out inside a scope, then what follows is given by keyword.
            chunks: Hits as the store gives them: dicts, `(document, score)` pairs, documents of LangChain, LlamaIndex
                or Haystack. Their text is hashed and dropped.
            total_found: Matches before the cut at top_k; the number of chunks without it.
            latency_ms: Retrieval time in milliseconds.
            query_hash: Digest of the query; the session's latest without it.
            status: `ok`, `partial`, `error` or `timeout`.
            error_message: An exception (its class is kept), a failure code, or text (type and digest are kept).
            retrieval_strategy: `single_pass`, `multi_pass`, `iterative` or `exhaustive`.
            ranking_method: `cosine`, `bm25`, `hybrid` or `rrf`.
            budget_exhausted: The search stopped at a budget.
            ceiling_reached: Which budget, in words (type and digest are kept).
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return
        note = runtime.note
        found = read_chunks(chunks, runtime.cleaner, note, runtime.settings.max_chunk_ids)
        payload: dict[str, Any] = {
            "session_id": "",
            "query_hash": runtime.cleaner.digest(query_hash),
            "chunks": found.payloads,
            "total_found": coerce.count(total_found, "total_found", note, default=found.given),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
            "status": coerce.choice(status, "status", _RETRIEVAL_STATUS, note, otherwise="error"),
        }
        if error_message is not None:
            payload["error_message"] = runtime.cleaner.error(error_message)
        if retrieval_strategy is not None:
            _optional_choice(payload, "retrieval_strategy", retrieval_strategy, _STRATEGIES, runtime)
        if ranking_method is not None:
            _optional_choice(payload, "ranking_method", ranking_method, _RANKINGS, runtime)
        if budget_exhausted is not None:
            payload["budget_exhausted"] = coerce.flag(budget_exhausted)
        if ceiling_reached is not None:
            payload["ceiling_reached"] = runtime.cleaner.error(ceiling_reached)
        if found.rule:
            payload["score_rule"] = found.rule
        runtime.stage("llm.rag.retrieved", session_of(session_id, runtime), payload, _STAGE_BYTES + found.size)

    @never_raises(nothing)
    def trace_rerank(
        self,
        session_id: str | None = None,
        model: str = "",
        *,
        chunks: Iterable[Any] | Mapping[str, Any] | None = (),
        input_count: int | None = None,
        output_count: int | None = None,
        latency_ms: float = 0.0,
        status: str = "ok",
        error_message: str | BaseException | None = None,
    ) -> None:
        """Record a rerank.

        Args:
            session_id: From `trace_query`; may be left out inside a scope.
            model: Reranking model.
            chunks: The new order, best first, as for `trace_retrieval`.
            input_count: Chunks before; the number of `chunks` without it.
            output_count: Chunks after; the number of `chunks` without it.
            latency_ms: Time in milliseconds.
            status: `ok`, `partial`, `error` or `timeout`.
            error_message: As for `trace_retrieval`.
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return
        note = runtime.note
        found = read_chunks(chunks, runtime.cleaner, note, runtime.settings.max_chunk_ids)
        payload: dict[str, Any] = {
            "session_id": "",
            "model": _model(model, runtime),
            "input_count": coerce.count(input_count, "input_count", note, default=found.given),
            "output_count": coerce.count(output_count, "output_count", note, default=found.given),
            "chunks": found.payloads,
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
            "status": coerce.choice(status, "status", _RETRIEVAL_STATUS, note, otherwise="error"),
        }
        if error_message is not None:
            payload["error_message"] = runtime.cleaner.error(error_message)
        if found.rule:
            payload["score_rule"] = found.rule
        runtime.stage("llm.rag.reranked", session_of(session_id, runtime), payload, _STAGE_BYTES + found.size)

    @never_raises(nothing)
    def trace_generation(
        self,
        session_id: str | None = None,
        model: str = "",
        *,
        span_name: str = "rag-generation",
        chunk_ids_used: Sequence[str] | None = None,
        context_tokens: int = 0,
        prompt_tokens: int = 0,
        output_tokens: int = 0,
        latency_ms: float = 0.0,
        status: str = "ok",
        grounding_score: float | None = None,
        error_message: str | BaseException | None = None,
        provider: str | None = None,
        finish_reason: str | None = None,
        time_to_first_token_ms: float | None = None,
    ) -> None:
        """Record a generation.

        Args:
            session_id: From `trace_query`; may be left out inside a scope, then what follows is given by keyword.
            model: Model identifier.
            span_name: Label of this step.
            chunk_ids_used: Chunks in the context window.
            context_tokens: Tokens of retrieved context.
            prompt_tokens: Tokens of the whole prompt.
            output_tokens: Tokens of the answer.
            latency_ms: Time in milliseconds.
            status: `ok`, `error` or `timeout`.
            grounding_score: Share of the answer the context supports, in [0, 1].
            error_message: As for `trace_retrieval`.
            provider: Who serves the model.
            finish_reason: Why the model stopped.
            time_to_first_token_ms: For streams, in milliseconds.
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
            "context_tokens": coerce.count(context_tokens, "context_tokens", note),
            "prompt_tokens": coerce.count(prompt_tokens, "prompt_tokens", note),
            "output_tokens": coerce.count(output_tokens, "output_tokens", note),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
            "status": coerce.choice(status, "status", _GENERATION_STATUS, note, otherwise="error"),
        }
        if (
            grounding_score is not None
            and (score := coerce.score(grounding_score, "grounding_score", note)) is not None
        ):
            payload["grounding_score"] = score
        if error_message is not None:
            payload["error_message"] = runtime.cleaner.error(error_message)
        if provider is not None:
            payload["provider"] = coerce.name(provider, "provider", note)
        if finish_reason is not None:
            payload["finish_reason"] = coerce.name(finish_reason, "finish_reason", note)
        if time_to_first_token_ms is not None:
            payload["time_to_first_token_ms"] = coerce.milliseconds(
                time_to_first_token_ms, "time_to_first_token_ms", note
            )
        size = _STAGE_BYTES + _ID_BYTES * len(used)
        runtime.stage("llm.rag.generated", session_of(session_id, runtime), payload, size)

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
        latency_ms: float = 0.0,
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
            latency_ms: Time in milliseconds.
        """
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return
        note = runtime.note
        payload: dict[str, Any] = {"session_id": "", "evaluator": coerce.name(evaluator, "evaluator", note)}
        measures = {
            "context_relevance": context_relevance,
            "answer_relevance": answer_relevance,
            "faithfulness": faithfulness,
            "groundedness": groundedness,
        }
        for name, value in measures.items():
            if (score := coerce.score(value, name, note)) is not None:
                payload[name] = score
        for name, value in {"claims_total": claims_total, "claims_supported": claims_supported}.items():
            if value is not None:
                payload[name] = coerce.count(value, name, note)
        payload["latency_ms"] = coerce.milliseconds(latency_ms, "latency_ms", note)
        runtime.stage("llm.rag.evaluated", session_of(session_id, runtime), payload, _STAGE_BYTES)

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
        }
        for name, given in {"value": value, "threshold": threshold}.items():
            if (number := coerce.number(given, name, note)) is not None:
                payload[name] = number
        runtime.stage("llm.rag.escalated", session_of(session_id, runtime), payload, _STAGE_BYTES)


def session_of(given: object, runtime: Runtime) -> str | None:
    """Return the session a call is about: the one given, else the one of the scope."""
    if given is None:
        own = current_session.get()
        if own is None:
            runtime.note("session_id_missing")
        return own
    return coerce.session_id(given, runtime.note)


def _model(given: object, runtime: Runtime) -> str:
    model = coerce.name(given, "model", runtime.note)
    if not model:
        runtime.note("model_missing")
    return model or "unknown"


def _optional_choice(payload: dict[str, Any], name: str, given: Any, allowed: frozenset[str], runtime: Runtime) -> None:
    chosen = coerce.choice(given, name, allowed, runtime.note, otherwise="")
    if chosen:
        payload[name] = chosen


def _values(filters: dict[str, Any]) -> int:
    return _BYTES_PER_CHARACTER * len(str(filters)) if filters else 0
