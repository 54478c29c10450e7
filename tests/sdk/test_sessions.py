"""Sessions: limits, ends, orphans, sampling, modes, and what a client says of itself."""

from __future__ import annotations

import copy
import hashlib
import hmac
import pickle
import time
from collections.abc import Callable

import pytest
from support.faulty_sinks import HungSink

from spanforge import _clock
from spanforge._warnings import settle
from spanforge.exceptions import ConfigError, StrictModeError, UnknownSessionError
from spanforge.sdk import SFClientConfig, SFRAGClient, SFServiceClient, sf_feedback, sf_rag
from spanforge.sessions.sampling import is_sampled
from spanforge.sinks.memory import MemorySink

Connect = Callable[..., SFRAGClient]
IN = next(name for number in range(99) if is_sampled(name := f"s{number}", 0.5))
OUT = next(name for number in range(99) if not is_sampled(name := f"s{number}", 0.5))


def kinds(sink: MemorySink) -> list[str]:
    return [event.event_type.rpartition(".")[2] for event in sink.events]


def test_ending_twice_gives_the_summary_again_and_emits_nothing(strict: SFRAGClient, sink: MemorySink) -> None:
    session_id = strict.trace_query("q")
    summary = strict.end_session(session_id)
    assert strict.end_session(session_id) == summary
    assert strict.get_session(session_id) is None
    assert kinds(sink) == ["query", "session"]
    assert summary.end_reason == "ended"


@pytest.mark.parametrize("never_seen", ["no such id", None, object()])
def test_only_an_id_that_was_never_seen_raises(never_seen: object, client: SFRAGClient) -> None:
    with pytest.raises(KeyError, match="unknown session id") as caught:
        client.end_session(never_seen)  # type: ignore[arg-type]
    assert "no such id" not in f"{caught.value}{caught.value.args}"
    assert caught.value.__context__ is None
    assert pickle.loads(pickle.dumps(caught.value)).args == ()  # noqa: S301  made here


def test_a_summary_that_was_forgotten_is_never_seen(connect: Connect) -> None:
    client = connect(MemorySink(), retained_sessions=1)
    for name in ("a", "b"):
        client.trace_query("q", session_id=name)
        client.end_session(name)
    client.end_session("b")
    with pytest.raises(UnknownSessionError):
        client.end_session("a")


def test_an_id_that_ended_and_is_asked_again_is_a_new_run(strict: SFRAGClient, sink: MemorySink) -> None:
    """The caller goes on with its own id, whatever the run is called in events."""
    for turn in (1, 2):
        assert strict.trace_query("q", session_id="chat") == "chat"
        strict.trace_retrieval("chat", [{"id": turn}])
        snapshot = strict.get_session("chat")
        assert snapshot is not None
        assert snapshot.total_queries == 1
        assert strict.end_session("chat").total_queries == 1
        assert strict.end_session("chat").unique_chunk_ids == (str(turn),)
        strict.trace_evaluation("chat", faithfulness=1.0)
    assert kinds(sink) == ["query", "retrieved", "session", "evaluated"] * 2
    assert [event.session_id for event in sink.events] == ["chat"] * 4 + ["chat~2"] * 4
    assert len({event.trace_id for event in sink.events}) == 2
    for event in sink.events:
        assert event.payload["session_id"] == event.session_id
    first, second = (event for event in sink.events if event.event_type == "llm.rag.session")
    assert first.span_id != second.span_id
    assert [event.payload.get("conversation_id") for event in (first, second)] == [None, "chat"]


def test_a_conversation_is_kept_as_given_and_runs_of_an_id_inherit_it(strict: SFRAGClient, sink: MemorySink) -> None:
    strict.trace_query("q", session_id="a", conversation_id="Chat 7/é")
    strict.end_session("a")
    strict.trace_query("q", session_id="a")
    strict.end_session("a")
    with strict.session("q", conversation_id="Chat 7/é"):
        pass
    said = [event.payload.get("conversation_id") for event in sink.events]
    assert said == ["Chat 7/é"] * 6


