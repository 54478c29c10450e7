"""The keywords of calls that pass them on, so that a type checker finds one that is misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from spanforge.config import SecretStr
from spanforge.sinks.base import Sink

__all__ = ["GenerationDetails", "Hits", "QueryDetails", "RerankDetails", "RetrievalDetails", "SettingsDetails"]

Hits: TypeAlias = Iterable[object] | Mapping[str, object] | None
"""What a store or a framework found, in any shape it hands over."""


class QueryDetails(TypedDict, total=False):
    """Keywords of `trace_query`."""

    session_id: str | None
    top_k: int
    retriever_name: str
    embedding_model: str
    namespace: str
    latency_ms: float
    filters: Mapping[str, object] | None
    embedding_dimensions: int | None
    pipeline_name: str
    embedding_provider: str | None
    conversation_id: str | None
    once: bool


class RetrievalDetails(TypedDict, total=False):
    """Keywords of `trace_retrieval`, but for the session and the chunks."""

    total_found: int | None
    latency_ms: float
    query_hash: str
    status: str
    error_message: str | BaseException | None
    retrieval_strategy: str | None
    ranking_method: str | None
    budget_exhausted: bool | None
    ceiling_reached: str | None
    metric: str


class RerankDetails(TypedDict, total=False):
    """Keywords of `trace_rerank`, but for the session, the model and the chunks."""

    input_count: int | None
    output_count: int | None
    latency_ms: float
    status: str
    error_message: str | BaseException | None


class GenerationDetails(TypedDict, total=False):
    """Keywords of `trace_generation`, but for the session and the model."""

    span_name: str
    chunk_ids_used: Sequence[str] | None
    context_tokens: int
    prompt_tokens: int
    output_tokens: int
    latency_ms: float
    status: str
    grounding_score: float | None
    error_message: str | BaseException | None
    provider: str | None
    finish_reason: str | None
    time_to_first_token_ms: float | None
    response_id: str | None
    response_model: str | None
    finish_reasons: Sequence[str] | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    temperature: float | None
    stream: bool | None
    cost_usd: float | None
    cost_basis: str | None


class SettingsDetails(TypedDict, total=False):
    """Keywords of `configure`: the fields of `spanforge.config.Settings`, in the forms they may be given in."""

    sinks: str | Sink | Sequence[str | Sink]
    disabled: bool
    sandbox: bool
    delivery: Literal["thread", "sync"]
    source: str
    org_id: str
    team_id: str
    project_id: str
    hash_key: str | SecretStr | None
    signing_key: str | SecretStr | None
    capture_messages: bool
    metadata_allow: str | Iterable[str]
    sample_rate: float
    keep_grounding_below: float
    max_sessions: int
    retained_sessions: int
    session_idle_s: float
    max_chunk_ids: int
    max_open_chunk_ids: int
    queue_events: int
    queue_bytes: int
    batch_events: int
    batch_delay_s: float
    max_attempts: int
    backoff_s: float
    max_backoff_s: float
    exit_timeout_s: float
    handle_sigterm: bool
    strict: bool
