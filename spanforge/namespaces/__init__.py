"""What an event says: the envelope, the payloads and the hash chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanforge._absent import explained
from spanforge.namespaces.stages import PAYLOADS, STAGES, Stage

__all__ = ["PAYLOADS", "STAGES", "Stage"]

# Hidden from type checkers, who would believe that every name is there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise explained(__name__, name)
