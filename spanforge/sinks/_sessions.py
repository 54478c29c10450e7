"""Sessions for sinks that translate: batches regrouped, with what earlier batches said of each session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from spanforge.namespaces.event import Event
from spanforge.standards.tree.session import Known, Session

__all__ = ["SessionMemory"]


class SessionMemory:
    """Remembers what is known of the latest sessions, so that a stage may come apart from its query.

    Args:
        limit: Sessions remembered.
    """

    def __init__(self, limit: int = 1_000) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[str, str], Known] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def sessions(self, events: Sequence[Event]) -> dict[tuple[str, str], Session]:
        """Return the events as sessions by their key, in order of first appearance, and remember what they say."""
        groups: dict[tuple[str, str], list[Event]] = {}
        for event in events:
            groups.setdefault(event.session_key, []).append(event)
        found = {key: Session(group, self._known.get(key)) for key, group in groups.items()}
        for key, session in found.items():
            self._known[key] = session.known
            self._known.move_to_end(key)
        while len(self._known) > self._limit:
            self._known.popitem(last=False)
        return found
