"""The typed inputs and outputs of the five sub-contracts.

Names are those of the RAG contract, snake_case in Python with the contract's camelCase as alias. Fields
that hold text of a query, a document or an answer stay out of every ``repr``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo
from pydantic.alias_generators import to_camel

Score = Annotated[float, Field(ge=0.0, le=1.0)]
PARTLY_READ = "partly_read"
"""Key in the metadata of a passage whose document holds text that was not read: the share of its words that was. In
capitals, the code of the warning."""
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
        name: What people call it; free, and not unique.
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
    name: str = Field(default="", max_length=200)
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


MIN_CHUNK, MAX_CHUNK = 16, 8_192
"""Bounds of the length of a passage, in tokens."""
_USUAL_OVERLAP = 50


def usual_overlap(data: Mapping[str, Any]) -> int:
    """Return the overlap where none is given, from the fields before it: 50 tokens, or half of a smaller passage."""
    return min(_USUAL_OVERLAP, data.get("chunk_size", MAX_CHUNK) // 2)


def at_most_half(overlap: int, info: ValidationInfo) -> int:
    """Return an overlap that is at most half of the passage: with more, passages repeat each other without bound.

    Raises:
        ValueError: It is more.
    """
    if overlap > info.data.get("chunk_size", MAX_CHUNK) // 2:
        raise ValueError("must be at most half of the chunk size")
    return overlap


Overlap = Annotated[int, Field(default_factory=usual_overlap, ge=0), AfterValidator(at_most_half)]


class IngestionInput(ContractModel):
    """What to ingest, into which data source, and how to cut it.

    Attributes:
        documents: Documents, or paths of files and folders.
        chunk_size: Greatest length of a passage in tokens.
        chunk_overlap: Tokens neighbouring passages may share, at most half of the size; where left out 50, or half of a
            smaller size.
        embedding_model: Left out, or the name of the index's own.
    """

    documents: list[Document | Path | str]
    data_source_id: Identifier
    chunk_size: int = Field(default=512, ge=MIN_CHUNK, le=MAX_CHUNK)
    chunk_overlap: Overlap
    embedding_model: str | None = None

    @property
    def cut(self) -> dict[str, int]:
        """Return how to cut, as a job takes it."""
        return {"chunk_size": self.chunk_size, "chunk_overlap": self.chunk_overlap}


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
        removed: Documents that are gone from the folders, and with this job from the index.
        chunks: Chunks of the indexed documents.
        vector_ids: Ids in the index of the chunks written by this job, the first ten thousand.
        total: Documents of the job, as far as known.
        warnings: Documents in the index that hold text which was not read, and how much.
        reason: Why a job failed: a failure code, or ``CANCELLED``.
    """

    job_id: Identifier
    data_source_id: Identifier
    status: JobStatus
    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    vector_ids: list[str] = Field(default_factory=list[str], repr=False)
    total: int = 0
    failures: list[DocumentFailure] = Field(default_factory=list[DocumentFailure])
    warnings: list[DocumentFailure] = Field(default_factory=list[DocumentFailure])
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


MAX_HISTORY = 32
"""Earlier questions that are read."""


class QuestionInput(RetrievalInput):
    """Inputs of all stages of a question together.

    Attributes:
        strict_mode: Refuse rather than answer beyond the documents.
        max_tokens: Budget of the whole prompt.
        template: Prompt template with ``{context}`` and ``{query}``.
        model: Model for an answerer that has several.
        temperature: Randomness of a model's wording.
        history: What was asked before in the same conversation, the latest last: a follow-up is read with it.
        conversation_id: The conversation that the question is a turn of; what it asked last is remembered.
    """

    strict_mode: bool = False
    max_tokens: int = Field(default=2_000, ge=1)
    template: str | None = Field(default=None, repr=False)
    model: str | None = None
    temperature: float = Field(default=0.3, ge=0.0, le=2.0)
    history: list[str] = Field(default_factory=list[str], max_length=MAX_HISTORY, repr=False)
    conversation_id: Identifier | None = None


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
    """The answer and the passages it refers to.

    Attributes:
        confidence: Probability in [0, 1] that the answer is right.
        is_quoted: Whether it is made of quotations, whose confidence needs no bearing out by the passages.
        is_certain: False where the answerer shows the closest passages only because it knows nothing better.
    """

    answer: str = Field(repr=False)
    citations_used: list[Citation]
    confidence: Score
    is_certain: bool = True
    is_quoted: bool = False
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
    UNCERTAIN = "uncertain"
    UNVERIFIED = "unverified"
    NO_INFORMATION = "no_information"


class RagResult(ContractModel):
    """An answer with everything needed to check it.

    Attributes:
        answer: The answer, or the one constant refusal.
        confidence: Calibrated probability in [0, 1] that the answer is right; 0 for a refusal.
        grounding_score: Supported claims over all claims, in [0, 1]: whether the passages say what the answer says, and
            not whether that answers the question; absent where nothing is claimed, as in a refusal, and where the
            check failed.
        status: ``no_information`` for a refusal; ``uncertain`` where the closest passages are shown because they are
            less likely right than not, however well grounded.
        weakest_claim: Probability in [0, 1] that the passages support the least supported claim; absent where there is
            none.
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
    weakest_claim: Score | None = None
    claims: list[CheckedClaim] = Field(default_factory=list[CheckedClaim])
    ungrounded_claims: list[str] = Field(default_factory=list[str], repr=False)
    gaps: list[str] = Field(default_factory=list[str], repr=False)
    warnings: list[str] = Field(default_factory=list[str])
    failure: str | None = None
    recovery: str | None = None
    documents: list[RetrievedDocument] = Field(default_factory=list[RetrievedDocument], repr=False)
    latencies_ms: dict[str, float] = Field(default_factory=dict[str, float])
    session_id: str = ""
