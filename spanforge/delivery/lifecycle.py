"""The life of a dispatcher: one state, which its owner alone changes, under the log's lock (adr/0009)."""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["Lifecycle", "Phase"]


class Phase(Enum):
    """Where a dispatcher is in its life."""

    CREATED = "created"
    """Nothing was emitted yet: no thread runs, no file is open."""
    STARTING = "starting"
    """Workers are being given their threads; each counts as present from the moment somebody begins to."""
    RUNNING = "running"
    """Whatever is emitted has somebody to deliver it."""
    STOPPING = "stopping"
    """Nothing is taken any more; what was is delivered until the deadline."""
    CLOSED = "closed"
    """What was not delivered has been counted."""
    FORKED = "forked"
    """This is a child's copy: everything in it is the parent's to deliver."""


_AFTER: Final = {
    Phase.CREATED: {Phase.STARTING, Phase.STOPPING, Phase.FORKED},
    Phase.STARTING: {Phase.RUNNING, Phase.STOPPING, Phase.FORKED},
    Phase.RUNNING: {Phase.STOPPING, Phase.FORKED},
    Phase.STOPPING: {Phase.CLOSED, Phase.FORKED},
    Phase.CLOSED: {Phase.FORKED},
    Phase.FORKED: set[Phase](),
}


class Lifecycle:
    """The state, and the steps that lead from one to the next.

    Attributes:
        phase: The state.
    """

    __slots__ = ("phase",)

    def __init__(self) -> None:
        self.phase = Phase.CREATED

    def advance(self, phase: Phase) -> bool:
        """Go to `phase` if that may follow; False, and nothing changed, where it may not."""
        if phase not in _AFTER[self.phase]:
            return False
        self.phase = phase
        return True
