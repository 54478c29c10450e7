"""The sqlite sink: one row an event, many processes, and a view that agrees with the fold."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stored import EVENTS, LAW, event, events, numbers
from support.writers import write_rows

from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.reader import read_events
from spanforge.sessions.aggregate import SessionAggregate
from spanforge.sinks._quiet import Quiet
from spanforge.sinks._schema import MIGRATIONS
from spanforge.sinks.sqlite import SqliteSink

POSIX = os.name == "posix"
METHODS = [name for name in ("fork", "spawn") if name in multiprocessing.get_all_start_methods()]


def rows(path: Path, query: str = "SELECT count(*) FROM events") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def session_row(path: Path, session_id: str = "s1") -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute("SELECT * FROM sessions WHERE session_id = ?", (session_id,)).fetchall()
    assert len(found) == 1
    return dict(found[0])


@given(st.lists(EVENTS, max_size=8, unique_by=lambda item: item.event_id))
@settings(LAW, max_examples=25)
def test_every_event_comes_back_as_it_was(tmp_path: Path, stored: list[Event]) -> None:
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
    sink = SqliteSink(path)
    sink.write(stored)
    sink.write(stored[::-1])  # a retry of what had arrived
    assert list(read_events(path)) == stored
    rows(path, "SELECT * FROM sessions")
    sink.close()
    sink.close()
    assert list(read_events(path)) == stored


def test_the_file_its_mode_and_its_shape(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "events.db"
    before = os.umask(0o022)
    try:
        sink = SqliteSink(path)
        assert not path.parent.exists()
        sink.write(events(2))
    finally:
        os.umask(before)
    if POSIX:
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    plan = str(rows(path, "EXPLAIN QUERY PLAN SELECT line FROM events WHERE session_id = 's1' ORDER BY event_id"))
    assert "events_by_session" in plan
    assert "TEMP B-TREE" not in plan
    assert "events_by_time" in str(rows(path, "EXPLAIN QUERY PLAN SELECT line FROM events WHERE timestamp > 'x'"))
    assert "events_by_type" in str(rows(path, "EXPLAIN QUERY PLAN SELECT line FROM events WHERE event_type = 'x'"))
    sink.close()


@pytest.mark.parametrize("path", ["", "a\0b", 7, None])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(ConfigError, match=r"^path: "):
        SqliteSink(path)


def test_a_relative_path_is_fixed_when_the_sink_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sink = SqliteSink("events.db", name="mine")
    assert sink.name == "mine"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    sink.write(events(1))
    sink.close()
    assert (tmp_path / "events.db").exists()


@pytest.mark.parametrize("method", METHODS)
def test_processes_that_open_and_write_at_once(tmp_path: Path, method: str) -> None:
    context = multiprocessing.get_context(method)
    path, barrier = tmp_path / "events.db", context.Barrier(4)
    workers = [context.Process(target=write_rows, args=(path, number, barrier)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    found = numbers(read_events(path))
    assert len(found) == 400
    assert set(found) == {worker * 1000 + number for worker in range(4) for number in range(100)}


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(SinkWriteError, match="newer spanforge: upgrade") as caught:
        SqliteSink(path).write(events(1))
    assert not caught.value.retryable
    assert path.read_bytes() == before


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE users (name)")
    with pytest.raises(SinkWriteError, match="a file of its own") as caught:
        SqliteSink(path).write(events(1))
    assert not caught.value.retryable
    assert rows(path, "SELECT name FROM sqlite_master") == [("users",)]


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"dear diary, " * 1000)
    with pytest.raises(SinkWriteError, match="SQLITE_NOTADB") as caught:
        SqliteSink(path).write(events(1))
    assert not caught.value.retryable
    assert path.read_bytes() == b"dear diary, " * 1000


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(SinkWriteError, match=r"EISDIR|EACCES") as caught:
        SqliteSink(tmp_path).write(events(1))
    assert caught.value.retryable
    assert caught.value.delivered == 0


def test_locked_by_another_for_too_long_then_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    sink.write(events(1))
    monkeypatch.setattr("spanforge.sinks.sqlite._BUSY_S", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SinkWriteError, match="SQLITE_BUSY") as caught:
            sink.write(events(3))
        assert caught.value.retryable
        assert caught.value.__context__ is None
        monkeypatch.setattr("spanforge.sinks.sqlite._BUSY_S", 30.0)
        release = threading.Timer(0.1, lambda: other.execute("ROLLBACK"))
        release.start()
        sink.write(events(3))
        release.join()
    assert rows(path) == [(3,)]
    sink.close()


def test_one_event_that_cannot_be_encoded(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    with pytest.raises(SinkWriteError, match="TypeError") as caught:
        sink.write([*events(2), event(2, bad=object()), event(3)])
    sink.close()
    assert (caught.value.delivered, caught.value.retryable) == (2, False)
    assert caught.value.__context__ is None
    assert numbers(read_events(path)) == [0, 1]


def test_a_database_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    sink.write(events(1))
    for file in tmp_path.iterdir():
        file.unlink()
    sink.write(events(2, 1))
    assert numbers(read_events(path)) == [1, 2]
    sink.close()


@pytest.mark.skipif(not POSIX, reason="RLIMIT_FSIZE is POSIX")
def test_a_full_disk_costs_nothing_but_the_try(tmp_path: Path) -> None:
    code = f"""