def test_orphans_are_emitted_and_counted_and_open_no_session(strict: SFRAGClient, sink: MemorySink) -> None:
    strict.trace_generation("elsewhere", "m")
    status = strict.get_status()
    assert (status.orphans, status.active_sessions, status.total_spans) == (1, 0, 1)
    assert strict.get_session("elsewhere") is None
    assert sink.events[0].session_id == "elsewhere"


def test_a_joined_session_is_a_partial_view(strict: SFRAGClient, sink: MemorySink) -> None:
    assert strict.join_session("elsewhere") == "elsewhere"
    strict.join_session("elsewhere")
    strict.trace_generation("elsewhere", "m")
    assert strict.end_session("elsewhere").partial_view
    assert kinds(sink) == ["generated", "session"]
    assert strict.get_status().orphans == 0


def test_an_id_that_cannot_be_one_is_replaced(client: SFRAGClient) -> None:
    session_id = client.join_session(object())  # type: ignore[arg-type]
    assert client.end_session(session_id).partial_view
    assert client.get_status().replaced == {"session_id": 1}


def test_room_is_made_for_a_new_session_by_ending_the_least_used(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, max_sessions=2)
    for name in ("a", "b"):
        client.trace_query("q", session_id=name)
    client.trace_generation("a", "m")
    client.trace_query("q", session_id="c")
    assert [(p["session_id"], p["end_reason"]) for p in sink.of_type("llm.rag.session")] == [("b", "evicted")]
    assert client.end_session("b").end_reason == "evicted"
    client.join_session("d")
    assert client.get_status().active_sessions == 2


