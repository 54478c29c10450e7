"""Payloads of the `llm.rag.*` events (ADR-006, and the extra events of adr/0006).

Digests stand where text would: `query_hash` and `content_hash` are SHA-256, or HMAC-SHA-256 where a key is set.
What was not measured is absent: None here, left out in JSON, and never zero.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from spanforge.namespaces.payload import (
    Amount,
    Cost,
    Count,
    Finite,
    Level,
    Milliseconds,
    NonEmpty,
    Payload,
    Positive,
    Score,
    Sum,
    payload,
)

__all__ = [
    "SEVERITY",
    "SUMMARY_ONLY",
    "EscalationPayload",
    "RAGEvaluationPayload",
    "RAGSessionPayload",
    "RAGSpanPayload",
    "RerankPayload",
    "RetrievalQueryPayload",
    "RetrievalResultPayload",
    "RetrievedChunk",
]

RetrievalStatus = Literal["ok", "partial", "error", "timeout"]
GenerationStatus = Literal["ok", "error", "timeout", "cancelled"]
SessionStatus = Literal["ok", "partial", "error"]
RetrievalStrategy = Literal["single_pass", "multi_pass", "iterative", "exhaustive"]
RankingMethod = Literal["cosine", "bm25", "hybrid", "rrf"]
EscalationTrigger = Literal["grounding", "rating", "no_documents", "latency", "manual", "custom"]
EndReason = Literal["ended", "idle_timeout", "evicted", "process_exit"]

SEVERITY: Final = {"ok": 0, "partial": 1, "cancelled": 1, "error": 2, "timeout": 2}
"""How bad a stage's status is: the worst is the session's, and 2 counts as an error."""
SUMMARY_ONLY: Final = ("duration_ms", "started_at", "ended_at", "end_reason", "conversation_id")
"""Fields of `RAGSessionPayload` that no stage tells: they stand in the session's own event, or nowhere."""


@payload
class RetrievedChunk(Payload):
    """One chunk a retriever returned.

    Attributes:
        chunk_id: Identifier in the document store, kept as given.
        content_hash: Digest of the chunk's text, or empty.
        score: Relevance in [0, 1]; absent where the store gave none, or its number could not be told from a distance.
        source: Where the chunk comes from (file, URL, key), kept as given.
        metadata: JSON-safe values; free text as type and digest.
        raw_score: The store's own number, where that is not the score.
        rank: Position in the result, from 1.
    """

    chunk_id: NonEmpty
    content_hash: str = ""
    score: Score | None = None
    source: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    raw_score: Finite | None = None
    rank: Positive | None = None


@payload
class RetrievalQueryPayload(Payload):
    """`llm.rag.query`: a question was asked of a retriever.

    Attributes:
        session_id: The run this belongs to.
        query_hash: Digest of the query's UTF-8 bytes.
        top_k: Chunks asked for.
        retriever_name: Vector store or retriever.
        embedding_model: Model that embedded the query.
        namespace: Index, collection or namespace within the store.
        latency_ms: Time spent on the query itself, in milliseconds.
        filters: Metadata filters, JSON-safe.
        query_hash_alg: Present only if not `sha256`.
        query_hash_key_id: Names the key of a keyed digest.
        embedding_dimensions: Length of the query vector.
        pipeline_name: Name of the whole RAG pipeline.
        embedding_provider: Who serves the embedding model.
        conversation_id: The conversation this run is a turn of, where that is not the session id itself.
        assumed: Names of the fields above that hold a default, because nobody said them.
    """

    session_id: NonEmpty
    query_hash: str
    top_k: Positive = 5
    retriever_name: str = ""
    embedding_model: str = ""
    namespace: str = ""
    latency_ms: Milliseconds | None = None
    filters: dict[str, Any] = Field(default_factory=dict[str, Any])
    query_hash_alg: str | None = None
    query_hash_key_id: str | None = None
    embedding_dimensions: Positive | None = None
    pipeline_name: str | None = None
    embedding_provider: str | None = None
    conversation_id: str | None = None
    assumed: tuple[str, ...] | None = None


