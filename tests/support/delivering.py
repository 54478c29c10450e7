"""Make events, and read the books: what tests of delivery have in common."""

from __future__ import annotations

from typing import Any, Final

from spanforge.delivery.ledger import SinkLedger
from spanforge.sdk import SFRAGClient

QUICK: Final[dict[str, Any]] = {"delivery": "thread", "batch_delay_s": 0.0, "backoff_s": 0.0}
"""Settings of a client whose workers wait for nothing."""


def emit(client: SFRAGClient, count: int) -> None:
    """Trace so many queries of one session."""
    for _ in range(count):
        client.trace_query("q", session_id="s")


def ledger(client: SFRAGClient, name: str = "scripted") -> SinkLedger:
    """Return what a client says of one sink."""
    return client.get_status().sinks[name]
