"""The typed inputs and outputs of the five sub-contracts.

Names are those of the RAG contract, snake_case in Python with the contract's camelCase as alias. Fields
that hold text of a query, a document or an answer stay out of every ``repr``.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Score = Annotated[float, Field(ge=0.0, le=1.0)]
Identifier = Annotated[str, Field(min_length=1, max_length=512)]


class ContractModel(BaseModel):
    """Frozen base: camelCase aliases, no unknown fields, and no input in validation errors."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        hide_input_in_errors=True,
    )


# --- who asks, and of what -------------------------------------------------------------------------------


class Visibility(StrEnum):
    """Who may query a data source (RAG contract, "Data Source Access")."""

    PUBLIC = "public"
    ROLE = "role"
    TEAM = "team"
    PRIVATE = "private"
    PERSONAL = "personal"


class User(ContractModel):
    """Someone who ingests or asks. The default is the single user of a local installation."""

    user_id: Identifier = "local"
    org_id: Identifier = "local"
    roles: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()


class DataSource(ContractModel):
    """A named set of documents with one owner and one visibility inside one organisation.

    Attributes:
        visibility: Which of the access rules holds.
        roles: For ``role``: holders of any of these may query.
        teams: For ``team``: members of any of these may query.
        user_ids: For ``private``: the assigned users.
        owner_id: May always query and ingest.
        editors: Other users who may ingest and delete; editing does not by itself give the right to query.
    """

    data_source_id: Identifier
    org_id: Identifier = "local"
    owner_id: Identifier = "local"
    visibility: Visibility = Visibility.PUBLIC
    roles: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()
    user_ids: frozenset[str] = frozenset()
    editors: frozenset[str] = frozenset()


# --- documents -------------------------------------------------------------------------------------------


class Document(ContractModel):
    """A document to ingest: text as it is, or bytes with a name that tells their format.

    Attributes:
        document_id: Stable name inside its data source; ingesting the same id again replaces the document.
        text: Plain or Markdown text; takes precedence over ``content``.
        content: The file's bytes, parsed by ``name``'s suffix or by ``media_type``.
        name: File name or title, shown as the source of citations.
        timestamp: When the document was last true; drives recency. Naive times are taken as UTC.
        quality: Editorial quality in [0, 1]; absent counts as 0.8 in the ranking.
    """

    document_id: Identifier
    text: str | None = Field(default=None, repr=False)
    content: bytes | None = Field(default=None, repr=False)
    name: str = ""
    media_type: str = ""
    timestamp: datetime | None = None
    quality: Score | None = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)


class RetrievedDocument(ContractModel):
    """One passage as the index returned it, with where it comes from.

    Attributes:
        score: Relevance in [0, 1] after fusion and reranking; comparable only within one result.
        raw_score: The engine's own figure that ``score`` was made from.
        relevance: Absolute measure in [0, 1] of how much of the question the passage speaks of.
        start: Offset of the first character in the document's extracted text.
        end: Offset behind the last character.
        page: Page, counted from 1, where the format has pages.
    """

    chunk_id: Identifier
    document_id: Identifier
    data_source_id: Identifier
    text: str = Field(repr=False)
    content_hash: str
    score: Score
    raw_score: float
    relevance: Score = 0.0
    source: str = ""
    heading: str = Field(default="", repr=False)
    page: int | None = None
    start: int = 0
    end: int = 0
    tokens: int = 0
    timestamp: datetime | None = None
    quality: Score | None = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)


class Citation(ContractModel):
    """Number ``n`` of an answer's ``[n]`` and the passage it stands for."""

    number: int = Field(ge=1)
    chunk_id: Identifier
    document_id: Identifier
    data_source_id: Identifier
    source: str = ""
    page: int | None = None
    start: int = 0
    end: int = 0


# --- filters ---------------------------------------------------------------------------------------------

FilterField = Literal["document_id", "source", "media_type", "page", "timestamp", "quality"]
FilterOp = Literal["eq", "ne", "in", "lt", "le", "gt", "ge"]
FilterValue = str | int | float | datetime | list[str] | list[int]


class Filter(ContractModel):
    """One condition on a typed field; several are joined by "and". Only the listed fields can be filtered."""

    field: FilterField
    op: FilterOp = "eq"
    value: FilterValue = Field(repr=False)


# --- sub-contract 1: ingestion ---------------------------------------------------------------------------


class JobStatus(StrEnum):
    """Life of an ingestion job; a cancelled job ends ``failed`` with the reason ``CANCELLED``."""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class IngestionInput(ContractModel):
    """What to ingest, into which data source, and how to cut it."""

    documents: list[Document]
    data_source_id: Identifier
    chunk_size: int = Field(default=512, ge=16, le=8192)
    chunk_overlap: int = Field(default=50, ge=0)
    embedding_model: str | None = None


class DocumentFailure(ContractModel):
    """Why one document of a job was not indexed."""

    document_id: Identifier
    code: str
    message: str


class IngestionOutput(ContractModel):
    """State of a job.

    Attributes:
        indexed: Documents whose chunks are in the index, unchanged ones included.
        unchanged: Documents that were in the index already with the same bytes; they cost nothing.
        chunks: Chunks of the indexed documents.
        vector_ids: Ids in the index of the chunks written by this job, the first ten thousand.
        total: Documents of the job, as far as known.
        reason: Why a job failed: a failure code, or ``CANCELLED``.
    """

    job_id: Identifier
    data_source_id: Identifier
    status: JobStatus
    indexed: int = 0
    unchanged: int = 0
    chunks: int = 0
    vector_ids: list[str] = Field(default_factory=list[str], repr=False)
    total: int = 0
    failures: list[DocumentFailure] = Field(default_factory=list[DocumentFailure])
    reason: str | None = None

    @property
    def progress(self) -> float:
        """Share of the job's documents that are done, in [0, 1]."""
        done = self.indexed + len(self.failures)
        return min(1.0, done / self.total) if self.total else float(self.status is JobStatus.COMPLETED)


