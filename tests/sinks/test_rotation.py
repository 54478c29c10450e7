"""Rotation by size and age, in one process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support.stored import START_NS, event, events, numbers

from spanforge import _clock
from spanforge.namespaces.chain import verify_lines
from spanforge.reader import read_events
from spanforge.sinks._lock import held
from spanforge.sinks.jsonl import JsonlSink

LINE = len(event(1).encode()) + 1
POSIX = os.name == "posix"


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Wall time in nanoseconds, to be set."""
    now = [START_NS]
    monkeypatch.setattr(_clock, "wall_ns", lambda: now[0])
    return now


@pytest.mark.parametrize("batch", [1, 3, 7, 50])
def test_files_stay_under_the_limit_and_hold_every_event_in_order(tmp_path: Path, batch: int) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, max_bytes=5 * LINE + 10, chain=True)
    for start in range(0, 100, batch):
        sink.write(events(min(batch, 100 - start), start))
    sealed = len(path.read_bytes().splitlines()[0])
    assert all(file.stat().st_size <= max(5 * LINE + 10, sealed) for file in files(tmp_path))
    assert len(files(tmp_path)) > 10
    assert numbers(read_events(tmp_path)) == list(range(100))
    for file in files(tmp_path):
        verdict = verify_lines(file.read_bytes().splitlines())
        assert verdict.ok
        assert len(verdict.chains) == 1


def test_a_line_longer_than_the_limit_has_a_file_of_its_own(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "events.jsonl", max_bytes=10)
    sink.write(events(3))
    assert [len(file.read_bytes().splitlines()) for file in files(tmp_path)] == [1, 1, 1]
    assert numbers(read_events(tmp_path)) == [0, 1, 2]


def test_the_oldest_files_beyond_keep_go_and_others_stay(tmp_path: Path) -> None:
    foreign = tmp_path / "events-20260101T000000.000000Z-mine.jsonl"
    foreign.write_text("mine")
    sink = JsonlSink(tmp_path / "events.jsonl", max_bytes=10, keep=2)
    sink.write(events(6))
    assert numbers(read_events(tmp_path / "events*Z.jsonl")) == [3, 4]
    assert numbers(read_events(tmp_path / "events.jsonl")) == [5]
    assert foreign.read_text() == "mine"


def test_keep_none_of_them(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "events.jsonl", max_bytes=10, keep=0)
    sink.write(events(3))
    assert [file.name for file in files(tmp_path)] == ["events.jsonl"]
    assert numbers(read_events(tmp_path / "events.jsonl")) == [2]


def test_rotated_names_tell_the_time_and_keep_the_order_if_the_clock_steps_back(
    tmp_path: Path, wall: list[int]
) -> None:
    sink = JsonlSink(tmp_path / "events.jsonl", max_bytes=10)
    for number in range(4):
        sink.write(events(1, number))
        wall[0] -= 3_600_000_000_000
    assert files(tmp_path)[0].name == "events-20251231T230000.000000Z.jsonl"
    assert numbers(read_events(tmp_path)) == [0, 1, 2, 3]


def test_a_compressed_file_stays_one_of_the_rotated(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "events.jsonl", max_bytes=10, keep=1)
    sink.write(events(2))
    rotated = files(tmp_path)[0]
    rotated.rename(f"{rotated}.gz")
    sink.write(events(1, 2))
    assert not Path(f"{rotated}.gz").exists()


def test_a_name_without_a_suffix(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "events", max_bytes=10)
    sink.write(events(3))
    assert numbers(read_events(str(tmp_path / "events*"))) == [0, 1, 2]


def test_age_counts_from_the_first_event_of_the_file(tmp_path: Path, wall: list[int]) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, max_age_s=60)
    sink.write(events(1))
    wall[0] += 59_000_000_000
    sink.write(events(1, 1))
    sink.idle()
    assert len(files(tmp_path)) == 1
    sink.close()
    later = JsonlSink(path, max_age_s=60)
    wall[0] += 1_000_000_000
    later.write(events(1, 2))
    assert [numbers(read_events(file)) for file in files(tmp_path)] == [[0, 1], [2]]


