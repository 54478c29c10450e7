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
from dataclasses import replace
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
from spanforge.sinks._quiet import Quiet
from spanforge.sinks._schema import MIGRATIONS
from spanforge.sinks._session_table import fold_events
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


# -- sessions (tests/analysis/test_one_fold.py has the law) -----------------------------------------------------------


def sound(number: int, **fields: Any) -> Event:
    """Return an event whose payload is what its type says."""
    item = event(number, **fields)
    return replace(item, payload={name: value for name, value in item.payload.items() if name != "number"})


def test_of_several_summaries_without_stages_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    fields = {"event_type": "llm.rag.session", "retriever_name": "pinecone", "total_chunks_used": 2}
    sink = SqliteSink(path)
    sink.write([sound(2, total_queries=2, status="partial", **fields), sound(1, total_queries=1, **fields)])
    view = session_row(path)
    assert (view["from_stages"], view["ended"], view["events"]) == (0, 1, 2)
    assert (view["total_queries"], view["total_chunks_used"], view["status"]) == (2, 2, "partial")
    sink.write([sound(0, prompt_tokens=7, event_type="llm.rag.generated", model="m")])
    view = session_row(path)
    assert (view["from_stages"], view["total_queries"], view["total_input_tokens"]) == (1, 0, 7), "a late stage"
    sink.close()


def test_events_of_no_session_and_damaged_ones_are_stored_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    damaged = sound(1, latency_ms=-1.0)
    sink.write([sound(0), damaged, replace(sound(2), session_id="")])
    assert session_row(path)["events"] == 1
    assert rows(path) == [(3,)]
    assert rows(path, "SELECT * FROM damage") == [("payload", 1)]
    assert rows(path, "SELECT * FROM folded") == [(3, 1)]
    sink.close()


