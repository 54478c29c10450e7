"""What applications test with: events in memory, strict mode, and the check for texts that leaked."""

from __future__ import annotations

import base64
import json
import subprocess
import sys

import pytest

from spanforge.exceptions import StrictModeError
from spanforge.sdk import sf_rag
from spanforge.sinks.memory import MemorySink
from spanforge.testing import CanaryFoundError, CapturedEvents, capture, find_canary, spanforge_events

__all__ = ["spanforge_events"]  # the fixture, where the package is used without being installed

CANARY = "Ünder the rug, where nobody looks"


def test_the_fixture_gives_the_events_of_a_test_in_strict_mode(spanforge_events: CapturedEvents) -> None:
    session_id = sf_rag.trace_query("q")
    sf_rag.end_session(session_id)
    assert len(spanforge_events) == 2
    assert [event.session_id for event in spanforge_events] == [session_id] * 2
    assert spanforge_events.of_type("llm.rag.session")[0]["total_queries"] == 1
    spanforge_events.clear()
    assert spanforge_events.all == []
    with pytest.raises(StrictModeError):
        sf_rag.trace_query("q", top_k=0)


def test_what_a_debugger_shows_is_ids_and_counts(spanforge_events: CapturedEvents) -> None:
    scope = sf_rag.session("canary of a question", session_id="run-1")
    assert repr(scope) == "<SessionScope: not entered>"
    with scope as entered:
        assert repr(entered) == "<SessionScope 'run-1': open>"
        sf_rag.trace_generation("run-1", "canary of a model")
    assert repr(scope) == "<SessionScope 'run-1': ended>"
    assert repr(spanforge_events) == (
        "<CapturedEvents: {'llm.rag.generated': 1, 'llm.rag.query': 1, 'llm.rag.session': 1}>"
    )


def test_after_a_capture_everything_is_as_it_was() -> None:
    before = MemorySink()
    with capture(sinks=before, org_id="acme"):
        sf_rag.trace_query("q", session_id="s")
        with capture() as inner:
            sf_rag.trace_query("q", session_id="s")
            assert len(inner) == 1
        sf_rag.end_session("s")
        assert [(event.event_type, event.org_id) for event in before.events][-1][0] == "llm.rag.session"
        assert sf_rag.cell.get().settings.org_id == "acme"


def test_what_a_test_leaves_open_ends_in_the_test() -> None:
    application = MemorySink()
    with capture(sinks=application):
        own = sf_rag.trace_query("the application's, which goes on")
        application.clear()
        with capture() as inner:
            sf_rag.trace_query("q")
        assert application.events == []
        assert [payload["end_reason"] for payload in inner.of_type("llm.rag.session")] == ["evicted"]
        assert sf_rag.end_session(own).end_reason == "ended"


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("plain text", f"… {CANARY} …"),
        ("JSON escape", json.dumps({"a": CANARY})),
        ("JSON escape", "".join(f"\\u{ord(character):04x}" for character in CANARY)),
        ("hex", CANARY.encode().hex().upper()),
        ("base64", base64.b64encode(b"x" + CANARY.encode() + b"yz")),
    ],
)
def test_a_text_is_found_in_every_form(form: str, content: str | bytes) -> None:
    assert find_canary(CANARY, content) == [form]
    assert find_canary(CANARY[::-1], content) == []


def test_a_text_that_leaked_is_said_to_have_without_repeating_it(spanforge_events: CapturedEvents) -> None:
    sf_rag.trace_query(CANARY, retriever_name="a name that is kept")
    spanforge_events.assert_no_text(CANARY)
    with pytest.raises(CanaryFoundError, match=r"^text 2 of 2 stands in a llm\.rag\.query event as plain text$"):
        spanforge_events.assert_no_text(CANARY, "a name that is kept")


def test_capture_needs_no_pytest() -> None:
    program = """
import sys
sys.modules["pytest"] = sys.modules["_pytest"] = None
from spanforge.sdk import sf_rag
from spanforge.testing import *
with capture() as events, spanforge_events() as inner:
    sf_rag.end_session(sf_rag.trace_query("the question"))
    inner.assert_no_text("the question")
    print(len(inner), len(events))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=100)
    assert done.stdout.split() == ["2", "0"]
