"""For the tests of applications: events in memory, inputs that fail loudly, and a check that no text leaks.

pytest finds the fixture `spanforge_events` here by itself; `capture()` does the same for any other runner.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Unpack

from spanforge.namespaces.event import Event
from spanforge.sdk import Settings, sf_rag
from spanforge.sdk._keywords import SettingsDetails
from spanforge.sinks.memory import MemorySink

try:
    from pytest import fixture  # noqa: PT013  under the name that the other has here
except ImportError:
    # Another runner has no fixtures; with it this is one more block.
    fixture = contextmanager

__all__ = ["CanaryFoundError", "CapturedEvents", "capture", "find_canary", "spanforge_events"]


class CanaryFoundError(AssertionError):
    """A text that must not leave its call was found; the message says where and in which form, not the text."""


class CapturedEvents:
    """What arrived at the memory sink, oldest first."""

    def __init__(self, sink: MemorySink) -> None:
        self._sink = sink

    def __repr__(self) -> str:
        # Without waiting for what is on its way: a debugger that shows this must not change what happens.
        arrived = Counter(event.event_type for event in self._sink.events)
        return f"<CapturedEvents: {dict(sorted(arrived.items()))}>"

    def __iter__(self) -> Iterator[Event]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    @property
    def all(self) -> list[Event]:
        """Every event so far; what is still on its way is waited for."""
        sf_rag.flush()
        return self._sink.events

    def of_type(self, event_type: str) -> list[dict[str, Any]]:
        """Return the payloads of one type of event, such as `llm.rag.session`."""
        return [dict(event.payload) for event in self.all if event.event_type == event_type]

    def clear(self) -> None:
        """Forget what has arrived."""
        sf_rag.flush()
        self._sink.clear()

    def assert_no_text(self, *texts: str) -> None:
        """Check that none of these texts stands in any event, in any form `find_canary` knows.

        Raises:
            CanaryFoundError: One of them does.
        """
        for event in self.all:
            for number, text in enumerate(texts, 1):
                if forms := find_canary(text, event.encode()):
                    raise CanaryFoundError(
                        f"text {number} of {len(texts)} stands in a {event.event_type} event as {forms[0]}"
                    )


def find_canary(canary: str, content: str | bytes) -> list[str]:
    """Return the forms in which a text stands in some content: plain, JSON escape, hex, base64.

    Args:
        canary: A text that must not be there; make it long and random, so that it cannot be there by chance.
        content: What to look through.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    raw = canary.encode("utf-8", "surrogatepass")
    forms = {
        "plain text": [raw],
        "JSON escape": [json.dumps(canary)[1:-1].encode(), "".join(f"\\u{ord(c):04x}" for c in canary).encode()],
        "hex": [raw.hex().encode(), raw.hex().upper().encode()],
        # A base64 text looks different for each of the three offsets it may have in what was encoded.
        "base64": [base64.b64encode(b"\0" * offset + raw)[4 if offset else 0 : -4] for offset in range(3)],
    }
    return [form for form, needles in forms.items() if any(needle and needle in data for needle in needles)]


@contextmanager
def capture(**settings: Unpack[SettingsDetails]) -> Generator[CapturedEvents]:
    """Send every event of the process to memory for a block, delivered before each call returns, in strict mode.

    Args:
        settings: Fields of `spanforge.config.Settings` to differ from that.
    """
    before = sf_rag.cell.current()
    open_before: set[str] = set() if before is None else before.open_sessions()
    previous = Settings.load_leniently() if before is None else before.settings
    sink = MemorySink()
    sf_rag.cell.configure({"sinks": sink, "delivery": "sync", "strict": True, **settings})
    try:
        yield CapturedEvents(sink)
    finally:
        # What the block left open is its own: the summary must not go where the application's events go.
        runtime = sf_rag.cell.get()
        for session_id in runtime.open_sessions() - open_before:
            runtime.end(session_id, reason="evicted")
        sf_rag.cell.configure({name: getattr(previous, name) for name in previous.model_fields_set})


@fixture
def spanforge_events() -> Generator[CapturedEvents]:
    """Give a test the events it causes: delivered at once, in memory, in strict mode."""
    with capture() as events:
        yield events