def test_an_idle_session_is_ended_by_the_next_call(
    connect: Connect, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(sink, session_idle_s=60)
    client.trace_query("q", session_id="a")
    later = time.monotonic_ns() + 61_000_000_000
    monkeypatch.setattr(_clock, "monotonic_ns", lambda: later)
    client.trace_query("q", session_id="b")
    (ended,) = sink.of_type("llm.rag.session")
    assert (ended["session_id"], ended["end_reason"]) == ("a", "idle_timeout")


def test_an_idle_session_is_ended_without_any_call(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, delivery="thread", session_idle_s=0.01)
    client.trace_query("q")
    deadline = time.monotonic() + 5
    while not sink.of_type("llm.rag.session") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sink.of_type("llm.rag.session")[0]["end_reason"] == "idle_timeout"


def test_shutdown_ends_open_sessions(client: SFRAGClient, sink: MemorySink) -> None:
    client.trace_query("q")
    assert client.shutdown() == 0
    assert sink.of_type("llm.rag.session")[0]["end_reason"] == "process_exit"


def test_more_chunk_ids_than_are_remembered_are_marked(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, max_chunk_ids=2)
    session_id = client.trace_query("q")
    for first in "ac":
        client.trace_retrieval(session_id, [{"chunk_id": first + str(n), "score": 0.1, "source": ""} for n in range(3)])
        client.trace_generation(session_id, "m", chunk_ids_used=[first, first * 2])
    summary = client.end_session(session_id)
    assert summary.chunk_ids_truncated
    assert len(summary.unique_chunk_ids) == 2
    assert summary.total_chunks_used == 2
    assert client.get_status().replaced == {"chunks_too_many": 2}


def test_reasons_are_bounded_however_many_there_are(client: SFRAGClient) -> None:
    runtime = client.cell.get()
    for number in range(500):
        runtime.note(f"reason {number}")
    assert len(client.get_status().replaced) == 201
    assert client.get_status().replaced["other"] == 300


def test_a_failure_whose_class_is_made_of_text_is_counted_under_a_name_of_pythons_own(client: SFRAGClient) -> None:
    class Telling:
        """Passes for a number of numpy, and answers with an error of its own making."""

        shape = ()

        def item(self) -> None:
            raise type("text of the question", (LookupError,), {})

    Telling.__module__ = "numpy"
    client.trace_query("q", top_k=Telling())  # type: ignore[arg-type]
    assert client.get_status().replaced == {"trace_query_failed:LookupError": 1}


def test_what_tags_take_counts_towards_the_bytes_that_may_wait(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, delivery="thread", queue_bytes=1 << 16, batch_events=1, batch_delay_s=0.0)
    with client.bind(**{f"tag{number}": "x" * 200 for number in range(49)}):
        for _ in range(100):
            client.trace_generation("s", "m")
    pending = client.get_status().sinks["hung"].pending
    hung.release.set()
    assert pending * 49 * 160 < (1 << 16) + 49 * 160 * 2


# -- sampling -------------------------------------------------------------------------------------------------------


@pytest.fixture
def sampling(connect: Connect, sink: MemorySink) -> SFRAGClient:
    return connect(sink, sample_rate=0.5)


def test_stages_of_a_session_outside_the_sample_are_dropped_at_its_end(sampling: SFRAGClient, sink: MemorySink) -> None:
    for name in (IN, OUT):
        sampling.trace_query("q", session_id=name)
    assert sampling.get_status().sinks["memory"].pending == 1
    for name in (IN, OUT):
        sampling.end_session(name)
    assert kinds(sink) == ["query", "session", "session"]
    ledger = sampling.get_status().sinks["memory"]
    assert ledger.dropped == {"sampled": 1}
    assert sampling.get_status().status == "ok"


@pytest.mark.parametrize(
    "reason",
    [
        lambda client: client.trace_generation(OUT, "m", status="error"),
        lambda client: client.trace_retrieval(OUT, [], status="timeout"),
        lambda client: client.trace_generation(OUT, "m", grounding_score=0.1),
        lambda client: client.escalate(OUT, "r"),
    ],
)
def test_a_session_worth_a_look_is_kept_whole(
    reason: Callable[[SFRAGClient], None], sampling: SFRAGClient, sink: MemorySink
) -> None:
    sampling.trace_query("q", session_id=OUT)
    reason(sampling)
    sampling.trace_generation(OUT, "m")
    sampling.end_session(OUT)
    sampling.trace_evaluation(OUT, faithfulness=1.0)
    sampling.trace_query("q", session_id=OUT)
    sampling.end_session(OUT)
    # The last query is one of a new run, which is worth no look.
    assert kinds(sink)[-2:] == ["evaluated", "session"]
    assert len(sink.events) == 6
    assert sampling.get_status().sinks["memory"].dropped == {"sampled": 1}


def test_an_exception_that_leaves_the_block_is_worth_a_look(sampling: SFRAGClient, sink: MemorySink) -> None:
    with pytest.raises(LookupError), sampling.session("q", session_id=OUT):
        raise LookupError
    assert kinds(sink) == ["query", "session"]


def test_an_orphan_is_sampled_by_its_session_too(sampling: SFRAGClient, sink: MemorySink) -> None:
    sampling.trace_generation(OUT, "m")
    sampling.trace_generation(OUT, "m", status="error")
    sampling.trace_generation(IN, "m")
    assert len(sink.events) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, (5, ["top_k"])),
        ({"top_k": None}, (5, ["top_k"])),
        ({"top_k": 0}, (5, ["top_k"])),
        ({"top_k": 5}, (5, None)),
        ({"top_k": 3}, (3, None)),
    ],
)
def test_a_top_k_that_nobody_gave_is_marked(
    client: SFRAGClient, sink: MemorySink, given: dict[str, int], said: tuple[int, list[str] | None]
) -> None:
    client.trace_query("q", **given)
    with client.session("q", **given):
        pass
    for payload in sink.of_type("llm.rag.query"):
        assert (payload["top_k"], payload.get("assumed")) == said


