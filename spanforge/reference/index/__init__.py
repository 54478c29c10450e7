"""Where passages are kept and searched: one protocol, three engines."""

from __future__ import annotations

from spanforge.reference.index.base import Candidate, Index, IndexRow, SearchHits, SearchRequest, Selection
from spanforge.reference.index.memory import MemoryIndex

__all__ = ["Candidate", "Index", "IndexRow", "MemoryIndex", "SearchHits", "SearchRequest", "Selection"]
