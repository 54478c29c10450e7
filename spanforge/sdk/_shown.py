"""Which chunks a model is shown that is called now, as far as lists tell: where nobody says it, this is the rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from spanforge.namespaces.stages import GENERATED, RERANKED, RETRIEVED

__all__ = ["LISTENERS", "LISTS", "Shown"]

LISTS: Final = frozenset({RETRIEVED, RERANKED})
"""The events that are a list of chunks."""
LISTENERS: Final[list[Callable[[str, str, Mapping[str, Any]], None]]] = []
"""Told of every list, its session, type and payload, while somebody wants to know what models are shown."""
_MAX_IDS: Final = 1_000
_FAILED: Final = frozenset({"error", "timeout"})


class Shown:
    """What the lists so far give: what retrievals found adds up, and a rerank's order takes its place.

    What a list found after an answer is for another prompt, unless all of it is one run's, whose prompts keep what they
    had.
    """

    __slots__ = ("_ids", "_is_used", "_so_far")

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}
        self._so_far: dict[str, None] = {}
        self._is_used = False

    @property
    def ids(self) -> list[str]:
        """The chunks, each once, in the order in which they came."""
        return list(self._ids | self._so_far)

    def heard(self, event_type: str, payload: Mapping[str, Any]) -> None:
        """Take an event of a session's into account."""
        if event_type == GENERATED:
            self._is_used = True
        elif event_type in LISTS:
            is_order = event_type == RERANKED
            if is_order and payload["status"] in _FAILED:
                # Whoever goes on from that has the order before.
                return
            if self._is_used:
                self._ids, self._is_used = {}, False
            self.add([chunk["chunk_id"] for chunk in payload["chunks"]], in_place=is_order)

    def add(self, ids: Sequence[str], *, in_place: bool = False) -> None:
        """Add a list.

        Args:
            ids: Its chunks.
            in_place: It is all that a model is shown.
        """
        self._so_far = {}
        if in_place:
            self._ids = {}
        self._ids.update(dict.fromkeys(ids[: _MAX_IDS - len(self._ids)]))

    def so_far(self, ids: Sequence[str]) -> None:
        """Say what is in a list that is not complete yet: it stands until one that is complete comes."""
        self._so_far = dict.fromkeys(ids[:_MAX_IDS])
