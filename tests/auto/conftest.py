"""One server for all the tests of frameworks, and traces that begin and end with each of them."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
from support.drawing_server import DrawingServer, drawing_server

from spanforge import auto
from spanforge.integrations._stage import current_call
from spanforge.testing import CapturedEvents, capture

# Frameworks that report home would do so from here.
os.environ.update(HAYSTACK_TELEMETRY_ENABLED="False", ANONYMIZED_TELEMETRY="False", LANGSMITH_TRACING="false")

FIELDS = (
    "model", "response_id", "response_model", "prompt_tokens", "output_tokens", "cached_tokens", "reasoning_tokens",
    "cache_write_tokens", "finish_reason",
)  # fmt: skip


_runner = asyncio.Runner()


@pytest.fixture(scope="module")
def server() -> Generator[DrawingServer]:
    with drawing_server(seed=11) as running:
        yield running
        _runner.run(_close_clients())


async def _close_clients() -> None:
    """Close the connections that frameworks keep: the collector would find them open in whichever test runs then."""
    kinds = tuple(module.AsyncClient for name in ("httpx", "httpx2") if (module := sys.modules.get(name)) is not None)
    for one in gc.get_objects():
        if issubclass(type(one), kinds) and not one.is_closed:
            await one.aclose()


@pytest.fixture
def traced(server: DrawingServer) -> Generator[CapturedEvents]:
    server.account.clear()
    server.bodies.clear()
    server.asked.clear()
    auto.setup()
    with capture(strict=False) as events:
        yield events
    auto.teardown()
    left = current_call.get()
    assert left is None or left.is_done, "a call that is done is taken up by no other"


def told(events: CapturedEvents) -> list[dict[str, Any]]:
    """Return what the generations say, of the fields that the server keeps an account of."""
    return [{name: found.get(name) for name in FIELDS} for found in events.of_type("llm.rag.generated")]


def account(server: DrawingServer) -> list[dict[str, Any]]:
    """Return the server's account of the same."""
    return [{name: said.get(name) for name in FIELDS} for said in server.account]


def settled(events: CapturedEvents, sessions: int) -> list[dict[str, Any]]:
    """Wait until so many sessions have ended; return their summaries."""
    deadline = time.monotonic() + 20
    while len(events.of_type("llm.rag.session")) < sessions and time.monotonic() < deadline:
        time.sleep(0.02)
    ended = events.of_type("llm.rag.session")
    begun = {query["session_id"] for query in events.of_type("llm.rag.query")}
    assert begun <= {summary["session_id"] for summary in ended}
    return ended


def run(call: Callable[[], Any]) -> Any:
    """Call a function; what it returns is awaited, where it can be, in the one loop that clients live in."""
    result = call()
    return _runner.run(result) if asyncio.iscoroutine(result) else result
