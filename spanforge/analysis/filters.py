"""Which sessions are meant: one filter for every verb and engine."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import StoredTotals

__all__ = ["SessionFilter"]


class _Session(Protocol):
    @property
    def fold(self) -> StoredTotals: ...
    @property
    def models(self) -> AbstractSet[str]: ...
    @property
    def tags(self) -> AbstractSet[tuple[str, str]]: ...
    @property
    def summary(self) -> RAGSessionPayload: ...
    @property
    def started_at(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Conditions that a session meets, all of them; what is None asks nothing.

    Attributes:
        status: `ok`, `partial` or `error`.
        retriever: Name of its retriever.
        model: A model that generated in it.
        tag: A tag, as name and value.
        since: It began then or later, as an ISO 8601 time or the beginning of one, UTC.
        until: It began before then.
        grounding_below: Its mean grounding is below this, in [0, 1].
        rated: Whether somebody rated it.
        escalated: Whether a human was asked for.
    """

    status: str | None = None
    retriever: str | None = None
    model: str | None = None
    tag: tuple[str, str] | None = None
    since: str | None = None
    until: str | None = None
    grounding_below: float | None = None
    rated: bool | None = None
    escalated: bool | None = None

    def accepts(self, session: _Session) -> bool:
        """Tell whether a session meets every condition."""
        return self._has(session) and self._began(session.started_at) and self._came_to(session)

    def _has(self, session: _Session) -> bool:
        return (
            (self.model is None or self.model in session.models)
            and (self.tag is None or self.tag in session.tags)
            and (self.rated is None or self.rated == (session.fold.ratings > 0))
            and (self.escalated is None or self.escalated == (session.fold.escalations > 0))
        )

    def _began(self, started_at: str) -> bool:
        return (self.since is None or started_at >= self.since) and (self.until is None or started_at < self.until)

    def _came_to(self, session: _Session) -> bool:
        if self.status is self.retriever is self.grounding_below is None:
            return True
        summary = session.summary
        return (
            self.status in {None, summary.status}
            and self.retriever in {None, summary.retriever_name}
            and (self.grounding_below is None or _below(summary.avg_grounding_score, self.grounding_below))
        )


def _below(score: float | None, limit: float) -> bool:
    return score is not None and score < limit
