"""Bodies of requests and answers. Names are the RAG contract's; what it leaves open is bounded, and the schema says so.

Requests are read strictly: no unknown field, no text where a number belongs. Answers that the pipeline makes are its
own models, whole.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from spanforge.namespaces.feedback import FeedbackRating
from spanforge.reference.access import may_change
from spanforge.reference.models import (
    MAX_CHUNK,
    MAX_HISTORY,
    MIN_CHUNK,
    DocumentFailure,
    JobStatus,
    Overlap,
    Visibility,
)
from spanforge.sdk.feedback import ISSUE_CODES

if TYPE_CHECKING:
    from spanforge.reference import DataSource, User
    from spanforge.reference.models import IngestionOutput

MAX_QUERY: Final = 4_096
MAX_TOP_K: Final = 100
MAX_FILTERS: Final = 16
MIN_TOKENS: Final = 256
"""Room for the default template, an ordinary question and one passage: less can only fail."""
MAX_DOCUMENTS: Final = 1_000
_MAX_NAMES: Final = 100
_BASE64: Final = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_PLAIN: Final = r"[^{}]*"
_TEMPLATE: Final = (
    rf"^(?:{_PLAIN}\{{context\}}{_PLAIN}\{{query\}}{_PLAIN}|{_PLAIN}\{{query\}}{_PLAIN}\{{context\}}{_PLAIN})$"
)


_FORM_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.0{1,12})?", re.ASCII)


def _whole(value: object, info: ValidationInfo) -> object:
    """Return a number without a fraction as an integer: JSON knows one kind of number, and 5.0 is 5.

    A form has texts alone, and those of a number become one.
    """
    if info.mode != "json" and isinstance(value, str) and _FORM_NUMBER.fullmatch(value):
        value = float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _known_issue(code: str) -> str:
    if code not in ISSUE_CODES:
        raise ValueError(f"use one of {', '.join(sorted(ISSUE_CODES))}")
    return code


Whole = Annotated[int, BeforeValidator(_whole)]
Identifier = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+$")]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
IssueCode = Annotated[str, AfterValidator(_known_issue), WithJsonSchema({"enum": sorted(ISSUE_CODES)})]
Names = Annotated[list[Name], Field(max_length=_MAX_NAMES)]
"""A name that stands twice counts once."""


class RequestModel(BaseModel):
    """Base of what clients send."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )


class ResponseModel(BaseModel):
    """Base of what the server makes beside the pipeline's own models."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid")


# --- filters ---------------------------------------------------------------------------------------------------------

TextField = Literal["documentId", "source", "mediaType"]
Comparison = Literal["eq", "ne", "lt", "le", "gt", "ge"]
_Page = Annotated[int, Field(ge=0, le=10**9), BeforeValidator(_whole)]
_Text = Annotated[str, Field(max_length=512)]


class TextFilter(RequestModel):
    """A text field compared with one value."""

    field: TextField
    op: Comparison = "eq"
    value: _Text = Field(repr=False)


class TextListFilter(RequestModel):
    """A text field that is one of several values."""

    field: TextField
    op: Literal["in"]
    value: list[_Text] = Field(max_length=_MAX_NAMES, repr=False)


class QualityFilter(RequestModel):
    """The document's quality compared with one value."""

    field: Literal["quality"]
    op: Comparison = "eq"
    value: float = Field(repr=False, ge=0.0, le=1.0)


class PageFilter(RequestModel):
    """The page compared with one page."""

    field: Literal["page"]
    op: Comparison = "eq"
    value: _Page = Field(repr=False)


class PageListFilter(RequestModel):
    """A page that is one of several."""

    field: Literal["page"]
    op: Literal["in"]
    value: list[_Page] = Field(max_length=_MAX_NAMES, repr=False)


class TimeFilter(RequestModel):
    """The document's time compared with a moment; one without a zone is taken as UTC."""

    field: Literal["timestamp"]
    op: Comparison = "eq"
    value: datetime = Field(repr=False)


AnyFilter = TextFilter | TextListFilter | QualityFilter | PageFilter | PageListFilter | TimeFilter


# --- questions -------------------------------------------------------------------------------------------------------


class RetrieveRequest(RequestModel):
    """Inputs of the retrieval stage."""

    query: str = Field(min_length=1, max_length=MAX_QUERY, repr=False, examples=["What is the capital of France?"])
    data_sources: list[Identifier] | None = Field(default=None, max_length=_MAX_NAMES)
    """Ids of the sources to search; all accessible ones where left out."""
    top_k: Whole = Field(default=10, ge=1, le=MAX_TOP_K)
    filters: list[AnyFilter] = Field(default=[], max_length=MAX_FILTERS)
    rerank: bool = True
    rerank_model: str | None = Field(default=None, max_length=200)


