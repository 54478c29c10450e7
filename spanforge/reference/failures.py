"""Every failure of the RAG contract: one class a code, one small tree.

A failure says what went wrong and what to do, in words of this package; it never carries text of a query, a
document or an answer. The codes and their stages are those of the RAG contract ("Failures" of each
sub-contract and "Failure Summary").
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import StrEnum
from types import TracebackType
from typing import ClassVar

from spanforge.exceptions import SpanforgeError


class Stage(StrEnum):
    """The stage of the contract at which a failure arose."""

    INGESTION = "ingestion"
    RETRIEVAL = "retrieval"
    CONTEXT_ASSEMBLY = "context_assembly"
    GROUNDING = "grounding"
    ANSWERING = "answering"


class RagFailure(SpanforgeError):  # noqa: N818 - failures are named after the contract's codes
    """Base of every failure of the reference RAG.

    Attributes:
        code: The contract's name of the failure, in capitals.
        stage: Where it arose. Codes that two stages share are raised with the stage given.
        retryable: Whether the same call may succeed later without a change of its inputs.
        remedy: What the caller can do, one sentence.
    """

    code: ClassVar[str] = "RAG_FAILURE"
    default_stage: ClassVar[Stage] = Stage.RETRIEVAL
    retryable: ClassVar[bool] = False
    remedy: ClassVar[str] = "See the documentation of the reference RAG."

    def __init__(self, message: str | None = None, *, stage: Stage | None = None) -> None:
        self.stage = stage or self.default_stage
        super().__init__(message or self.remedy)

    def __str__(self) -> str:
        return f"{self.code} at {self.stage}: {super().__str__()}"


class ParseError(RagFailure):
    """A document's bytes cannot be read as the format they claim to be."""

    code = "PARSE_ERROR"
    default_stage = Stage.INGESTION
    remedy = "The document could not be parsed; check that it opens in its own program and is not encrypted."


class UnsupportedFormat(RagFailure):
    """No parser is known, or installed, for this kind of document."""

    code = "UNSUPPORTED_FORMAT"
    default_stage = Stage.INGESTION
    remedy = "This kind of document is not supported; convert it to PDF, HTML, Markdown or plain text."


class EmbeddingFailed(RagFailure):
    """The embedding model is missing or did not answer."""

    code = "EMBEDDING_FAILED"
    default_stage = Stage.INGESTION
    retryable = True
    remedy = "The embedding model could not be used; check that it is installed or reachable."


class IndexFull(RagFailure):
    """The storage quota, or the disk, is used up."""

    code = "INDEX_FULL"
    default_stage = Stage.INGESTION
    remedy = "The index has reached its quota or the disk is full; delete documents or raise the quota."


class PermissionDenied(RagFailure):
    """The user may not do this to this data source."""

    code = "PERMISSION_DENIED"
    default_stage = Stage.INGESTION
    remedy = "Only the owner and the editors of a data source may change it."


class NoResults(RagFailure):
    """Nothing in the sources the user may query is relevant, on an absolute measure."""

    code = "NO_RESULTS"
    remedy = "No relevant document was found; widen the sources, or add documents on the subject."


class IndexUnavailable(RagFailure):
    """The index cannot be opened or read."""

    code = "INDEX_UNAVAILABLE"
    retryable = True
    remedy = "The index could not be opened; check its folder or server, and the version that wrote it."


class RerankFailed(RagFailure):
    """The reranker failed; retrieval falls back to the unreranked order and is marked partial."""

    code = "RERANK_FAILED"
    retryable = True
    remedy = "The reranker failed; results keep the order of the search."


class NoAccessibleSources(RagFailure):
    """The user may query none of the data sources asked for."""

    code = "NO_ACCESSIBLE_SOURCES"
    remedy = "The user may query none of these data sources; ask their owner for access."


class ContextOverflow(RagFailure):
    """Not even the shortest useful context fits the token budget."""

    code = "CONTEXT_OVERFLOW"
    default_stage = Stage.CONTEXT_ASSEMBLY
    remedy = "The question, the template and one passage do not fit max_tokens; raise it or shorten the template."


class TemplateError(RagFailure):
    """The prompt template lacks a placeholder, or has one that is unknown."""

    code = "TEMPLATE_ERROR"
    default_stage = Stage.CONTEXT_ASSEMBLY
    remedy = "A template needs the placeholders {context} and {query}, each once, and no other."


class GroundingFailed(RagFailure):
    """The grounder itself failed: no score is reported, and none is made up."""

    code = "GROUNDING_FAILED"
    default_stage = Stage.GROUNDING
    retryable = True
    remedy = "The grounding check could not be run; the answer is unverified."


class InsufficientContext(RagFailure):
    """Strict mode: the documents at hand cannot answer the question."""

    code = "INSUFFICIENT_CONTEXT"
    default_stage = Stage.GROUNDING
    remedy = "The retrieved documents do not answer the question; strict mode refuses to try."


class NotGrounded(RagFailure):
    """The answer is not supported by its context: a warning, or in strict mode a refusal."""

    code = "NOT_GROUNDED"
    default_stage = Stage.GROUNDING
    remedy = "The answer is not supported by the retrieved documents."


class GenerationFailed(RagFailure):
    """The language model failed or timed out."""

    code = "GENERATION_FAILED"
    default_stage = Stage.ANSWERING
    retryable = True
    remedy = "The language model did not answer; check its address, key and quota."


class ContextIgnored(RagFailure):
    """The answer uses nothing of the context: reported as a warning."""

    code = "CONTEXT_IGNORED"
    default_stage = Stage.ANSWERING
    remedy = "The answer cites none of the documents it was given."


class InvalidInput(RagFailure, ValueError):  # noqa: N818 - named like its siblings
    """An argument is outside what the contract allows. The message names the field, never the value."""

    code = "INVALID_INPUT"
    remedy = "An argument is outside its documented range."


def failure_codes() -> dict[str, type[RagFailure]]:
    """Return every failure class by its code."""
    return {cls.code: cls for cls in RagFailure.__subclasses__()}


@contextmanager
def undoing(undo: Callable[[], object]) -> Generator[None]:
    """Undo what was done before, where the block does not come to its end."""
    with ExitStack() as left:
        left.callback(undo)
        yield
        left.pop_all()


class Translated(AbstractContextManager[None]):
    """Turns a library's errors, inside a block, into a failure of the contract.

    Errors of stores and clients quote what they were given: a filter, a row, a whole prompt. So the failure is raised
    without them as cause or context, and only what ``failure`` reads from the error remains.

    Args:
        errors: Classes of error to turn.
        failure: Makes the failure.
    """

    def __init__(self, errors: tuple[type[Exception], ...], failure: Callable[[Exception], RagFailure]) -> None:
        self._errors = errors
        self._failure = failure

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, self._errors) or isinstance(error, RagFailure):
            return
        failure = self._failure(error)
        try:
            raise failure
        finally:
            # Raised while the error is being handled, it would carry it along.
            failure.__context__ = None
