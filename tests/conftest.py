"""What all tests share: hypothesis profiles, a clean environment, and clients of their own to try things on."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from spanforge._warnings import settle
from spanforge.sdk import SFClientConfig, SFRAGClient, sf_rag
from spanforge.sinks.memory import MemorySink

_COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    # Fixtures that hold for a whole test are the ones used here; two loaded cores are slow at times; and how large
    # what is drawn comes out depends on which modules are loaded.
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
}
# What a gate says depends on the tree alone; `searching` draws anew each time, to find what nobody has thought of.
settings.register_profile("default", max_examples=25, stateful_step_count=30, derandomize=True, **_COMMON)
settings.register_profile("thorough", max_examples=300, stateful_step_count=50, derandomize=True, **_COMMON)
settings.register_profile("searching", max_examples=300, stateful_step_count=50, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    """Measure what the SDK floors' own tests reach, where anything is measured at all."""
    if "COVERAGE_PROCESS_START" in os.environ:
        from support.unmeasured import Unmeasured

        config.pluginmanager.register(Unmeasured())


Connect = Callable[..., SFRAGClient]


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: many tests wait for a process to end, or for a time to pass."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("SPANFORGE_", "OTEL_"))]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _nothing_is_left_to_say() -> Generator[None]:
    """Let what a test traced with `sf_rag`, and what it was warned of, be said while it runs, not into the next one."""
    yield
    sf_rag.flush()
    settle(5)


@pytest.fixture
def connect() -> Generator[Connect]:
    """Return a maker of clients with settings, sinks and ledgers of their own; they are shut down at the end."""
    clients: list[SFRAGClient] = []

    def make(*sinks: object, **options: Any) -> SFRAGClient:
        client = SFRAGClient(SFClientConfig())
        clients.append(client)
        client.configure(**{"sinks": sinks, "delivery": "sync", **options})
        return client

    yield make
    for client in clients:
        client.shutdown(0.5)


@pytest.fixture
def sink() -> MemorySink:
    """The memory sink of `client`."""
    return MemorySink()


@pytest.fixture
def client(connect: Connect, sink: MemorySink) -> SFRAGClient:
    """A client that delivers at once, to memory, and counts what it replaces."""
    return connect(sink)


@pytest.fixture
def strict(connect: Connect, sink: MemorySink) -> SFRAGClient:
    """As `client`, and it raises where it would replace an input."""
    return connect(sink, strict=True)
