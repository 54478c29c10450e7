"""What every measurement needs: our side, configured, and the proof that it dropped nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from support.measuring import Side
from support.workload import one_session

from spanforge.sdk import configure, sf_rag


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to measure beside other tests: what one process uses, another's figures would show."""
    if os.environ.get("PYTEST_XDIST_WORKER") and "benchmark" in config.option.markexpr.replace("not benchmark", ""):
        raise pytest.UsageError("benchmarks are measured one at a time: add -n 0")


ROOM = {"queue_events": 200_000, "queue_bytes": 1 << 30}


@pytest.fixture
def ours() -> Iterator[Callable[..., Side]]:
    """Configure sinks and return our side of a comparison; void if it dropped anything."""

    def make(*sinks: object) -> Side:
        configure(sinks=sinks, **ROOM)
        return Side(one_session, lambda: sf_rag.flush(60))

    before = sf_rag.get_status().sinks
    yield make
    status = sf_rag.get_status()
    sf_rag.shutdown()
    configure(sinks="memory")
    # What sinks of earlier measurements lost, which they were made to lose, stands in the ledger for good.
    lost = {name: ledger.lost for name, ledger in status.sinks.items() if ledger.lost and name not in before}
    if lost:
        pytest.fail(f"void: our side dropped {lost}")
