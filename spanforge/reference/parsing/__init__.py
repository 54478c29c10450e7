"""From bytes to text with structure: one parser a format, one tree for all of them, one table that names them.

`parse` takes a document and returns its text in sections, each with its page and heading where the format has them.
It reads in a child process that is held to `Limits`, so that no document hurts the one who reads it.
"""

from __future__ import annotations

from spanforge.reference.parsing.base import ParsedDocument, Section
from spanforge.reference.parsing.reading import parse
from spanforge.reference.parsing.registry import media_type_of, supported_suffixes
from spanforge.reference.workers import DEFAULT_LIMITS, Limits

__all__ = ["DEFAULT_LIMITS", "Limits", "ParsedDocument", "Section", "media_type_of", "parse", "supported_suffixes"]