@payload
class RetrievalResultPayload(Payload):
    """`llm.rag.retrieved`: a retriever answered.

    Attributes:
        session_id: The run this belongs to.
        query_hash: Digest of the query that was answered.
        chunks: What came back, best first.
        total_found: Matches before the cut at top_k.
        latency_ms: Retrieval time in milliseconds.
        status: `ok`, `partial`, `error` or `timeout`.
        error_message: Exception class, short code, or type and digest.
        retrieval_strategy: `single_pass`, `multi_pass`, `iterative` or `exhaustive`.
        ranking_method: `cosine`, `bm25`, `hybrid` or `rrf`.
        budget_exhausted: The search stopped at a budget before it was complete.
        ceiling_reached: Which budget that was, in numbers and known words.
        score_rule: How raw scores were mapped to [0, 1], where they were (adr/0004).
    """

    session_id: NonEmpty
    query_hash: str = ""
    chunks: tuple[RetrievedChunk, ...] = ()
    total_found: Count = 0
    latency_ms: Milliseconds | None = None
    status: RetrievalStatus = "ok"
    error_message: str | None = None
    retrieval_strategy: RetrievalStrategy | None = None
    ranking_method: RankingMethod | None = None
    budget_exhausted: bool | None = None
    ceiling_reached: str | None = None
    score_rule: str | None = None


@payload
class RerankPayload(Payload):
    """`llm.rag.reranked`: retrieved chunks were put in a new order.

    Attributes:
        session_id: The run this belongs to.
        model: Reranking model.
        input_count: Chunks before; absent if nobody said.
        output_count: Chunks after; likewise.
        chunks: The new order, best first.
        latency_ms: Time in milliseconds.
        status: `ok`, `partial`, `error` or `timeout`.
        error_message: Exception class, short code, or type and digest.
        score_rule: How raw scores were mapped to [0, 1], where they were (adr/0004).
    """

    session_id: NonEmpty
    model: NonEmpty
    input_count: Count | None = None
    output_count: Count | None = None
    chunks: tuple[RetrievedChunk, ...] = ()
    latency_ms: Milliseconds | None = None
    status: RetrievalStatus = "ok"
    error_message: str | None = None
    score_rule: str | None = None


@payload
class RAGSpanPayload(Payload):
    """`llm.rag.generated`: a model answered from retrieved context.

    Attributes:
        session_id: The run this belongs to.
        span_name: Label of this step.
        model: Model identifier.
        chunk_ids_used: Chunks in the context window.
        context_tokens: Tokens of retrieved context.
        prompt_tokens: Tokens of the whole prompt.
        output_tokens: Tokens of the answer.
        latency_ms: Time in milliseconds.
        status: `ok`, `error`, `timeout` or `cancelled`.
        grounding_score: Share of the answer that the context supports, in [0, 1]; absent if not measured.
        error_message: Exception class, short code, or type and digest.
        provider: Who serves the model.
        finish_reason: Why the model stopped.
        time_to_first_token_ms: For streams, in milliseconds.
        response_id: The provider's id of the answer.
        response_model: Model that answered, where it is not the one that was asked.
        finish_reasons: Why the model stopped, one for each choice, where there are several.
        cached_tokens: Of the prompt's tokens, those read from the provider's cache.
        cache_write_tokens: Of the prompt's tokens, those written to it.
        reasoning_tokens: Of the answer's tokens, those the model thought with.
        temperature: Sampling temperature.
        stream: The answer came as a stream.
        cost_usd: What the call cost, in US dollars.
        cost_basis: How that was estimated; absent where it was not.
    """

    session_id: NonEmpty
    span_name: str = "rag-generation"
    model: NonEmpty = "unknown"
    chunk_ids_used: tuple[str, ...] = ()
    context_tokens: Count | None = None
    prompt_tokens: Count | None = None
    output_tokens: Count | None = None
    latency_ms: Milliseconds | None = None
    status: GenerationStatus = "ok"
    grounding_score: Score | None = None
    error_message: str | None = None
    provider: str | None = None
    finish_reason: str | None = None
    time_to_first_token_ms: Milliseconds | None = None
    response_id: str | None = None
    response_model: str | None = None
    finish_reasons: tuple[str, ...] | None = None
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    temperature: Finite | None = None
    stream: bool | None = None
    cost_usd: Cost | None = None
    cost_basis: str | None = None