import resource, sys
sys.path.insert(0, "tests")
from support.stored import events
from spanforge.exceptions import SinkWriteError
from spanforge.sinks.sqlite import SqliteSink
sink = SqliteSink({str(tmp_path / "events.db")!r})
sink.write(events(10))
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
refused = []
for start in range(10, 1010, 100):
    try:
        sink.write(events(100, start))
    except SinkWriteError as error:
        refused.append(start)
        assert error.retryable and not error.delivered, error
        print(error.reason)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
assert refused
for start in refused:
    sink.write(events(100, start))
sink.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(numbers(read_events(tmp_path / "events.db"))) == list(range(1010))
    assert rows(tmp_path / "events.db", "PRAGMA integrity_check") == [("ok",)]


# -- fork -------------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing to prove without fork")


@needs_fork
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_child_writes_on_a_connection_of_its_own_and_the_parents_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    sink.write(events(3))
    pid = os.fork()
    if not pid:
        sink.after_fork()
        sink.write(events(2, 10))
        sink.close()
        os._exit(0)
    sink.write(events(2, 20))
    assert os.waitpid(pid, 0)[1] == 0
    sink.write(events(2, 30))
    sink.close()
    assert sorted(numbers(read_events(path))) == [0, 1, 2, 10, 11, 20, 21, 30, 31]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