def test_two_organisations_may_use_one_session_id(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    sink.write([sound(0, retriever_name="a"), replace(sound(1, retriever_name="b"), org_id="acme")])
    assert rows(path, "SELECT org_id, retriever_name, total_queries FROM sessions ORDER BY 1") == [
        ("", "a", 1),
        ("acme", "b", 1),
    ]
    sink.close()


def test_a_session_is_forgotten_with_its_last_event(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    sink.write([sound(0), sound(1), sound(2, session_id="s2")])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM events WHERE seq = 1")
        assert len(rows(path, "SELECT * FROM sessions")) == 2
        connection.execute("DELETE FROM events WHERE seq = 2")
    assert rows(path, "SELECT session_id FROM sessions") == [("s2",)]
    assert len(rows(path, "SELECT * FROM session_state")) == 1
    sink.close()


def test_an_id_is_one_event_within_its_session_and_its_organisation(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    mine, other = sound(0), replace(sound(0, session_id="s2"))
    theirs = replace(mine, org_id="acme")
    assert {mine.event_id} == {one.event_id for one in (mine, other, theirs)}
    sink, second = SqliteSink(path), SqliteSink(path)
    sink.write([mine, other, mine])
    second.write([theirs, other])
    sink.write([theirs, mine])
    assert list(read_events(path)) == list(read_events(path, unique=True)) == [mine, other, theirs]
    assert rows(path, "SELECT org_id, session_id, total_queries FROM sessions ORDER BY 1, 2") == [
        ("", "s1", 1),
        ("", "s2", 1),
        ("acme", "s1", 1),
    ]
    sink.close()
    second.close()


@pytest.mark.parametrize("cuts", [[], [1], [1, 2], [2]])
def test_what_is_unsound_keeps_no_sound_event_out(tmp_path: Path, cuts: list[int]) -> None:
    path = tmp_path / "events.db"
    first, other = sound(0, retriever_name="first"), sound(0, retriever_name="other")
    unsound = replace(first, payload={**first.payload, "latency_ms": "12"})
    sink, batch = SqliteSink(path), [unsound, first, unsound, other]
    for start, stop in zip([0, *cuts], [*cuts, len(batch)], strict=True):
        sink.write(batch[start:stop])
    assert list(read_events(path)) == [unsound, first], "and what was stored stays"
    assert rows(path, "SELECT retriever_name, total_queries, events FROM sessions") == [("first", 1, 1)]
    assert rows(path, "SELECT * FROM damage") == [("payload", 1)]
    sink.close()


def test_of_several_that_are_one_the_stored_one_is_folded(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    second_version(path, [sound(0), sound(1, retriever_name="stored"), sound(2)])
    sink = SqliteSink(path)
    sink.write([sound(1, retriever_name="later"), sound(3, session_id="s2"), sound(3, session_id="s2", total=1)])
    assert rows(path, "SELECT retriever_name, total_queries FROM sessions") == [("stored", 3), ("", 1)]
    assert len(list(read_events(path))) == 4
    sink.close()


OLD_ROW = "INSERT INTO events (event_id, event_type, timestamp, session_id, line) VALUES (?, ?, ?, ?, ?)"


def old_row(item: Event) -> tuple[str, ...]:
    return item.event_id, item.event_type, item.timestamp, item.session_id, item.encode().decode("ascii")


def test_a_database_of_the_first_version_gets_its_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanforge.sinks._session_table._MOST", 2)
    path = tmp_path / "events.db"
    before = [sound(0), replace(sound(1, session_id="s2"), org_id="acme"), sound(2), sound(3)]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in (*MIGRATIONS[0], "PRAGMA user_version = 1"):
            connection.execute(statement)
        connection.executemany(OLD_ROW, map(old_row, before))
        connection.execute("INSERT INTO events VALUES (NULL, 'x', 'llm.rag.query', '', 's1', 'no event')")
    sink = SqliteSink(path)
    sink.write([sound(4)])
    assert rows(path, "SELECT seq FROM folded") == [(2,)], "a part at a time"
    sink.write([])
    sink.write([replace(before[1])])
    assert rows(path, "SELECT org_id, session_id, total_queries FROM sessions ORDER BY 1") == [
        ("", "s1", 4),
        ("acme", "s2", 1),
    ]
    assert rows(path, "SELECT * FROM damage") == [("not JSON", 1)]
    assert rows(path, "SELECT org_id FROM events WHERE session_id = 's2'") == [("acme",)]
    sink.close()


LATER = ("total_cost_usd", "answers", "cited", "judged", "helpful", "reordered")
"""Columns of the table of sessions that the third version does not have."""


def fold_as_before(connection: sqlite3.Connection) -> None:
    """Fold what is stored as it was folded when the table had fewer figures."""
    for name in LATER:
        connection.execute(f"ALTER TABLE session ADD COLUMN {name}")
    connection.execute("ALTER TABLE folded RENAME COLUMN unsessioned TO without_session")
    fold_events(connection, {}, 0)
    connection.execute("ALTER TABLE folded RENAME COLUMN without_session TO unsessioned")
    for name in LATER:
        connection.execute(f"ALTER TABLE session DROP COLUMN {name}")


def second_version(path: Path, stored: list[Event]) -> list[tuple[Any, ...]]:
    """Make a store as it was when an id was one event's for all, the last two events not folded; return its rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in (*MIGRATIONS[0], *MIGRATIONS[1], "PRAGMA user_version = 2"):
            connection.execute(statement)
        connection.executemany(OLD_ROW, map(old_row, stored[:-2]))
        connection.executemany(
            "UPDATE events SET org_id = ? WHERE event_id = ?", [(e.org_id, e.event_id) for e in stored]
        )
        fold_as_before(connection)
        connection.executemany(OLD_ROW, map(old_row, stored[-2:]))
        connection.execute("INSERT INTO events VALUES (99, 'gone', '', '', '', '', '')")
        connection.execute("DELETE FROM events WHERE seq = 99")
        connection.execute("CREATE VIEW mine AS SELECT count(*) FROM events")
    return rows(path, "SELECT seq, event_id, line FROM events")


STORED = [sound(n, session_id=f"s{n % 2}") for n in range(5)]
STORED[1] = replace(STORED[1], org_id="acme")
STORED[4] = replace(STORED[4], org_id="acme")


def check_as_of_today(path: Path, before: list[tuple[Any, ...]], added: int) -> None:
    """Check that a store has today's shape, what it had before, and so many events more."""
    assert rows(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "SELECT seq, event_id, line FROM events ORDER BY seq")[: len(before)] == before
    sums = "SELECT org_id, session_id, total_queries FROM sessions ORDER BY 1, 2"
    assert [row for row in rows(path, sums) if row[1] in {"s0", "s1"}] == [
        ("", "s0", 2),
        ("", "s1", 1),
        ("acme", "s0", 1),
        ("acme", "s1", 1),
    ]
    assert rows(path, "SELECT * FROM mine") == [(len(before) + added,)]


def test_a_store_of_the_second_version_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    before = second_version(path, STORED)
    sink = SqliteSink(path)
    again = replace(STORED[0], session_id="elsewhere")
    sink.write([*STORED, again])
    check_as_of_today(path, before, 1)
    assert rows(path, "SELECT seq > 99 FROM events WHERE session_id = 'elsewhere'") == [(1,)], "no place is given twice"
    sink.close()


def test_a_store_of_the_third_version_learns_who_its_sessions_name(tmp_path: Path) -> None:
    stored = [replace(sound(n, session_id=f"s{n % 2}", namespace="kb"), actor_id="ann") for n in range(4)]
    fresh, path = SqliteSink(tmp_path / "fresh.db"), tmp_path / "events.db"
    fresh.write(stored)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("org_of", 1, lambda _: "")
        for step in MIGRATIONS[:3]:
            for statement in step:
                connection.execute(statement)
        connection.execute("PRAGMA user_version = 3")
        row = (
            "INSERT INTO events (event_id, event_type, timestamp, session_id, org_id, line) VALUES (?, ?, ?, ?, '', ?)"
        )
        connection.executemany(row, map(old_row, stored))
        fold_as_before(connection)
        connection.execute("DELETE FROM mention WHERE kind IN ('actor', 'namespace')")
    sink = SqliteSink(path)
    sink.write([])
    named = "SELECT kind, text, session_id, times FROM mention JOIN session ON session.id = session ORDER BY 1, 2, 3"
    assert {row[:2] for row in rows(path, named)} > {("actor", "ann"), ("namespace", "kb")}
    for query in (named, "SELECT * FROM sessions ORDER BY session_id", "SELECT * FROM tally"):
        assert rows(path, query) == rows(tmp_path / "fresh.db", query)
    for one in (fresh, sink):
        one.close()


def test_a_writer_of_the_third_version_folds_no_more(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    sink.write([sound(0)])
    with closing(sqlite3.connect(path)) as earlier, pytest.raises(sqlite3.OperationalError):
        earlier.execute("UPDATE folded SET seq = ?, unsessioned = unsessioned + ?", (1, 0))
    sink.close()


def test_writers_that_find_an_older_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    before, start = second_version(path, STORED), threading.Barrier(3)

    def write(number: int) -> None:
        sink = SqliteSink(path)
        start.wait(60)
        sink.write([*STORED, sound(100 + number, session_id="new")])
        sink.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    check_as_of_today(path, before, 3)


_KILLED = """
import os, sqlite3, sys
from spanforge.sinks._schema import migrate
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.set_trace_callback(lambda statement: os._exit(9) if statement.startswith(sys.argv[2]) else None)
migrate(connection)
"""


@pytest.mark.parametrize("at", ["DROP TABLE events", "CREATE INDEX events_by_type", "DROP VIEW sessions", "COMMIT"])
def test_a_writer_that_is_killed_while_it_moves_a_store_leaves_it_as_it_was(tmp_path: Path, at: str) -> None:
    path = tmp_path / "events.db"
    before = second_version(path, STORED)
    assert subprocess.run([sys.executable, "-c", _KILLED, path, at], check=False).returncode == 9
    assert rows(path, "PRAGMA user_version") == [(2,)]
    assert rows(path, "SELECT seq, event_id, line FROM events") == before
    sink = SqliteSink(path)
    sink.write([])
    check_as_of_today(path, before, 0)
    sink.close()


def test_sessions_that_were_folded_before_the_fold_knew_of_costs_get_theirs(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    costs = {"all": [0.1, 0.2], "some": [0.1, None], "none": [None], "free": [0.0]}
    calls = [(name, cost) for name, found in costs.items() for cost in found]
    sink = SqliteSink(path)
    for number, (name, cost) in enumerate(calls):
        fields = {} if cost is None else {"cost_usd": cost}
        sink.write([sound(number, session_id=name, event_type="llm.rag.generated", model="m", **fields)])
    sink.close()
    told = "SELECT session_id, total_cost_usd FROM session"
    expected = [("all", 0.3), ("some", None), ("none", None), ("free", 0.0)]
    assert rows(path, told) == expected
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP VIEW sessions")
        for name in LATER:
            connection.execute(f"ALTER TABLE session DROP COLUMN {name}")
        connection.execute("ALTER TABLE folded RENAME COLUMN without_session TO unsessioned")
        connection.execute("CREATE VIEW sessions AS SELECT session_id FROM session")
        connection.execute("PRAGMA user_version = 3")
    sink = SqliteSink(path)
    sink.write([])
    assert rows(path, told) == expected
    # Every session is folded on from its state.
    for number, name in enumerate(costs):
        sink.write([sound(99 + number, session_id=name, event_type="llm.rag.generated", model="m", cost_usd=0.5)])
    assert rows(path, told) == [("all", 0.8), ("some", None), ("none", None), ("free", 0.5)]
    sink.close()