def test_what_can_be_held_back_is_bounded(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, sample_rate=0.0, queue_events=2)
    for _ in range(3):
        client.trace_query("q", session_id="s")
    assert client.get_status().sinks["memory"].dropped == {"sampling_buffer_full": 1}
    assert client.get_status().sinks["memory"].pending == 2


def test_sessions_that_idle_make_room_for_a_bad_one_which_arrives_whole(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, sample_rate=0.0, queue_events=6)
    for number in range(9):
        client.trace_query("q", session_id=f"idle-{number}")
    client.trace_retrieval("idle-3", [])
    for call in (client.trace_query("q", session_id="bad"), client.trace_retrieval("bad", [])):
        assert call in {"bad", None}
    client.trace_generation("bad", "m", grounding_score=0.1)
    client.trace_generation("idle-3", "m", status="error")
    assert [(event.session_id, event.event_type) for event in sink.events] == [
        ("bad", "llm.rag.query"), ("bad", "llm.rag.retrieved"), ("bad", "llm.rag.generated"),
        ("idle-3", "llm.rag.query"), ("idle-3", "llm.rag.retrieved"), ("idle-3", "llm.rag.generated"),
    ]  # fmt: skip
    ledger = client.get_status().sinks["memory"]
    assert ledger.balanced
    assert (ledger.dropped, ledger.pending) == ({"sampling_buffer_full": 6}, 2)


def test_a_session_without_end_does_not_crowd_out_the_others(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, sample_rate=0.0, queue_events=10)
    client.trace_query("q", session_id="bad")
    for _ in range(50):
        client.trace_query("q", session_id="endless")
    client.trace_generation("bad", "m", status="error")
    assert kinds(sink) == ["query", "generated"]
    assert client.get_status().sinks["memory"].balanced


def test_what_is_held_back_is_handed_on_by_a_reconfiguration(sampling: SFRAGClient) -> None:
    sampling.trace_query("q", session_id=OUT)
    after = MemorySink()
    sampling.configure(sinks=after, delivery="sync", sample_rate=0.5)
    sampling.trace_generation(OUT, "m", status="error")
    assert kinds(after) == ["query", "generated"]


# -- modes ----------------------------------------------------------------------------------------------------------


def test_disabled_every_call_is_a_no_op_that_still_gives_ids(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, disabled=True)
    assert client.trace_query("q", session_id="mine") == "mine"
    session_id = client.trace_query("q")
    assert len(session_id) == 26
    client.trace_retrieval(session_id, [object()])
    client.trace_rerank(session_id, "m")
    client.trace_generation(session_id, "m")
    client.trace_evaluation(session_id)
    client.escalate(session_id, "r")
    assert client.join_session("other") == "other"
    assert client.end_session(session_id).session_id == session_id
    with client.session("q") as session, session.retrieval() as retrieval:
        retrieval.record([object()])
    assert sink.events == []
    assert client.get_status().sinks["memory"].accepted == 0
    assert client.get_status().replaced == {}


def test_the_sandbox_sends_events_to_memory_whatever_the_sinks(connect: Connect, sink: MemorySink) -> None:
    client = connect(sink, sandbox=True)
    client.trace_query("q")
    assert sink.events == []
    assert client.get_status().sinks["memory"].delivered == 1


def test_strict_mode_raises_where_it_would_replace(strict: SFRAGClient) -> None:
    with pytest.raises(StrictModeError, match=r"^top_k: "):
        strict.trace_query("q", top_k=0)
    with pytest.raises(TypeError, match="no_such_keyword"):
        strict.trace_query("q", no_such_keyword=1)  # type: ignore[call-arg]


def test_a_hash_key_makes_every_digest_a_keyed_one(connect: Connect, sink: MemorySink) -> None:
    key = "k" * 32
    client = connect(sink, hash_key=key)
    client.trace_query("question", session_id="s")
    client.trace_retrieval("s", ["text"])
    query, retrieved = (event.payload for event in sink.events)
    assert query["query_hash"] == hmac.digest(key.encode(), b"question", "sha256").hex()
    assert query["query_hash_alg"] == "hmac-sha256"
    assert len(query["query_hash_key_id"]) == 8
    assert retrieved["chunks"][0]["content_hash"] == hmac.digest(key.encode(), b"text", "sha256").hex()
    assert retrieved["query_hash"] == query["query_hash"]


