"""The index protocol.

An index answers with two candidate lists, by words and by vectors; how they become one order is decided
above it, so that every engine ranks alike. Who may see what is part of every request: an engine applies the
selection inside its query, never to its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from spanforge.reference.lexical import under_heading
from spanforge.reference.models import Filter, FilterValue

ROW_FIELDS = (
    "chunk_id",
    "org_id",
    "data_source_id",
    "document_id",
    "text",
    "content_hash",
    "source",
    "media_type",
    "heading",
    "page",
    "start",
    "end",
    "tokens",
    "timestamp",
    "quality",
    "metadata",
)
"""Fields of a row that every engine stores as they are; the vector is stored apart."""


_FIRST: Final = datetime.min.replace(tzinfo=UTC).timestamp()
_LAST: Final = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A passage as it is stored.

    Attributes:
        timestamp: Seconds since the epoch, UTC; absent where the document is undated.
        vector: Unit vector, or absent in an index that searches by words alone.
    """

    chunk_id: str
    org_id: str
    data_source_id: str
    document_id: str
    text: str = field(repr=False)
    content_hash: str = ""
    source: str = ""
    media_type: str = ""
    heading: str = field(default="", repr=False)
    page: int | None = None
    start: int = 0
    end: int = 0
    tokens: int = 0
    timestamp: float | None = None
    quality: float | None = None
    metadata: str = field(default="{}", repr=False)
    vector: NDArray[np.float32] | None = field(default=None, repr=False)

    @property
    def search_text(self) -> str:
        """What the searches and the grounder see: the headings over the passage, then the passage."""
        return under_heading(self.heading, self.text)


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of one organisation, narrowed by sources, documents and chunk ids. Absent means not narrowed."""

    org_id: str
    data_source_ids: tuple[str, ...] | None = None
    document_ids: tuple[str, ...] | None = None
    chunk_ids: tuple[str, ...] | None = None
    excluding_chunk_ids: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()

    @property
    def sources(self) -> Selection:
        """The same sources whole: what words are counted over."""
        return Selection(self.org_id, self.data_source_ids)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search inside a selection.

    Attributes:
        text: The question's words, empty to search by vector alone.
        vector: The question's unit vector, absent to search by words alone.
        limit: Candidates wanted from each of the two searches.
    """

    text: str = field(repr=False)
    vector: NDArray[np.float32] | None = field(repr=False)
    limit: int
    selection: Selection


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row found, with what each search made of it.

    Attributes:
        terms: The stems it was indexed by, in order; see `lexical.terms`.
        bm25: Score by words, absent where only the vector found it.
        cosine: Similarity of the vectors in [-1, 1], absent in a search by words alone.
    """

    row: IndexRow
    terms: tuple[str, ...] = field(repr=False)
    bm25: float | None
    cosine: float | None


@dataclass(frozen=True, slots=True)
class SearchHits:
    """The union of both candidate lists, each row once, in no particular order."""

    candidates: tuple[Candidate, ...]


class Index(Protocol):
    """Keeps passages. Safe to use from several threads; engines on disk also from several processes."""

    @property
    def name(self) -> str:
        """Name of the engine."""
        ...

    @property
    def version(self) -> str:
        """Changes with every change of content; keys whatever is cached above."""
        ...

    def upsert(self, rows: Sequence[IndexRow]) -> None:
        """Add rows, replacing those with the same chunk id; all of them or none.

        Raises:
            IndexFull: The quota or the disk is used up.
            IndexUnavailable: The store cannot be written.
        """
        ...

    def search(self, request: SearchRequest) -> SearchHits:
        """Return the best rows by words and by vector inside the selection.

        Raises:
            IndexUnavailable: The store cannot be read.
        """
        ...

    def rows(self, selection: Selection, limit: int) -> list[IndexRow]:
        """Return selected rows as they were stored, without their vectors, at most so many.

        Raises:
            IndexUnavailable: The store cannot be read.
        """
        ...

    def delete(self, selection: Selection) -> int:
        """Delete the selected rows and return how many there were; no search finds them from then on."""
        ...

    def count(self, selection: Selection) -> int:
        """Return how many rows are selected."""
        ...

    def settle(self) -> None:
        """Do what may wait until a run of writes is over; deleted text is gone from the store afterwards."""
        ...

    def close(self) -> None:
        """Release what the engine holds."""
        ...


def filter_value(value: FilterValue) -> str | float | list[str] | list[int]:
    """Return a filter's value as the engines compare it: times as seconds since the epoch, UTC."""
    if isinstance(value, datetime):
        return epoch(value)
    return value


def epoch(moment: datetime) -> float:
    """Return seconds since the epoch; a time without a zone is taken as UTC.

    A zone may put a time a few hours beyond what a time in UTC can say: it becomes the first or the last of those.
    """
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return min(max(seconds, _FIRST), _LAST)


def storable(value: str | float | None) -> str | float | None:
    """Return a value as files hold it: lone surrogates, which have no UTF-8 form, become question marks."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
