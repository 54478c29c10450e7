"""Sessions for sinks that translate: batches regrouped, with what earlier batches said of each session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from spanforge.conventions.session import Facts, Session, by_session
from spanforge.namespaces.event import Event

__all__ = ["SessionMemory"]


class SessionMemory:
    """Remembers the facts of the latest sessions, so that a stage may come apart from its query.

    Args:
        limit: Sessions remembered.
    """

    def __init__(self, limit: int = 1_000) -> None:
        self._limit = limit
        self._facts: OrderedDict[str, Facts] = OrderedDict()

    def __len__(self) -> int:
        return len(self._facts)

    def sessions(self, events: Sequence[Event]) -> list[Session]:
        """Return the events as sessions, in order of first appearance, and remember their facts."""
        found = [Session(group, self._facts.get(key)) for key, group in by_session(events).items()]
        for session in found:
            if session.queries:
                self._facts[session.session_id] = session.facts
                self._facts.move_to_end(session.session_id)
        while len(self._facts) > self._limit:
            self._facts.popitem(last=False)
        return found
