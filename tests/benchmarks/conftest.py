"""What every measurement needs: our side, configured, and the proof that it dropped nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.measuring import Side
from support.workload import one_session

from spanforge.sdk import configure, sf_rag

ROOM = {"queue_events": 200_000, "queue_bytes": 1 << 30}


@pytest.fixture
def ours() -> Iterator[Callable[..., Side]]:
    """Configure sinks and return our side of a comparison; void if it dropped anything."""

    def make(*sinks: object) -> Side:
        configure(sinks=sinks, **ROOM)
        return Side(one_session, lambda: sf_rag.flush(60))

    yield make
    status = sf_rag.get_status()
    sf_rag.shutdown()
    configure(sinks="memory")
    lost = {name: ledger.lost for name, ledger in status.sinks.items() if ledger.lost}
    if lost:
        pytest.fail(f"void: our side dropped {lost}")
