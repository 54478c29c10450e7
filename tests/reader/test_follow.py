"""Following: every line that is written after the first look, through whatever happens to the file."""

from __future__ import annotations

import multiprocessing
import os
import queue
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.stored import event, events, numbers
from support.writers import write_while_followed

from spanforge.namespaces.event import Event
from spanforge.reader import _follow, follow
from spanforge.reader.paths import family
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink


class Follower:
    """Follows in a thread, so that a test can write meanwhile."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.damaged: Counter[str] = Counter()
        self._stop = threading.Event()
        self._found: queue.Queue[Event] = queue.Queue()
        self._thread = threading.Thread(
            target=self._run, args=(follow(path, poll_s=0.01, damaged=self.damaged, stop=self._stop, **options),)
        )
        self._thread.start()

    def _run(self, found: Iterator[Event]) -> None:
        for item in found:
            self._found.put(item)

    def take(self, count: int) -> list[int]:
        return numbers(self._found.get(timeout=20) for _ in range(count))

    def settle(self) -> None:
        """Give it the time of a few looks."""
        self._thread.join(0.08)

    def stop(self) -> list[int]:
        self._stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()
        return numbers(self._found.get() for _ in range(self._found.qsize()))


@pytest.fixture
def started() -> Iterator[list[Follower]]:
    followers: list[Follower] = []
    yield followers
    for follower in followers:
        follower.stop()


@pytest.fixture(params=["jsonl", "sqlite"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JsonlSink | SqliteSink]:
    made = JsonlSink(tmp_path / "events") if request.param == "jsonl" else SqliteSink(tmp_path / "events")
    yield made
    made.close()


def test_new_events_alone(sink: Any, tmp_path: Path, started: list[Follower]) -> None:
    sink.write(events(3))
    started.append(follower := Follower(tmp_path / "events"))
    follower.settle()
    sink.write(events(2, 3))
    assert follower.take(2) == [3, 4]
    sink.write(events(1, 5))
    assert follower.take(1) == [5]
    assert follower.stop() == []


def test_what_is_there_already_first(sink: Any, tmp_path: Path, started: list[Follower]) -> None:
    sink.write(events(3))
    started.append(follower := Follower(tmp_path / "events", from_start=True))
    assert follower.take(3) == [0, 1, 2]
    sink.write(events(1, 3))
    assert follower.take(1) == [3]


def test_a_file_that_is_made_later_is_new_from_its_first_line(
    sink: Any, tmp_path: Path, started: list[Follower]
) -> None:
    started.append(follower := Follower(tmp_path / "events"))
    follower.settle()
    (tmp_path / "events").touch()
    follower.settle()
    sink.write(events(2))
    assert follower.take(2) == [0, 1]


def test_a_folder_that_is_made_later(tmp_path: Path, started: list[Follower]) -> None:
    started.append(follower := Follower(tmp_path / "later" / "events.jsonl"))
    follower.settle()
    JsonlSink(tmp_path / "later" / "events.jsonl").write(events(2))
    assert follower.take(2) == [0, 1]


def test_a_closed_generator_releases_the_file(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    JsonlSink(path).write(events(2))
    found = follow(path, poll_s=0.01, from_start=True)
    assert next(found).payload["number"] == 0
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir())) if descriptors.is_dir() else 0
    found.close()  # type: ignore[attr-defined]  a generator
    if before:
        assert len(list(descriptors.iterdir())) == before - 1
    untouched = follow(tmp_path / "gone.jsonl", poll_s=0.01)
    untouched.close()  # type: ignore[attr-defined]  a generator


def test_a_stop_that_was_set_before(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert list(follow(tmp_path / "gone.jsonl", stop=stop)) == []


def test_lines_that_come_in_pieces_and_damaged_ones(tmp_path: Path, started: list[Follower]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n")
    started.append(follower := Follower(path, max_line_bytes=4000))
    follower.settle()
    with path.open("ab", buffering=0) as file:
        line = event(0).encode() + b"\n"
        file.write(line[:40])
        follower.settle()
        file.write(line[40:])
        assert follower.take(1) == [0]
        file.write(b"garbage\n" + b"x" * 5000 + b"\n" + event(1).encode() + b"\n")
    assert follower.take(1) == [1]
    assert follower.damaged == Counter({"not JSON": 1, "too_long": 1})


def test_rotation_by_this_sink(tmp_path: Path, started: list[Follower]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n")
    started.append(follower := Follower(path))
    follower.settle()
    sink = JsonlSink(path, max_bytes=2000)
    sink.write(events(200))  # many files between two looks
    assert follower.take(200) == list(range(200))
    for number in range(200, 260):
        sink.write(events(1, number))
    assert follower.take(60) == list(range(200, 260))
    assert not follower.damaged


def test_numbered_rotation_as_others_do_it(tmp_path: Path, started: list[Follower]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(event(0).encode() + b"\n")
    started.append(follower := Follower(path, from_start=True))
    assert follower.take(1) == [0]
    sink = JsonlSink(path)
    for number in range(1, 4):
        for old in range(number, 0, -1):
            (tmp_path / f"events.jsonl.{old}").exists() and (tmp_path / f"events.jsonl.{old}").rename(
                tmp_path / f"events.jsonl.{old + 1}"
            )
        path.rename(tmp_path / "events.jsonl.1")
        sink.write(events(1, number))
    assert follower.take(3) == [1, 2, 3]


def test_a_line_written_late_to_the_old_file(tmp_path: Path, started: list[Follower]) -> None:
    path = tmp_path / "events.jsonl"
    late = path.open("ab", buffering=0)
    late.write(event(0).encode() + b"\n")
    started.append(follower := Follower(path, from_start=True))
    assert follower.take(1) == [0]
    path.rename(tmp_path / "events-20260101T000000.000000Z.jsonl")
    follower.settle()  # no live file: it stays with the old one
    late.write(event(1).encode())  # not even with a line end
    path.write_bytes(event(2).encode() + b"\n")
    late.close()
    assert follower.take(2) == [1, 2]


def test_what_was_rotated_is_read_while_no_new_file_is_there(tmp_path: Path, started: list[Follower]) -> None:
    """Of a program that writes now and then, the last lines may stand in a rotated file for long."""
    live = tmp_path / "events.jsonl"
    live.write_bytes(event(0).encode() + b"\n")
    started.append(follower := Follower(live, from_start=True))
    assert follower.take(1) == [0]
    for number in (1, 2, 3):
        live.rename(tmp_path / f"events-2026010{number}T000000.000000Z.jsonl")
        live.write_bytes(event(number).encode() + b"\n")
    live.rename(tmp_path / "events-20260104T000000.000000Z.jsonl")
    assert follower.take(3) == [1, 2, 3]
    follower.settle()
    live.write_bytes(event(4).encode() + b"\n")
    assert follower.take(1) == [4]


def test_truncation_and_replacement(tmp_path: Path, started: list[Follower]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(item.encode() + b"\n" for item in events(3)))
    started.append(follower := Follower(path))
    follower.settle()
    path.write_bytes(event(3).encode() + b"\n")  # truncates
    assert follower.take(1) == [3]
    (tmp_path / "new").write_bytes(event(4).encode() + b"\n")
    (tmp_path / "new").replace(path)
    assert follower.take(1) == [4]


@pytest.mark.skipif(not hasattr(os, "pread"), reason="what stands before the place cannot be read")
@pytest.mark.parametrize("begun", [0, 3])
def test_a_file_that_was_cut_down_and_has_grown_larger(tmp_path: Path, started: list[Follower], begun: int) -> None:
    """Its lines are as long as the old ones were: the place is the beginning of one, and of others before it."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(item.encode() + b"\n" for item in events(3, 100)))
    started.append(follower := Follower(path, last=begun))
    assert follower.take(begun) == [100, 101, 102][:begun]
    follower.settle()
    with path.open("r+b") as file:  # in one step: nothing sees it empty
        file.write(b"".join(item.encode() + b"\n" for item in events(5, 200)))
    assert follower.take(5) == [200, 201, 202, 203, 204]


