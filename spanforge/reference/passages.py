"""A passage as the answerer and the grounder read it: tables as rows, headings above."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanforge.reference.grounding.rows import with_rows
from spanforge.reference.index.base import under_heading

if TYPE_CHECKING:
    from spanforge.reference.models import RetrievedDocument


def body_of(document: RetrievedDocument) -> str:
    """Return the passage, each row of its tables as a line that names its columns."""
    return with_rows(document.text, document.heading)


def reading_of(document: RetrievedDocument) -> str:
    """Return the passage under its headings."""
    return under_heading(document.heading, body_of(document))