def test_an_old_file_is_rotated_while_nothing_is_written(tmp_path: Path, wall: list[int]) -> None:
    sink = JsonlSink(tmp_path / "events.jsonl", max_age_s=60)
    sink.idle()
    sink.write(events(1))
    wall[0] += 61_000_000_000
    sink.idle()
    sink.idle()
    assert len(files(tmp_path)) == 2
    assert files(tmp_path)[1].stat().st_size == 0
    wall[0] += 61_000_000_000
    sink.idle()
    assert len(files(tmp_path)) == 2, "an empty file is not rotated"


@pytest.mark.parametrize("first", [b"damaged", b'{"timestamp":"soon"}', b'{"timestamp":"\xff"}'])
def test_a_file_whose_age_cannot_be_told_counts_from_its_opening(tmp_path: Path, wall: list[int], first: bytes) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(first + b"\n")
    sink = JsonlSink(path, max_age_s=60)
    sink.write(events(1))
    wall[0] += 59_000_000_000
    sink.idle()
    assert len(files(tmp_path)) == 1
    wall[0] += 2_000_000_000
    sink.idle()
    assert len(files(tmp_path)) == 2


def test_a_file_that_another_has_rotated_is_left_when_idle(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, max_age_s=60)
    sink.write([event(1)])
    path.rename(tmp_path / "moved.jsonl")
    sink.idle()
    assert not path.exists()
    assert sink._file is None


def test_rotation_syncs_the_file_and_both_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), fsync(fd)))
    sink = JsonlSink(tmp_path / "events.jsonl", max_bytes=10, fsync="interval", fsync_interval_s=1000)
    sink.write(events(1))
    before = len(synced)
    sink.write(events(1, 1))
    # The old file when it is renamed and when it is closed, its folder, and the folder again for the new file.
    assert len(synced) - before == (4 if POSIX else 2)


def test_while_another_process_rotates_nothing_waits_long_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, max_bytes=10)
    sink.write(events(1))
    with held(path) as ours, held(path) as again:
        assert (ours, again) == (True, False)
        sink.write(events(1, 1))
    assert len(files(tmp_path)) == 1
    sink.write(events(1, 2))
    assert [numbers(read_events(file)) for file in files(tmp_path)] == [[0, 1], [2]]


@pytest.mark.parametrize("released", [True, False])
def test_whoever_waited_for_another_process_to_rotate_goes_on_in_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, released: bool
) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, max_bytes=10)
    sink.write(events(1))
    holder = held(path)
    assert holder.__enter__()

    def rotate_meanwhile(_: float) -> None:
        path.rename(tmp_path / "events-20260101T000000.000000Z.jsonl")
        if released:
            holder.__exit__(None, None, None)

    monkeypatch.setattr(time, "sleep", rotate_meanwhile)
    sink.write(events(1, 1))
    if not released:
        holder.__exit__(None, None, None)
    assert [numbers(read_events(file)) for file in files(tmp_path)] == [[0], [1]]


def test_a_file_rotated_just_before_we_had_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, max_bytes=10)
    sink.write(events(1))
    opened = os.open

    def rotated_first(name: object, *rest: int) -> int:
        if str(name).endswith(".lock"):
            path.rename(tmp_path / "events-20260101T000000.000000Z.jsonl")
        return opened(name, *rest)  # type: ignore[arg-type]  handed through

    monkeypatch.setattr(os, "open", rotated_first)
    sink.write(events(1, 1))
    assert [numbers(read_events(file)) for file in files(tmp_path)] == [[0], [1]]


def test_where_renaming_fails_the_file_goes_on_growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, max_bytes=2 * LINE, keep=1)
    monkeypatch.setattr(Path, "rename", refuse)
    sink.write(events(7))
    assert numbers(read_events(path)) == list(range(7))
    monkeypatch.undo()
    sink.write(events(1, 7))
    assert [numbers(read_events(file)) for file in files(tmp_path)] == [list(range(7)), [7]]