@pytest.mark.parametrize("query", ["", "What is it?", "naïve \u2028 \x00 \x1b[0m", "x" * 1_000_000, "\ud800"], ids=len)
def test_a_query_is_the_sha_256_of_its_utf_8(query: str, strict: SFRAGClient, sink: MemorySink) -> None:
    strict.trace_query(query)
    assert sink.events[0].payload["query_hash"] == hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()


# -- the client -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [sf_rag, sf_feedback, SFRAGClient()], ids=repr)
def test_a_pickled_client_is_the_one_of_the_process_that_unpickles_it(shared: SFServiceClient) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(shared, protocol))  # noqa: S301  made here
        assert again is (sf_feedback if shared is sf_feedback else sf_rag)
    assert copy.copy(shared) is copy.deepcopy(shared) is shared


def test_a_client_with_a_configuration_of_its_own_cannot_be_pickled() -> None:
    client = SFRAGClient(SFClientConfig(api_key="canary"))  # type: ignore[arg-type]
    assert repr(client) == "<SFRAGClient rag>"
    with pytest.raises(TypeError, match="with a configuration of its own cannot be pickled"):
        pickle.dumps(client)


def test_sinks_that_go_because_no_others_were_named_are_said(
    connect: Callable[..., SFRAGClient], sink: MemorySink, caplog: pytest.LogCaptureFixture
) -> None:
    client = connect(sink)
    client.configure(sinks=sink, org_id="acme")
    settle(5)
    assert "keeps none" not in caplog.text
    client.configure(org_id="acme")
    settle(5)
    assert "from now on events go to structlog" in caplog.text


def test_an_endpoint_is_never_contacted_and_the_client_says_so(caplog: pytest.LogCaptureFixture) -> None:
    SFRAGClient(SFClientConfig(endpoint="https://example.invalid", api_key="secret"))  # type: ignore[arg-type]
    settle(5)
    assert "endpoint is never contacted" in caplog.text
    assert "example.invalid" not in caplog.text


def test_a_setting_that_cannot_be_used_changes_nothing(client: SFRAGClient, sink: MemorySink) -> None:
    with pytest.raises(ConfigError, match=r"^sample_rate: ") as caught:
        client.configure(sample_rate=17.25)
    assert "17.25" not in str(caught.value)
    assert caught.value.__context__ is None
    client.trace_query("q")
    assert len(sink.events) == 1


def test_bad_settings_in_the_environment_hurt_no_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPANFORGE_SAMPLE_RATE", "often")
    monkeypatch.setenv("SPANFORGE_SINKS", "carrier-pigeon")
    client = SFRAGClient(SFClientConfig())
    assert client.end_session(client.trace_query("q")).total_queries == 1
    assert list(client.get_status().sinks) == ["structlog"]
    settle(5)
    assert "often" not in caplog.text
    client.shutdown()


def test_a_call_gives_an_id_to_go_on_with_whatever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SFRAGClient(SFClientConfig())

    def fail() -> None:
        raise MemoryError

    monkeypatch.setattr(client.cell, "get", fail)
    assert client.trace_query("q", session_id="mine") == "mine"
    assert len(client.trace_query("q")) == 26
    assert client.join_session("other") == "other"
    with client.session("q") as session:
        assert len(session.session_id) == 26


def test_a_sink_that_fails_at_a_fork_hurts_no_call(connect: Connect) -> None:
    class Fragile(MemorySink):
        def after_fork(self) -> None:
            raise OSError

    client = connect(Fragile())
    client.cell.get().generation = -1
    assert client.trace_query("q", session_id="s") == "s"