def test_a_file_that_is_rotated_while_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Follower]
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(event(0).encode() + b"\n")
    started.append(follower := Follower(path, from_start=True))
    assert follower.take(1) == [0]
    opened, refused = Path.open, threading.Event()

    def gone_once(self: Path, *rest: Any) -> Any:
        if self == path and not refused.is_set():
            refused.set()
            raise FileNotFoundError
        return opened(self, *rest)

    (tmp_path / "new").write_bytes(event(1).encode() + b"\n")
    monkeypatch.setattr(Path, "open", gone_once)
    (tmp_path / "new").replace(path)
    assert follower.take(1) == [1]
    assert refused.is_set()


def test_a_sibling_that_vanishes_while_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Follower]
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(event(0).encode() + b"\n")
    started.append(follower := Follower(path, from_start=True))
    assert follower.take(1) == [0]
    listed = Path.iterdir
    monkeypatch.setattr(
        Path, "iterdir", lambda self: [tmp_path / "events-20250101T000000.000000Z.jsonl", *listed(self)]
    )
    path.rename(tmp_path / "events-20260101T000000.000000Z.jsonl")
    JsonlSink(path).write(events(1, 1))
    assert follower.take(1) == [1]


def test_a_rotation_while_files_are_listed_hides_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lists = tmp_path / "events.jsonl", count(1)
    JsonlSink(path).write(events(1))
    found = follow(path, poll_s=0, from_start=True)
    assert numbers([next(found)]) == [0]

    def rotate(number: int) -> None:
        path.rename(tmp_path / f"events-2026010{number}T000000Z.jsonl")
        JsonlSink(path).write(events(1, number))

    def listed(live: Path) -> list[Path]:
        files = family(live)
        if (number := next(lists)) in {2, 3, 6}:
            rotate(number)
        return files

    rotate(1)
    monkeypatch.setattr(_follow, "family", listed)
    assert numbers(next(found) for _ in range(4)) == [1, 2, 3, 6]
    found.close()


def test_many_writers_and_a_fast_rotation(tmp_path: Path, started: list[Follower]) -> None:
    path = tmp_path / "events.jsonl"
    started.append(follower := Follower(path))
    follower.settle()
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_while_followed, args=(path, number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 3
    assert sorted(follower.take(900)) == sorted(worker * 1000 + number for worker in range(3) for number in range(300))


def test_a_store_that_is_replaced_or_cannot_be_read_for_a_moment(tmp_path: Path, started: list[Follower]) -> None:
    path = tmp_path / "events.db"
    sink = SqliteSink(path)
    sink.write(events(5))
    started.append(follower := Follower(path))
    follower.settle()
    sink.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE events RENAME TO away")
        connection.commit()
        follower.settle()
        connection.execute("ALTER TABLE away RENAME TO events")
        connection.commit()
    sink.write(events(1, 5))
    assert follower.take(1) == [5]
    sink.close()
    for file in tmp_path.iterdir():  # the log files too, as SQLite wants it
        file.unlink()
    follower.settle()
    sink.write(events(2, 10))
    assert follower.take(2) == [10, 11]
    sink.close()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    JsonlSink(tmp_path / "events.jsonl").write(events(1))
    found = follow("~/events.jsonl", from_start=True)
    assert numbers([next(found)]) == [0]
