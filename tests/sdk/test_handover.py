"""One runtime after another: a caller that still holds the old one, a forked child, the end of the process."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Sequence
from weakref import ref

import pytest

from spanforge.namespaces.event import Event
from spanforge.sdk import SFClientConfig, SFRAGClient
from spanforge.sinks.memory import MemorySink

Connect = Callable[..., SFRAGClient]


def test_a_call_that_was_under_way_when_settings_changed_goes_to_the_new_ones(
    client: SFRAGClient, sink: MemorySink
) -> None:
    session_id = client.trace_query("q")
    old, after = client.cell.get(), MemorySink()
    client.configure(sinks=after, delivery="sync")
    old.query(session_id, {"query_hash": "h"}, 100)
    old.stage("llm.rag.generated", session_id, {"status": "ok"}, 100)
    old.outside("llm.feedback.submitted", session_id, {}, 600)
    assert old.join("other") == "other"
    assert old.trace_of(session_id) == client.cell.get().trace_of(session_id)
    old.end_overdue()
    summary = old.end(session_id)
    assert summary is not None
    assert (summary.total_queries, summary.generation_count) == (2, 1)
    assert [event.event_type.rpartition(".")[2] for event in after.events] == [
        "query", "generated", "submitted", "session",
    ]  # fmt: skip
    assert len(sink.events) == 1
    assert client.get_status().total_queries == 2


def test_a_forked_child_begins_anew_and_tells_its_sinks(
    client: SFRAGClient, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = client.trace_query("q")
    monkeypatch.setattr(client.cell.get(), "generation", -1)
    assert client.flush() == client.shutdown() == 0  # nothing was emitted in this process
    client.cell.after_fork()
    assert sink.events == []
    status = client.get_status()
    assert (status.active_sessions, status.total_queries, status.sinks["memory"].accepted) == (0, 0, 0)
    client.trace_generation(session_id, "m")
    assert client.get_status().orphans == 1


def test_a_client_that_was_never_used_has_nothing_to_do_at_a_fork_or_the_end() -> None:
    unused = SFRAGClient(SFClientConfig())
    unused.cell.after_fork()
    unused.cell.deliver(ends=False)
    unused.cell.at_exit()
    assert unused.cell.current() is None


def test_a_client_for_each_request_leaves_no_thread_and_no_session_behind(sink: MemorySink) -> None:
    before = threading.active_count()
    for number in range(50):
        own = SFRAGClient(SFClientConfig())
        own.configure(sinks=sink, batch_delay_s=0.0)
        own.trace_query("q", session_id=f"s{number}")
        del own
    for _ in range(20):
        SFRAGClient().current_session_id()  # no configuration of its own: it is what `sf_rag` is
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert threading.active_count() <= before
    assert len(sink.of_type("llm.rag.query")) == 50
    assert {payload["end_reason"] for payload in sink.of_type("llm.rag.session")} == {"evicted"}
    assert len(sink.of_type("llm.rag.session")) == 50


def test_a_worker_that_outlives_its_client_does_not_keep_it_and_has_no_more_to_do_for_it(sink: MemorySink) -> None:
    own = SFRAGClient(SFClientConfig())
    own.configure(sinks=sink, delivery="sync")
    runtime = ref(own.cell.get())
    (worker,) = own.cell.get().dispatcher._workers
    del own
    assert runtime() is None
    worker._on_idle()


def test_a_client_that_goes_while_another_ones_sink_writes_ends_its_sessions_all_the_same(
    connect: Connect, sink: MemorySink
) -> None:
    """As happens by chance: the garbage collector runs in whichever thread made it run."""
    doomed = [SFRAGClient(SFClientConfig())]
    doomed[0].configure(sinks=sink, delivery="sync")
    doomed[0].trace_query("q")

    class Collecting(MemorySink):
        def write(self, events: Sequence[Event], /) -> None:
            doomed.clear()

    connect(Collecting()).trace_query("q")
    assert [payload["end_reason"] for payload in sink.of_type("llm.rag.session")] == ["evicted"]


def test_at_the_end_open_sessions_end_and_what_comes_later_is_delivered_in_line(
    connect: Connect, sink: MemorySink
) -> None:
    client = connect(sink, delivery="thread")
    client.trace_query("q")
    client.cell.at_exit()
    assert sink.of_type("llm.rag.session")[0]["end_reason"] == "process_exit"
    client.trace_query("late")
    assert sink.events[-1].event_type == "llm.rag.query"
    client.shutdown()
    client.cell.at_exit()
    assert len(sink.events) == 4


def test_defaults_of_the_settings_say_for_whom_and_bind_goes_before(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, org_id="acme", team_id="core", project_id="p")
    client.trace_query("q", session_id="s")
    with client.bind(team_id="search", colour="red"):
        client.trace_query("q", session_id="s")
    plain, bound = sink.events
    assert (plain.org_id, plain.team_id, plain.tags) == ("acme", "core", {"project_id": "p"})
    assert (bound.org_id, bound.team_id, bound.tags) == ("acme", "search", {"project_id": "p", "colour": "red"})
