"""The jsonl sink in one process: whole lines, modes, arguments, fsync, chains."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from support.stored import EVENTS, LAW, event, events, numbers, strict_lines

from spanforge import _clock
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.chain import verify_lines
from spanforge.namespaces.event import Event
from spanforge.reader import read_events
from spanforge.sinks.jsonl import JsonlSink

POSIX = os.name == "posix"
KEY = b"k" * 32


@given(st.lists(st.lists(EVENTS, min_size=1, max_size=4), max_size=4))
@settings(LAW, max_examples=30)
def test_every_event_is_a_line_and_comes_back(tmp_path: Path, batches: list[list[Event]]) -> None:
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
    path.touch()
    sink = JsonlSink(path)
    for batch in batches:
        sink.write(batch)
    sink.close()
    assert [Event.from_dict(line) for line in strict_lines(path)] == [item for batch in batches for item in batch]
    assert list(read_events(path)) == [item for batch in batches for item in batch]


def test_the_file_its_folder_and_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "events.jsonl"
    sink = JsonlSink(path)
    assert not path.parent.exists()
    before = os.umask(0o022)
    try:
        sink.write(events(1))
    finally:
        os.umask(before)
    if POSIX:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["events.jsonl"], "no lock file without rotation"
    sink.close()
    path.chmod(0o640)
    sink.write(events(1))
    if POSIX:
        assert stat.S_IMODE(path.stat().st_mode) == 0o640, "a mode that somebody chose stays"
    sink.close()
    sink.close()


def test_one_system_call_for_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = os.write

    def counting(fd: int, data: bytes) -> int:
        written.append(len(data))
        return write(fd, data)

    monkeypatch.setattr(os, "write", counting)
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path)
    sink.write(events(500))
    sink.write([])
    assert written == [path.stat().st_size]
    sink.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_bytes", 0),
        ("max_bytes", True),
        ("max_bytes", 1.5),
        ("max_age_s", 0),
        ("max_age_s", float("nan")),
        ("max_age_s", "1"),
        ("keep", -1),
        ("keep", float("inf")),
        ("fsync", "sometimes"),
        ("fsync_interval_s", 0),
        ("signing_key", b""),
        ("signing_key", SecretStr("")),
        ("signing_key", "text"),
        ("path", ""),
        ("path", "a\0b"),
        ("path", 3),
    ],
)
def test_arguments_that_cannot_be_used_are_named(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: "):
        JsonlSink(**{"path": tmp_path / "a.jsonl", name: value})


def test_the_path_is_fixed_when_the_sink_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    relative, home = JsonlSink("a.jsonl", name="mine"), JsonlSink("~/b.jsonl")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for sink in (relative, home):
        sink.write(events(1))
        sink.close()
    assert (tmp_path / "a.jsonl").exists()
    assert (tmp_path / "b.jsonl").exists()
    assert (relative.name, home.name) == ("mine", "jsonl:b.jsonl")


def test_one_event_that_cannot_be_encoded(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for chain in (False, True):
        with pytest.raises(SinkWriteError, match="TypeError") as caught:
            JsonlSink(path, chain=chain).write([*events(2), event(2, bad=object()), event(3)])
        assert (caught.value.delivered, caught.value.retryable) == (2, False)
        assert caught.value.__context__ is None
    with pytest.raises(SinkWriteError, match="ValueError") as caught:
        JsonlSink(path).write([event(2, bad=float("nan"))])
    assert caught.value.delivered == 0
    assert numbers(read_events(path)) == [0, 1, 0, 1]


@pytest.mark.parametrize("place", ["a_folder", "under_a_file"])
def test_a_place_where_no_file_can_be(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path if place == "a_folder" else tmp_path / "file" / "events.jsonl"
    sink = JsonlSink(path)
    with pytest.raises(SinkWriteError, match=r"E[A-Z]+") as caught:
        sink.write(events(1))
    assert (caught.value.delivered, caught.value.retryable) == (0, True)
    assert caught.value.__context__ is None
    assert str(tmp_path) not in str(caught.value)
    sink.idle()
    sink.close()


# -- torn lines -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_a_torn_tail_stays_and_the_next_line_begins_on_its_own(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "events.jsonl"
    torn = event(1).encode()[:cut]
    path.write_bytes(event(0).encode() + b"\n" + torn)
    sink = JsonlSink(path)
    sink.write(events(2, 2))
    sink.write(events(1, 4))
    assert path.read_bytes().split(b"\n")[1] == torn
    assert b"\n\n" not in path.read_bytes()
    reader = read_events(path)
    assert numbers(reader) == [0, 2, 3, 4]
    assert sum(reader.damaged.values()) == 1


def test_a_last_line_that_only_lacks_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(event(0).encode())
    JsonlSink(path).write(events(1, 1))
    assert [line["payload"]["number"] for line in strict_lines(path)] == [0, 1]


@pytest.mark.parametrize("room", [0, 1, 50, 299, 300, 301, 650, 899])
def test_a_short_write_counts_whole_lines_and_the_rest_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    path, batch = tmp_path / "events.jsonl", events(3)
    write = os.write
    sink = JsonlSink(path, chain=True, signing_key=KEY)
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:room]) if room else 0)
    with pytest.raises(SinkWriteError, match="short write") as caught:
        sink.write(batch)
    monkeypatch.undo()
    assert caught.value.retryable
    whole = path.read_bytes().count(b"\n")
    assert caught.value.delivered == whole
    sink.write(batch[whole:])
    reader = read_events(path)
    assert numbers(reader) == [0, 1, 2]
    lines = path.read_bytes().splitlines()
    assert verify_lines(lines, KEY, skip_unreadable=True).ok
    assert verify_lines(lines, KEY).ok == (sum(reader.damaged.values()) == 0)


@pytest.mark.parametrize("fault", ["none", "short", "again"])
def test_a_line_torn_by_another_process_between_our_look_and_our_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path)
    sink.write(events(1))
    write, calls = os.write, 0

    def interrupted(fd: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 1 or (fault == "again" and calls == 2):
            write(fd, event(99).encode()[:30])
        if fault == "short" and calls == 2:
            return write(fd, data[:10])
        return write(fd, data)

    monkeypatch.setattr(os, "write", interrupted)
    batch = events(3, 1)
    if fault == "short":
        with pytest.raises(SinkWriteError) as caught:
            sink.write(batch)
        assert caught.value.delivered == 0
        monkeypatch.undo()
        sink.write(batch)
    else:
        sink.write(batch)
    reader = read_events(path, unique=True)
    assert sorted(numbers(reader)) == [0, 1, 2, 3]
    whole = [line for line in path.read_bytes().splitlines() if line.startswith(b"{") and line.count(b"schema") == 1]
    assert {item["payload"]["number"] for item in map(_fields, whole) if item} == {0, 1, 2, 3}


def _fields(line: bytes) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError):
        return Event.decode(line).to_dict()
    return None


def test_a_line_that_is_still_being_written_is_not_taken_for_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path)
    sink.write(events(1))
    line = event(1).encode() + b"\n"
    other = path.open("ab", buffering=0)
    other.write(line[:100])  # what another process sees of a long write that is under way
    touch, touched = os.utime, 0

    def wait_for_the_writer(*args: Any, **options: Any) -> None:
        nonlocal touched
        touched += 1
        if touched == 1:
            other.write(line[100:200])
        elif touched == 2:
            other.write(line[200:])
        touch(*args, **options)

    monkeypatch.setattr(os, "utime", wait_for_the_writer)
    monkeypatch.setattr(os, "supports_fd", {*os.supports_fd, wait_for_the_writer})
    sink.write(events(1, 2))
    other.close()
    assert touched == 2
    assert [item["payload"]["number"] for item in strict_lines(path)] == [0, 1, 2]


@pytest.mark.skipif(not POSIX, reason="pipes by path are POSIX")
def test_a_pipe_takes_lines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    sink = JsonlSink(path, max_bytes=10, max_age_s=0.001, fsync="always")
    write = os.write
    sink.write(events(2))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:30]))
    with pytest.raises(SinkWriteError, match="short write"):
        sink.write(events(1, 2))
    monkeypatch.undo()
    sink.write(events(1, 2))
    sink.idle()
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    sink.close()
    lines = os.read(reading, 1 << 16).splitlines()
    os.close(reading)
    assert [item["payload"]["number"] if (item := _fields(line)) else None for line in lines] == [0, 1, None, 2]


# -- the file under the sink --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", [True, False])
def test_a_file_that_others_move_or_delete_is_opened_anew(tmp_path: Path, chain: bool) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, chain=chain)
    sink.write(events(2))
    path.rename(tmp_path / "moved.jsonl")
    sink.write(events(2, 2))
    path.unlink()
    sink.write(events(2, 4))
    os.truncate(path, 0)
    sink.write(events(2, 6))
    assert numbers(read_events(tmp_path / "moved.jsonl")) == [0, 1]
    assert numbers(read_events(path)) == [6, 7]
    if chain:
        assert verify_lines((tmp_path / "moved.jsonl").read_bytes().splitlines()).ok


def test_a_file_deleted_in_the_middle_of_a_write_costs_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path)
    sink.write(events(1))
    write = os.write

    def delete_first(fd: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", write)
        path.unlink()
        return write(fd, data)

    monkeypatch.setattr(os, "write", delete_first)
    sink.write(events(3, 1))
    assert numbers(read_events(path)) == [1, 2, 3]


def test_descriptors_closed_under_us_are_neither_used_nor_closed(tmp_path: Path) -> None:
    path, foreign = tmp_path / "events.jsonl", tmp_path / "foreign"
    sink = JsonlSink(path)
    sink.write(events(1))
    fd = sink._file._fd  # type: ignore[union-attr]  what a program does that closes everything to become a daemon
    os.close(fd)
    sink.write(events(1, 1))
    fd = sink._file._fd  # type: ignore[union-attr]
    os.close(fd)
    taken = os.open(foreign, os.O_RDWR | os.O_CREAT)
    assert taken == fd
    sink.write(events(1, 2))
    sink.close()
    os.write(taken, b"still open")
    os.close(taken)
    assert foreign.read_bytes() == b"still open"
    assert numbers(read_events(path)) == [0, 1, 2]


# -- fsync --------------------------------------------------------------------------------------------------------


class Disk:
    """Counts the real os.fsync by kind of file, and fails it when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files = self.folders = 0
        self.broken = False
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, fd: int) -> None:
        if self.broken:
            raise OSError(5, "broken")
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            self.folders += 1
        else:
            self.files += 1
        self._fsync(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Monotonic time in seconds, to be set."""
    now = [100.0]
    monkeypatch.setattr(_clock, "monotonic", lambda: now[0])
    return now


def test_never_waits_for_the_disk(tmp_path: Path, disk: Disk) -> None:
    sink = JsonlSink(tmp_path / "a.jsonl", max_bytes=400)
    for number in range(5):
        sink.write(events(1, number))
        sink.idle()
    sink.close()
    assert (disk.files, disk.folders) == (0, 0)


def test_always_syncs_each_batch_and_new_names(tmp_path: Path, disk: Disk) -> None:
    sink = JsonlSink(tmp_path / "a.jsonl", fsync="always")
    for number in range(5):
        sink.write(events(3, number * 3))
        assert disk.files == number + 1
    sink.idle()
    sink.close()
    assert disk.files == 5
    assert disk.folders == (1 if POSIX else 0)


def test_interval_syncs_when_the_time_has_come(tmp_path: Path, disk: Disk, clock: list[float]) -> None:
    sink = JsonlSink(tmp_path / "a.jsonl", fsync="interval", fsync_interval_s=10)
    sink.write(events(1))
    sink.idle()
    assert disk.files == 0
    clock[0] += 10
    sink.idle()
    assert disk.files == 1
    clock[0] += 10
    sink.idle()
    assert disk.files == 1, "nothing new to sync"
    sink.write(events(1, 1))
    assert disk.files == 2
    sink.write(events(1, 2))
    sink.close()
    assert disk.files == 3, "what waited is synced when the file is closed"


def test_a_disk_that_fails_to_sync(tmp_path: Path, disk: Disk) -> None:
    path = tmp_path / "a.jsonl"
    sink = JsonlSink(path, fsync="always", signing_key=KEY)
    sink.write(events(1))
    disk.broken = True
    with pytest.raises(SinkWriteError, match="EIO") as caught:
        sink.write(events(2, 1))
    assert (caught.value.delivered, caught.value.retryable) == (0, True)
    disk.broken = False
    sink.write(events(2, 1))
    assert numbers(read_events(path, unique=True)) == [0, 1, 2]
    assert verify_lines(path.read_bytes().splitlines(), KEY).ok, "tried again in a chain of its own"


def test_a_disk_that_fails_to_sync_while_idle_or_closing(tmp_path: Path, disk: Disk, clock: list[float]) -> None:
    sink = JsonlSink(tmp_path / "a.jsonl", fsync="interval", fsync_interval_s=1)
    sink.write(events(1))
    disk.broken = True
    clock[0] += 2
    with pytest.raises(SinkWriteError, match="EIO"):
        sink.idle()
    disk.broken = False
    sink.write(events(1, 1))
    disk.broken = True
    with pytest.raises(SinkWriteError, match="EIO"):
        sink.close()
    sink.close()


# -- chain --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, KEY, SecretStr("k" * 32)])
def test_chained_batches_hold_from_the_first_line_to_the_last(tmp_path: Path, key: Any) -> None:
    path = tmp_path / "a.jsonl"
    sink = JsonlSink(path, chain=True, signing_key=key)
    for number in range(5):
        sink.write(events(4, number * 4))
    verdict = verify_lines(path.read_bytes().splitlines(), KEY if key else None, event(19).event_id)
    assert verdict.ok
    assert (verdict.events, len(verdict.chains)) == (20, 1)
    sink.close()
    sink.write(events(4, 20))
    verdict = verify_lines(path.read_bytes().splitlines(), KEY if key else None)
    assert (verdict.ok, verdict.events, len(verdict.chains)) == (True, 24, 2)
    assert "kkkk" not in repr(sink)


def test_a_key_switches_the_chain_on_and_it_can_be_left_off(tmp_path: Path) -> None:
    JsonlSink(tmp_path / "on.jsonl", signing_key=KEY).write(events(1))
    JsonlSink(tmp_path / "off.jsonl", signing_key=KEY, chain=False).write(events(1))
    assert "signature" in strict_lines(tmp_path / "on.jsonl")[0]
    assert "checksum" not in strict_lines(tmp_path / "off.jsonl")[0]


def test_a_child_has_a_chain_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    sink = JsonlSink(path, signing_key=KEY)
    sink.write(events(2))
    descriptor = sink._file._fd  # type: ignore[union-attr]
    sink.after_fork()
    sink.write(events(2, 2))
    os.fstat(descriptor)  # still open
    os.close(descriptor)
    verdict = verify_lines(path.read_bytes().splitlines(), KEY)
    assert (verdict.ok, len(verdict.chains)) == (True, 2)
    sink.close()


if sys.platform == "linux":

    def test_writing_keeps_one_descriptor(tmp_path: Path) -> None:
        sink = JsonlSink(tmp_path / "a.jsonl", max_bytes=1000, keep=2)
        sink.write(events(1))
        before = len(list(Path("/proc/self/fd").iterdir()))
        for number in range(200):
            sink.write(events(2, number))
        assert len(list(Path("/proc/self/fd").iterdir())) == before
