"""The trace calls up to the answer, query, retrieval and rerank: what each takes, and how it becomes a payload.

What was not said is None in a payload, and absent from the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanforge.namespaces.stages import RERANKED, RETRIEVED
from spanforge.sdk import _coerce as coerce
from spanforge.sdk._base import SFServiceClient
from spanforge.sdk._chunks import Chunks, read_chunks
from spanforge.sdk._context import current_session
from spanforge.sdk._keywords import Hits
from spanforge.sdk._never_raises import never_raises
from spanforge.sdk._runtime import Runtime
from spanforge.sdk._stage_inputs import STAGE_BYTES, error_of, model_of, nothing, own_session_id, session_of, word_of
from spanforge.sdk._unsaid import TIME, TOP_K

__all__ = ["RetrievalCalls"]

_STATUS: Final = frozenset({"ok", "partial", "error", "timeout"})
_STRATEGIES: Final = frozenset({"single_pass", "multi_pass", "iterative", "exhaustive"})
_RANKINGS: Final = frozenset({"cosine", "bm25", "hybrid", "rrf"})
_BYTES_PER_CHARACTER: Final = 4
_EMPTY: Final[dict[str, Any]] = {}


class RetrievalCalls(SFServiceClient):
    """What finds the passages, as trace calls of a client."""

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
        size = STAGE_BYTES + _values(payload["filters"])
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
            "status": coerce.choice(status, "status", _STATUS, note, otherwise="error"),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
        }
        # Of what most callers leave out, one look at all of it is cheaper than one at each.
        if not (error_message is retrieval_strategy is ranking_method is budget_exhausted is ceiling_reached is None):
            payload |= {
                "error_message": error_of(error_message, runtime),
                "retrieval_strategy": word_of(retrieval_strategy, "retrieval_strategy", _STRATEGIES, note),
                "ranking_method": word_of(ranking_method, "ranking_method", _RANKINGS, note),
                "budget_exhausted": coerce.flag(budget_exhausted),
                "ceiling_reached": coerce.ceiling(ceiling_reached, "ceiling_reached", note),
            }
        total = coerce.count(total_found, "total_found", note)
        metric = coerce.metric(metric, note)
        for found in read_chunks(chunks, runtime.cleaner, note, runtime.settings.max_chunk_ids, metric):
            # A store that counts its matches otherwise than we do found at least what it returned.
            one = {**payload, **_chunks_of(found, payload), "total_found": max(total or found.total, found.given)}
            runtime.stage(RETRIEVED, session_of(session_id, runtime), one, STAGE_BYTES + found.size)
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
            "model": model_of(model, runtime),
            "status": coerce.choice(status, "status", _STATUS, note, otherwise="error"),
            "error_message": error_of(error_message, runtime),
            "input_count": coerce.count(input_count, "input_count", note),
            "latency_ms": coerce.milliseconds(latency_ms, "latency_ms", note),
        }
        after = coerce.count(output_count, "output_count", note)
        for found in read_chunks(chunks, runtime.cleaner, note, runtime.settings.max_chunk_ids):
            kept = (found.given or None) if output_count is None else after
            one = {**payload, **_chunks_of(found, payload), "output_count": kept}
            runtime.stage(RERANKED, session_of(session_id, runtime), one, STAGE_BYTES + found.size)
            payload["latency_ms"] = None


def _chunks_of(found: Chunks, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a payload that its chunks fill."""
    fields: dict[str, Any] = {"chunks": found.payloads}
    if found.is_partial and payload["status"] == "ok":
        fields["status"] = "partial"
    if found.rule:
        fields["score_rule"] = found.rule
    return fields


def _values(filters: dict[str, Any]) -> int:
    return _BYTES_PER_CHARACTER * len(str(filters)) if filters else 0
