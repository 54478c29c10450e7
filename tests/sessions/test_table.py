"""The open sessions: which is next to end, and what is remembered of those that did."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import pytest

from spanforge import _clock
from spanforge.namespaces.event import Binding
from spanforge.sessions.fold import SessionAggregate, Totals, microseconds
from spanforge.sessions.sampling import always_kept, is_sampled
from spanforge.sessions.table import Session, SessionTable


@pytest.fixture
def table() -> SessionTable:
    return SessionTable(max_open=2, retained=1, idle_s=60.0, id_cap=10, open_ids=1_000)


def test_an_empty_table_owes_nothing(table: SessionTable) -> None:
    assert table.overdue() is None
    assert table.any_open() is None
    assert table.find("a") is table.peek("a") is table.end("a") is table.ended("a") is None
    assert not table.was_kept("a")
    assert len(table) == 0


def test_the_least_recently_used_makes_room(table: SessionTable) -> None:
    for name in "abc":
        table.open(name, Binding())
    table.find("a")
    assert table.overdue() == ("b", "evicted")
    table.end("b")
    assert table.overdue() is None
    assert table.any_open() == "c"


def test_what_a_signal_handler_ends_while_it_is_looked_up_is_not_found(
    table: SessionTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.open("a", Binding())
    monkeypatch.setattr(_clock, "monotonic_ns", lambda: table.end("a") and 0)
    assert table.find("a") is None


def test_what_a_signal_handler_opens_while_the_oldest_is_looked_for_disturbs_nothing(table: SessionTable) -> None:
    class Interrupted(OrderedDict[str, Session]):
        """Gets another session between the two steps of looking for the first."""

        def __iter__(self) -> Iterator[str]:
            steps = super().__iter__()
            self.setdefault("b", Session("b", Binding(), Totals()))
            return steps

    table.open("a", Binding())
    table._open = Interrupted(table._open)
    assert table.any_open() == "a"
    assert len(table) == 2


def test_ended_sessions_are_remembered_as_far_as_their_chunk_ids_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanforge.sessions.table._MAX_ENDED_IDS", 10)
    table = SessionTable(max_open=9, retained=9, idle_s=60.0, id_cap=100, open_ids=1_000)
    for name, chunks in [("a", 4), ("b", 4), ("c", 4), ("d", 50)]:
        found = {"chunks": [{"chunk_id": f"{name}{number}"} for number in range(chunks)]}
        table.open(name, Binding()).totals.add("llm.rag.retrieved", found, 1)
        session = table.end(name)
        assert session is not None
        session.finish("ended")
        if name == "c":
            assert [table.ended(known) is not None for known in "abc"] == [False, True, True]
    assert [table.ended(known) is not None for known in "abcd"] == [False, False, False, True]
    table.open("d", Binding(), joining=True)
    table.end("d")
    assert table._ended_ids == 50
    table.open("d", Binding())
    table.end("d")
    assert table._ended_ids == 0


def test_idle_time_counts_from_the_last_use(table: SessionTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.open("a", Binding())
    later = _clock.monotonic_ns() + 61_000_000_000
    monkeypatch.setattr(_clock, "monotonic_ns", lambda: later)
    assert table.overdue() == ("a", "idle_timeout")
    table.find("a")
    assert table.overdue() is None


def test_a_bounded_number_of_summaries_is_remembered(table: SessionTable) -> None:
    for name in "ab":
        table.open(name, Binding()).finish("ended")
        table.end(name)
    assert table.ended("a") is None
    assert (summary := table.ended("b")) is not None
    assert summary.end_reason == "ended"


def test_a_part_of_another_process_goes_on_where_it_was(table: SessionTable) -> None:
    first = table.open("a", Binding(), joining=True)
    first.partial = True
    first.finish("ended")
    table.end("a")
    assert table.open("a", Binding(), joining=True) is first
    assert first.final is None
    table.end("a")
    assert table.open("a", Binding()) is first


def test_a_name_that_ended_stands_for_a_new_run(table: SessionTable) -> None:
    runs: list[tuple[str, str]] = []
    for conversation in ("", "", "chat-7", ""):
        session = table.open("a", Binding())
        session.conversation = conversation or session.conversation
        assert table.find("a") is table.peek("a") is session
        assert table.id_of("a") == session.session_id
        assert session.totals.queries == 0
        session.totals.add("llm.rag.query", {}, 1)
        runs.append((session.session_id, session.finish("ended")["conversation_id"]))
        table.end("a")
        assert table.id_of("a") == session.session_id
        assert table.ended("a") is session.final
    assert runs == [("a", None), ("a~2", "a"), ("a~3", "chat-7"), ("a~4", "chat-7")]
    assert table.id_of("never seen") == "never seen"


def test_half_a_microsecond_rounds_up() -> None:
    assert [microseconds(value) for value in (0.0, 0.0004, 0.0005, 1.0)] == [0, 0, 1, 1000]


def test_events_of_other_kinds_add_nothing() -> None:
    totals = Totals()
    totals.add("llm.rag.escalated", {"status": "error"}, 1)
    assert totals.summary("s") == Totals().summary("s")
    assert SessionAggregate.empty() != totals


@pytest.mark.parametrize(("rate", "share"), [(0.0, 0), (1.0, 1000)])
def test_a_rate_of_none_or_all_is_exact(rate: float, share: int) -> None:
    assert sum(is_sampled(str(number), rate) for number in range(1000)) == share


def test_a_rate_is_about_its_share_and_grows_without_letting_go() -> None:
    few = {number for number in range(2000) if is_sampled(str(number), 0.25)}
    more = {number for number in range(2000) if is_sampled(str(number), 0.5)}
    assert few < more
    assert len(few) == pytest.approx(500, rel=0.2)


@pytest.mark.parametrize(
    ("kind", "payload", "kept"),
    [
        ("llm.rag.generated", {"status": "error"}, True),
        ("llm.rag.retrieved", {"status": "timeout"}, True),
        ("llm.rag.retrieved", {"status": "partial"}, False),
        ("llm.rag.generated", {"grounding_score": 0.49}, True),
        ("llm.rag.generated", {"grounding_score": 0.5}, False),
        ("llm.rag.escalated", {}, True),
        ("llm.rag.query", {}, False),
    ],
)
def test_what_is_reason_enough_to_keep_a_session(kind: str, payload: dict[str, object], kept: bool) -> None:
    assert always_kept(kind, payload, 0.5) is kept


# -- chunk ids of open sessions ---------------------------------------------------------------------------------------


def retrieved(table: SessionTable, name: str, chunks: int) -> Totals:
    session = table.find(name) or table.open(name, Binding())
    found = {"chunks": [{"chunk_id": f"{name}-{number}"} for number in range(chunks)]}
    session.totals.add("llm.rag.retrieved", found, 1)
    return session.totals


def test_open_sessions_share_their_room_for_chunk_ids() -> None:
    table = SessionTable(max_open=9, retained=9, idle_s=60.0, id_cap=100, open_ids=80)
    assert retrieved(table, "a", 40).ids == 40
    assert table.overdue() is None
    assert retrieved(table, "b", 60).ids == 40
    assert (table.find("a").totals.truncated, table.find("b").totals.truncated) == (False, True)  # type: ignore[union-attr]
    assert table.overdue() == ("a", "evicted")
    table.end("a")
    assert table.overdue() is None
    assert retrieved(table, "b", 60).ids == 60


def test_a_session_that_goes_on_takes_its_room_again() -> None:
    table = SessionTable(max_open=9, retained=9, idle_s=60.0, id_cap=100, open_ids=80)
    retrieved(table, "a", 40)
    table.end("a")
    table.open("a", Binding(), joining=True)
    assert retrieved(table, "b", 60).ids == 40


def test_the_only_session_is_not_ended_however_many_ids_it_has() -> None:
    table = SessionTable(max_open=9, retained=9, idle_s=60.0, id_cap=100, open_ids=10)
    assert retrieved(table, "a", 40).ids == 10
    assert table.overdue() is None


def test_less_room_is_less_from_the_next_id_on() -> None:
    table = SessionTable(max_open=9, retained=9, idle_s=60.0, id_cap=100, open_ids=80)
    retrieved(table, "a", 40)
    table.limit(max_open=9, retained=9, idle_s=60.0, id_cap=100, open_ids=20)
    assert (retrieved(table, "b", 5).ids, retrieved(table, "a", 41).ids) == (0, 40)
    table.end("a")
    assert retrieved(table, "b", 5).ids == 5
