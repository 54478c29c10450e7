"""From bytes to text with structure: one parser a format, one table that names them.

`parse` takes a document and returns its text in sections, each with its page and heading where the format
has them. What is small to keep and ruinous to read is refused before a parser sees it, within `Limits`.
"""

from __future__ import annotations

from spanforge.reference.parsing.base import ParsedDocument, Section
from spanforge.reference.parsing.registry import media_type_of, parse, supported_suffixes
from spanforge.reference.parsing.unfolding import DEFAULT_LIMITS, Limits

__all__ = ["DEFAULT_LIMITS", "Limits", "ParsedDocument", "Section", "media_type_of", "parse", "supported_suffixes"]
