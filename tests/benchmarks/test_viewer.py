"""How long the first screen of the viewer takes over a million stored events, beside ten thousand."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support.many_sessions import EVENTS_EACH, fill
from support.measuring import show

from spanforge.server.viewer import create_viewer

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

_ROUNDS = 9
_FEW, _MANY = 10_000, 1_000_000
_PROMISE = 2.0


def _first_screen_s(store: Path) -> float:
    """Seconds from nothing to the first page of sessions; the store's own pages are in the machine's cache."""
    started = time.perf_counter()
    app = create_viewer(store)
    answer = TestClient(app, base_url="http://127.0.0.1").get("/sessions")
    took = time.perf_counter() - started
    app.state.close()
    assert answer.text.count('role="rowheader"') == 50
    return took


def test_the_first_screen_does_not_wait_for_the_store(tmp_path: Path) -> None:
    few, many = (fill(tmp_path / f"{count}.db", count // EVENTS_EACH) for count in (_FEW, _MANY))
    for store in (few, many):
        _first_screen_s(store)
    pairs = [(_first_screen_s(many), _first_screen_s(few)) for _ in range(_ROUNDS)]
    ratio = statistics.median(mine / other for mine, other in pairs)
    larger, smaller = (statistics.median(side) for side in zip(*pairs, strict=True))
    show(
        "First screen of the viewer",
        ("1,000,000 events, ms", "10,000 events, ms", "ratio", "promise"),
        [(larger * 1000, smaller * 1000, ratio, _PROMISE)],
    )
    assert ratio <= _PROMISE