@payload
class RAGEvaluationPayload(Payload):
    """`llm.rag.evaluated`: the run was judged (field meanings: AITF RAG_CONTEXT, span `aitf.rag.evaluate`).

    Attributes:
        session_id: The run this belongs to.
        evaluator: Who or what judged.
        context_relevance: Relevance of the context to the question, in [0, 1].
        answer_relevance: Relevance of the answer to the question, in [0, 1].
        faithfulness: Faithfulness of the answer to the context, in [0, 1].
        groundedness: Grounding of the answer in the sources, in [0, 1].
        claims_total: Claims found in the answer.
        claims_supported: Claims the context supports.
        latency_ms: Time in milliseconds.
        span_name: Label of the generation that was judged; the last that succeeded without it.
    """

    session_id: NonEmpty
    evaluator: str = ""
    context_relevance: Score | None = None
    answer_relevance: Score | None = None
    faithfulness: Score | None = None
    groundedness: Score | None = None
    claims_total: Count | None = None
    claims_supported: Count | None = None
    latency_ms: Milliseconds | None = None
    span_name: str | None = None


@payload
class EscalationPayload(Payload):
    """`llm.rag.escalated`: a rule or a person asks for a human (P-KNOW-RAG, HITL escalation).

    Attributes:
        session_id: The run this belongs to.
        rule: Name of the rule, kept as given.
        trigger: What kind of rule fired.
        level: 1 tuning, 2 infrastructure, 3 strategy.
        value: The measured value, where there is one.
        threshold: The limit it crossed.
    """

    session_id: NonEmpty
    rule: NonEmpty
    trigger: EscalationTrigger = "custom"
    level: Level = 1
    value: Finite | None = None
    threshold: Finite | None = None


@payload
class RAGSessionPayload(Payload):
    """`llm.rag.session`: the summary of one run, a fold over its stages.

    Attributes:
        session_id: The run.
        total_queries: Queries asked.
        total_chunks_used: Distinct chunk ids passed to generations.
        total_input_tokens: Sum of prompt tokens.
        total_output_tokens: Sum of output tokens.
        avg_grounding_score: Mean of the scores that were measured; absent if none was.
        total_latency_ms: Sum over all stages, in milliseconds.
        status: The worst of any stage; a timeout counts as an error.
        retriever_name: The first retriever named.
        total_chunks_retrieved: Chunks returned, repeats included.
        unique_chunk_ids: Distinct chunk ids retrieved, sorted.
        chunk_ids_truncated: True where there were more distinct ids than are remembered.
        min_grounding_score: The lowest score that was measured.
        grounding_count: How many scores were measured.
        duration_ms: Wall-clock length of the session by the monotonic clock, in milliseconds.
        retrieval_count: Retrievals.
        rerank_count: Reranks.
        generation_count: Generations.
        evaluation_count: Evaluations.
        query_latency_ms: Sum over queries, in milliseconds.
        retrieval_latency_ms: Sum over retrievals, in milliseconds.
        rerank_latency_ms: Sum over reranks, in milliseconds.
        generation_latency_ms: Sum over generations, in milliseconds.
        evaluation_latency_ms: Sum over evaluations, in milliseconds.
        error_count: Stages that ended in an error or a timeout.
        started_at: Start of the session, ISO 8601 UTC.
        ended_at: End of the session, ISO 8601 UTC.
        end_reason: `ended`, `idle_timeout`, `evicted` or `process_exit`.
        error_type: Class of the exception that left a session scope, where one did.
        partial_view: True where this process saw only a part of the session.
        conversation_id: The conversation the run is a turn of, where that is not the session id itself.
        total_cost_usd: What its generations cost, in US dollars; absent unless each of them says its cost.
    """

    session_id: NonEmpty
    total_queries: Count = 0
    total_chunks_used: Count = 0
    total_input_tokens: Sum = 0
    total_output_tokens: Sum = 0
    avg_grounding_score: Score | None = None
    total_latency_ms: Amount = 0.0
    status: SessionStatus = "ok"
    retriever_name: str = ""
    total_chunks_retrieved: Count = 0
    unique_chunk_ids: tuple[str, ...] = ()
    chunk_ids_truncated: bool = False
    min_grounding_score: Score | None = None
    grounding_count: Count = 0
    duration_ms: Milliseconds | None = None
    retrieval_count: Count = 0
    rerank_count: Count = 0
    generation_count: Count = 0
    evaluation_count: Count = 0
    query_latency_ms: Amount = 0.0
    retrieval_latency_ms: Amount = 0.0
    rerank_latency_ms: Amount = 0.0
    generation_latency_ms: Amount = 0.0
    evaluation_latency_ms: Amount = 0.0
    error_count: Count = 0
    started_at: str | None = None
    ended_at: str | None = None
    end_reason: EndReason | None = None
    error_type: str | None = None
    partial_view: bool = False
    conversation_id: str | None = None
    total_cost_usd: Amount | None = None