class QueryRequest(RetrieveRequest):
    """Inputs of all stages of a question together."""

    max_tokens: Whole = Field(default=2_000, ge=MIN_TOKENS, le=32_000)
    template: str | None = Field(default=None, max_length=8_000, pattern=_TEMPLATE, repr=False)
    strict_mode: bool = False
    model: str | None = Field(default=None, max_length=200)
    temperature: float = Field(default=0.3, ge=0.0, le=2.0)
    stream: bool = False
    history: list[Annotated[str, Field(max_length=MAX_QUERY)]] = Field(default=[], max_length=MAX_HISTORY, repr=False)
    """What was asked before in the same conversation, the latest last."""
    conversation_id: Identifier | None = None
    """The conversation that the question is a turn of; what it asked last is remembered."""


# --- ingestion -------------------------------------------------------------------------------------------------------


class DocumentBody(RequestModel):
    """A document: text as it is, or a file's bytes in base 64, whose kind is told by what they hold."""

    document_id: Identifier
    text: str | None = Field(default=None, min_length=1, repr=False)
    content: Annotated[str, Field(pattern=_BASE64)] | None = Field(default=None, repr=False)
    name: str = Field(default="", max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")
    timestamp: datetime | None = None
    quality: float | None = Field(default=None, ge=0.0, le=1.0)
    metadata: dict[str, JsonValue] = Field(default={}, max_length=64, repr=False)

    @model_validator(mode="after")
    def _one_of_both(self) -> DocumentBody:
        if (self.text is None) is (self.content is None):
            raise ValueError("give either text or content")
        return self


class CutOptions(RequestModel):
    """How documents are cut and embedded."""

    data_source_id: Identifier
    chunk_size: Whole = Field(default=512, ge=MIN_CHUNK, le=MAX_CHUNK)
    chunk_overlap: Annotated[Overlap, BeforeValidator(_whole)]
    """At most half of the size; where left out 50, or half of a smaller size."""
    embedding_model: str | None = Field(default=None, max_length=200)

    @property
    def cut(self) -> dict[str, int]:
        """Return size and overlap as a job takes them."""
        return {"chunk_size": self.chunk_size, "chunk_overlap": self.chunk_overlap}


class IngestRequest(CutOptions):
    """Inputs of the ingestion stage. A document whose id stands in the source is replaced."""

    documents: list[DocumentBody] = Field(min_length=1, max_length=MAX_DOCUMENTS)


class Job(ResponseModel):
    """State of an ingestion job: the outputs of the ingestion stage, and how far it is."""

    job_id: str
    data_source_id: str
    status: JobStatus
    indexed: int
    unchanged: int
    removed: int
    chunks: int
    vector_ids: list[str]
    total: int
    failures: list[DocumentFailure]
    warnings: list[DocumentFailure]
    reason: str | None
    progress: float = Field(ge=0.0, le=1.0)

    @classmethod
    def of(cls, output: IngestionOutput) -> Job:
        """Return the state as it is shown."""
        return cls(**dict(output), progress=output.progress)


# --- data sources ----------------------------------------------------------------------------------------------------


class SharingRequest(RequestModel):
    """With whom a data source is shared; what is left out is shared with nobody."""

    visibility: Visibility = Visibility.PERSONAL
    roles: Names = []
    teams: Names = []
    users: Names = []

    def applied(self, source: DataSource) -> DataSource:
        """Return a source that is shared so."""
        lists = {"roles": self.roles, "teams": self.teams, "user_ids": self.users}
        members = {name: frozenset(names) for name, names in lists.items()}
        return source.model_copy(update={"visibility": self.visibility, **members})


class SourceRequest(SharingRequest):
    """A data source to create; whoever creates it owns it."""

    name: Name = Field(examples=["Handbook"])


class Source(ResponseModel):
    """A data source. With whom it is shared is told to those who may change it."""

    id: str
    name: str
    visibility: Visibility
    owner: str
    roles: list[str] | None = None
    teams: list[str] | None = None
    users: list[str] | None = None

    @classmethod
    def of(cls, source: DataSource, user: User) -> Source:
        """Return the source as a user is shown it."""
        lists = {"roles": source.roles, "teams": source.teams, "users": source.user_ids}
        shared = {name: sorted(members) for name, members in lists.items()} if may_change(user, source) else {}
        return cls(
            id=source.data_source_id,
            name=source.name or source.data_source_id,
            visibility=source.visibility,
            owner=source.owner_id,
            **shared,
        )


class StoredDocument(ResponseModel):
    """A document that stands in a source."""

    document_id: str
    chunks: int


class DocumentList(ResponseModel):
    """Documents of a source by id."""

    documents: list[StoredDocument]


class SourceList(ResponseModel):
    """Data sources by id."""

    sources: list[Source]


# --- feedback --------------------------------------------------------------------------------------------------------


class FeedbackRequest(RequestModel):
    """What somebody thinks of an answer. Of a comment only its digest is kept."""

    rating: FeedbackRating
    """`free_text` for a comment alone."""
    comment: str | None = Field(default=None, min_length=1, max_length=MAX_QUERY, repr=False)
    issues: list[IssueCode] = Field(default=[], max_length=len(ISSUE_CODES))


class Feedback(ResponseModel):
    """A rating that was recorded."""

    feedback_id: str
    session_id: str


class ProblemDocument(ResponseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    instance: str
    fields: list[str] | None = None


class State(ResponseModel):
    """How the server is."""

    status: Literal["ok"]
