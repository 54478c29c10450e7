"""Every answer that is not a success: one document form (RFC 9457), one table from code to status.

A problem names what is wrong and the remedy in words of this package. Nothing of the request is repeated in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fastapi.responses import Response

from spanforge.reference.failures import RagFailure, failure_codes

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE: Final = "application/problem+json"
TYPE_BASE: Final = "urn:spanforge:problem:"


@dataclass(frozen=True, slots=True)
class Kind:
    """What is the same in every problem of one code."""

    status: int
    title: str
    detail: str


_STATUS_OF_FAILURE: Final[Mapping[str, int]] = {
    "PARSE_ERROR": 422,
    "UNSUPPORTED_FORMAT": 415,
    "EMBEDDING_FAILED": 502,
    "INDEX_FULL": 507,
    "PERMISSION_DENIED": 403,
    "INDEX_UNAVAILABLE": 503,
    "NO_ACCESSIBLE_SOURCES": 403,
    "CONTEXT_OVERFLOW": 422,
    "TEMPLATE_ERROR": 422,
    "GROUNDING_FAILED": 502,
    "INSUFFICIENT_CONTEXT": 422,
    "NOT_GROUNDED": 422,
    "GENERATION_FAILED": 502,
    "INVALID_INPUT": 422,
}
"""The contract's failures that end a request; NO_RESULTS, RERANK_FAILED and CONTEXT_IGNORED are warnings."""

_OWN: Final[Mapping[str, Kind]] = {
    "UNAUTHENTICATED": Kind(401, "Unauthenticated", "Send a valid API key or token as a bearer credential."),
    "FORBIDDEN": Kind(403, "Forbidden", "None of the roles of this credential may do this."),
    "NOT_FOUND": Kind(404, "Not found", "There is nothing here that this credential may see."),
    "METHOD_NOT_ALLOWED": Kind(405, "Method not allowed", "Use one of the methods that the Allow header lists."),
    "BODY_TIMEOUT": Kind(408, "Body timed out", "The body did not arrive in time; send it faster or in parts."),
    "TOO_LARGE": Kind(413, "Content too large", "The body is longer than this server takes; send less at once."),
    "UNSUPPORTED_MEDIA_TYPE": Kind(415, "Unsupported media type", "Send the body in a media type of this route."),
    "WRONG_HOST": Kind(421, "Misdirected request", "This server does not answer for the host named in the request."),
    "BAD_REQUEST": Kind(400, "Bad request", "The request is not well-formed."),
    "RATE_LIMITED": Kind(429, "Too many requests", "Wait as long as Retry-After says, and ask again."),
    "TOO_MANY_AT_ONCE": Kind(429, "Too many at once", "Wait until earlier requests are answered, and ask again."),
    "TOO_MANY_JOBS": Kind(429, "Too many jobs", "Wait until earlier ingestion jobs have ended."),
    "INTERNAL_ERROR": Kind(500, "Internal error", "The server failed; its log has the kind of error."),
    "OVERLOADED": Kind(503, "Overloaded", "Wait as long as Retry-After says, and ask again."),
    "IDENTITY_UNAVAILABLE": Kind(503, "Issuer unavailable", "The keys of the token's issuer cannot be read now."),
    "TIMED_OUT": Kind(504, "Timed out", "The work took longer than this server allows; ask for less."),
}


def _of_failure(failure: type[RagFailure]) -> Kind:
    title = failure.code.replace("_", " ").capitalize()
    return Kind(_STATUS_OF_FAILURE[failure.code], title, failure.remedy)


KINDS: Final[Mapping[str, Kind]] = {
    **_OWN,
    **{code: _of_failure(cls) for code, cls in failure_codes().items() if code in _STATUS_OF_FAILURE},
}
"""Every problem there is, by its code."""


@dataclass(slots=True, eq=False)
class Problem(Exception):  # noqa: N818  named after the documents of RFC 9457
    """Raised to answer with a problem document.

    Args:
        code: One of `KINDS`.
        detail: What is wrong and the remedy, free of anything from the request; the code's own without it.
        headers: Further headers of the answer.
        fields: Names of the fields of the request that are wrong.
    """

    code: str
    detail: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fields: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """HTTP status."""
        return KINDS[self.code].status

    def document(self) -> dict[str, object]:
        """Return the problem document, without the instance."""
        kind = KINDS[self.code]
        body: dict[str, object] = {
            "type": f"{TYPE_BASE}{self.code.lower().replace('_', '-')}",
            "title": kind.title,
            "status": kind.status,
            "code": self.code,
            "detail": self.detail or kind.detail,
        }
        if self.fields:
            body["fields"] = list(self.fields)
        return body


def problem_of(failure: RagFailure) -> Problem:
    """Return the problem that a failure of the contract is answered with."""
    return Problem(failure.code, str(failure.args[0]) if failure.args else "")


def answer(problem: Problem, instance: str) -> Response:
    """Return the answer.

    Args:
        problem: What to say.
        instance: Id of the request, which the server's log has too.
    """
    content = json.dumps({**problem.document(), "instance": f"urn:spanforge:request:{instance}"})
    return Response(content, problem.status, media_type=MEDIA_TYPE, headers=dict(problem.headers))