@needs_fork
def test_the_end_of_a_childs_interpreter_does_not_close_the_parents_connection(tmp_path: Path) -> None:
    code = f"""
import os, sys
sys.path.insert(0, "tests")
from support.stored import events
from spanforge.sinks.sqlite import SqliteSink
sink = SqliteSink({str(tmp_path / "events.db")!r})
sink.write(events(3))
if not os.fork():
    sink.after_fork()
    del sink
    sys.exit(0)  # with the whole of finalisation
os.wait()
assert os.path.getsize({str(tmp_path / "events.db-wal")!r})
sink.write(events(2, 3))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert numbers(read_events(tmp_path / "events.db")) == [0, 1, 2, 3, 4]


@needs_fork
def test_a_fork_before_the_first_write(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "events.db")
    sink.after_fork()
    sink.write(events(1))
    sink.close()


@needs_fork
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_forks_while_another_thread_writes_do_not_hang_the_child(tmp_path: Path) -> None:
    path, done = tmp_path / "events.db", threading.Event()
    sink = SqliteSink(path)

    def write_on() -> None:
        start = 1000
        while not done.is_set():
            sink.write(events(50, start))
            start += 50

    thread = threading.Thread(target=write_on)
    thread.start()
    try:
        for child in range(60):
            pid = os.fork()
            if not pid:
                sink.after_fork()
                sink.write(events(1, child))
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        done.set()
        thread.join()
        sink.close()
    assert set(range(60)) <= set(numbers(read_events(path)))


@needs_fork
def test_a_fork_is_held_up_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanforge.sinks._quiet._PATIENCE_S", 0.01)
    quiet = Quiet()
    with quiet:
        pid = os.fork()
        if not pid:
            with quiet:  # nobody in the child holds it
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    with quiet:
        pass


def test_what_a_child_does_with_what_it_inherits(tmp_path: Path) -> None:
    """As in a forked child, but here, where it can be seen: nothing is closed, and locks are new."""
    sink = SqliteSink(tmp_path / "events.db")
    sink.write(events(1))
    inherited, quiet = sink._connection, Quiet()
    assert inherited is not None
    references = sys.getrefcount(inherited)
    sink._quiet.lock.acquire()
    sink.after_fork()
    assert sys.getrefcount(inherited) == references + 1, "one from the sink, and one for ever"
    with quiet:
        Quiet.in_child()
        with quiet:
            pass
        quiet.lock.acquire()
    inherited.execute("SELECT 1")
    sink.write(events(1, 1))
    sink.close()
    assert numbers(read_events(tmp_path / "events.db")) == [0, 1]


def test_a_batch_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    sink.write(events(1))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TRIGGER choosy BEFORE INSERT ON events WHEN NEW.line LIKE '%\"number\":3%' "
            "BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    with pytest.raises(SinkWriteError, match="SQLITE_CONSTRAINT") as caught:
        sink.write(events(5, 1))
    assert caught.value.delivered == 0
    sink.write(events(2, 1))
    assert numbers(read_events(path)) == [0, 1, 2]
    sink.close()


# -- the view ---------------------------------------------------------------------------------------------------

LATENCIES = st.floats(0, 1e6) | st.sampled_from([0.0, 0.0005, 0.0015, 0.0025, 2.5, 1e300])
STATUSES = st.sampled_from(["ok", "partial", "error", "timeout"])
COUNTS = st.integers(0, 100_000) | st.just(2**62)


def _stage(event_type: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(event_type), st.fixed_dictionaries({}, optional=fields))


STAGES = st.one_of(
    _stage("llm.rag.query", latency_ms=LATENCIES, retriever_name=st.sampled_from(["", "a", "b"])),
    _stage(
        "llm.rag.retrieved",
        latency_ms=LATENCIES,
        status=STATUSES,
        chunks=st.lists(st.fixed_dictionaries({"chunk_id": st.sampled_from("abc")}), max_size=3),
    ),
    _stage("llm.rag.reranked", latency_ms=LATENCIES, status=STATUSES),
    _stage(
        "llm.rag.generated",
        latency_ms=LATENCIES,
        status=STATUSES,
        grounding_score=st.floats(0, 1) | st.sampled_from([0.5e-9, 1.5e-9, 0.1]),
        prompt_tokens=COUNTS,
        output_tokens=COUNTS,
        chunk_ids_used=st.lists(st.sampled_from("abcd"), max_size=4),
    ),
    _stage("llm.rag.evaluated", latency_ms=LATENCIES),
    _stage("llm.rag.session", error_type=st.just("KeyError"), status=STATUSES),
)


@given(st.lists(STAGES, min_size=1, max_size=8), st.randoms())
@settings(LAW, max_examples=40)
def test_the_view_of_a_session_is_the_fold(tmp_path: Path, stages: list[tuple[str, dict[str, Any]]], rng: Any) -> None:
    stages = [("llm.rag.query", {}), *stages]
    stored = [event(number, event_type=kind, **payload) for number, (kind, payload) in enumerate(stages)]
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
    sink = SqliteSink(path)
    shuffled = list(stored)
    rng.shuffle(shuffled)
    sink.write(shuffled)
    sink.close()
    view, fold = session_row(path), SessionAggregate.of(*stored).summary("s1")
    absurd = any(payload.get("latency_ms") == 1e300 or 2**62 in payload.values() for _, payload in stages)
    for name, value in view.items():
        expected = getattr(fold, name, None)
        if name in ("first_event_at", "last_event_at", "events", "ended", "from_stages"):
            continue
        if absurd and isinstance(value, (int, float)):
            assert value == pytest.approx(expected)
        else:
            assert value == expected, name
    assert view["events"] == len(stored)
    assert view["ended"] == any(kind == "llm.rag.session" for kind, _ in stages)
    assert view["from_stages"] == 1
    assert (view["first_event_at"], view["last_event_at"]) == (stored[0].timestamp, stored[-1].timestamp)


def test_sessions_without_stages_show_what_their_summaries_say(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    summary = {
        "total_queries": 1,
        "total_chunks_used": 2,
        "total_input_tokens": 100,
        "avg_grounding_score": 0.5,
        "min_grounding_score": 0.4,
        "grounding_count": 1,
        "total_latency_ms": 12.5,
        "retriever_name": "pinecone",
        "status": "ok",
    }
    other = {**summary, "avg_grounding_score": 0.8, "grounding_count": 2, "status": "partial", "retriever_name": ""}
    sink = SqliteSink(path)
    sink.write([event(1, event_type="llm.rag.session", **summary), event(2, event_type="llm.rag.session", **other)])
    sink.write([event(3, session_id="s2", event_type="llm.feedback.submitted")])
    sink.write([event(4, session_id="", event_type="llm.feedback.submitted")])
    view = session_row(path)
    assert view["from_stages"] == 0
    assert (view["total_queries"], view["total_chunks_used"], view["total_input_tokens"]) == (2, 4, 200)
    assert view["avg_grounding_score"] == pytest.approx(0.7)
    assert (view["min_grounding_score"], view["grounding_count"], view["total_latency_ms"]) == (0.4, 3, 25.0)
    assert (view["status"], view["retriever_name"], view["ended"]) == ("partial", "pinecone", 1)
    feedback_only = session_row(path, "s2")
    assert (feedback_only["status"], feedback_only["total_queries"], feedback_only["ended"]) == ("ok", 0, 0)
    assert len(rows(path, "SELECT * FROM sessions")) == 2
    sink.close()