# --- sub-contract 2: retrieval ---------------------------------------------------------------------------


class RetrievalInput(ContractModel):
    """A question, the sources asked for (none named: all accessible ones) and how many passages to return."""

    query: str = Field(repr=False)
    data_sources: list[str] | None = None
    top_k: int = Field(default=10, ge=1, le=1000)
    filters: list[Filter] = Field(default_factory=list[Filter])
    rerank: bool = True
    rerank_model: str | None = None


class RetrievalOutput(ContractModel):
    """Passages by falling score, and what was searched.

    Attributes:
        total_found: Accessible passages that matched, before ``top_k``.
        status: ``partial`` when the reranker failed or the search ran without its vectors.
        warnings: Codes of what was done in a lesser way.
    """

    documents: list[RetrievedDocument]
    scores: list[float]
    total_found: int
    data_sources: list[str]
    status: Literal["ok", "partial"] = "ok"
    warnings: list[str] = Field(default_factory=list[str])


# --- sub-contract 3: context assembly --------------------------------------------------------------------


class AssemblyInput(ContractModel):
    """A question and the passages to build a prompt from, the most relevant first."""

    query: str = Field(repr=False)
    documents: list[RetrievedDocument]
    max_tokens: int = Field(ge=1)
    template: str | None = Field(default=None, repr=False)


class AssemblyOutput(ContractModel):
    """The prompt, what went into it, and whom its numbers cite."""

    prompt: str = Field(repr=False)
    included_docs: int
    token_count: int
    citations: list[Citation]
    documents: list[RetrievedDocument] = Field(repr=False)
    """The passages as they stand in the prompt, in its order: ``documents[n - 1]`` is ``[n]``."""


# --- sub-contract 4: grounding ---------------------------------------------------------------------------


class GroundingInput(ContractModel):
    """The question, its passages and the prompt, to be judged before an answer is tried."""

    query: str = Field(repr=False)
    documents: list[RetrievedDocument]
    prompt: str = Field(repr=False)
    strict_mode: bool = False


class GroundingOutput(ContractModel):
    """Whether the passages can answer the question, and what they lack."""

    is_groundable: bool
    grounding_score: Score
    relevant_docs: list[RetrievedDocument]
    gaps: list[str] = Field(repr=False)


# --- sub-contract 5: answering ---------------------------------------------------------------------------


class AnsweringInput(ContractModel):
    """The prompt and the passages an answer may use.

    ``query`` goes beyond the contract: the extractive answerer needs the question apart from the prompt.
    """

    query: str = Field(repr=False)
    prompt: str = Field(repr=False)
    grounded_docs: list[RetrievedDocument]
    citations: list[Citation]
    model: str | None = None
    temperature: float = Field(default=0.3, ge=0.0, le=2.0)
    max_output_tokens: int = Field(default=500, ge=1)
    stream: bool = False


class AnsweringOutput(ContractModel):
    """The answer and the passages it refers to."""

    answer: str = Field(repr=False)
    citations_used: list[Citation]
    confidence: Score
    model: str
    prompt_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = "stop"
    warnings: list[str] = Field(default_factory=list[str])


# --- the whole run ---------------------------------------------------------------------------------------


class CheckedClaim(ContractModel):
    """One claim of an answer, and what the grounder made of it.

    Attributes:
        support: Probability in [0, 1] that the passages support the claim.
        chunk_id: The passage that decides it; absent where nothing was found.
    """

    claim: str = Field(repr=False)
    verdict: Literal["supported", "contradicted", "not_found"]
    support: Score
    chunk_id: str | None = None


class RagStatus(StrEnum):
    """How a run ended."""

    GROUNDED = "grounded"
    PARTIALLY_GROUNDED = "partially_grounded"
    NOT_GROUNDED = "not_grounded"
    UNVERIFIED = "unverified"
    NO_INFORMATION = "no_information"


class RagResult(ContractModel):
    """An answer with everything needed to check it.

    Attributes:
        answer: The answer, or the one constant refusal.
        confidence: Calibrated probability that the answer is right; 0 for a refusal.
        grounding_score: Supported claims over all claims; 1.0 where nothing is claimed, as in a refusal (the trace
            then carries no score); absent where the check failed.
        status: ``no_information`` for a refusal.
        failure: Code of the failure that led to a refusal, else absent.
        recovery: Which recovery produced the answer, else absent.
        latencies_ms: Wall-clock milliseconds by stage.
        session_id: Key of the run's events.
    """

    answer: str = Field(repr=False)
    citations_used: list[Citation]
    sources: list[str]
    confidence: Score
    grounding_score: Score | None
    status: RagStatus
    claims_total: int = 0
    claims_supported: int = 0
    claims: list[CheckedClaim] = Field(default_factory=list[CheckedClaim])
    ungrounded_claims: list[str] = Field(default_factory=list[str], repr=False)
    gaps: list[str] = Field(default_factory=list[str], repr=False)
    warnings: list[str] = Field(default_factory=list[str])
    failure: str | None = None
    recovery: str | None = None
    documents: list[RetrievedDocument] = Field(default_factory=list[RetrievedDocument], repr=False)
    latencies_ms: dict[str, float] = Field(default_factory=dict[str, float])
    session_id: str = ""
