from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.golden import VARIANTS, Recorder, generated
from support.otlp_receiver import http_receiver

from spanforge import _clock
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks._spool_files import adopt, begin
from spanforge.sinks.base import BaseSink, Receipt
from spanforge.sinks.otlp import OtlpSink
from spanforge.sinks.spool import Spool


class Receiver(BaseSink):
    """Takes events, or answers what it was told to."""

    name = "receiver"

    def __init__(self) -> None:
        self.got: list[str] = []
        self.answers: deque[Exception | Receipt | None] = deque()
        self.up = True

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        if not self.up:
            raise SinkWriteError("down")
        answer = self.answers.popleft() if self.answers else None
        if isinstance(answer, SinkWriteError):
            self.got += [event.event_id for event in events[: answer.delivered]]
        if isinstance(answer, Exception):
            raise answer
        self.got += [event.event_id for event in events]
        return answer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A monotonic clock that goes on only when the test says so."""
    now = [1000.0]
    monkeypatch.setattr(_clock, "monotonic", lambda: now[0])
    return now


def events(count: int, name: str = "s") -> list[Event]:
    run = Recorder(name, offset=crc32(name.encode()) % 1000)
    return [run.add(number, generated(name)) for number in range(count)]


def ids(of: Sequence[Event]) -> list[str]:
    return [event.event_id for event in of]


def test_while_the_receiver_is_up_nothing_touches_the_disk(tmp_path: Path):
    receiver = Receiver()
    spool = Spool(receiver, tmp_path / "spool")
    assert spool.write(events(3)) is None
    assert spool.idle() is None
    assert not (tmp_path / "spool").exists()
    assert spool.name == "spool:receiver"


def test_what_waits_is_pending_and_drains_in_order(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    spool = Spool(receiver, tmp_path)
    all_events = events(6)
    receiver.up = False
    assert spool.write(all_events[:2]) == Receipt()
    assert spool.write(all_events[2:4]) == Receipt()
    receiver.up = True
    assert spool.write(all_events[4:5]) == Receipt()  # the receiver rests
    clock[0] += 5
    assert spool.write(all_events[5:]) == Receipt(delivered=6)
    assert receiver.got == ids(all_events)
    assert list(tmp_path.iterdir()) == []


def test_idle_drains_and_the_rest_grows_until_the_receiver_is_back(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    spool = Spool(receiver, tmp_path)
    receiver.up = False
    spool.write(events(2))
    for _ in range(10):
        clock[0] += 61
        assert spool.idle() is None
    receiver.up = True
    clock[0] += 61
    assert spool.idle() == Receipt(delivered=2)


def test_the_receiver_is_left_alone_as_long_as_it_asks(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    spool = Spool(receiver, tmp_path)
    receiver.answers.append(SinkWriteError("http_429", retry_after_s=30.0))
    spool.write(events(1))
    clock[0] += 29
    assert spool.idle() is None
    clock[0] += 2
    assert spool.idle() == Receipt(delivered=1)


def test_files_are_the_owners_alone(tmp_path: Path):
    receiver = Receiver()
    receiver.up = False
    Spool(receiver, tmp_path / "spool").write(events(1))
    (file,) = (tmp_path / "spool").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_part_that_arrived_counts_and_the_rest_waits(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    spool = Spool(receiver, tmp_path)
    receiver.answers.append(SinkWriteError("reset", delivered=2))
    assert spool.write(events(5)) == Receipt(delivered=2)
    clock[0] += 2
    assert spool.idle() == Receipt(delivered=3)
    assert receiver.got == ids(events(5))


def test_any_error_of_the_network_is_one(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    spool = Spool(receiver, tmp_path)
    receiver.answers.append(ConnectionResetError())
    assert spool.write(events(1)) == Receipt()
    clock[0] += 2
    assert spool.idle() == Receipt(delivered=1)


def test_an_event_the_receiver_refuses_does_not_block_the_others(tmp_path: Path):
    receiver = Receiver()
    spool = Spool(receiver, tmp_path)
    refusal = SinkWriteError("http_400", retryable=False)
    receiver.answers.extend([refusal, None, refusal, None])
    assert spool.write(events(3)) == Receipt(delivered=2, failed=1)


def test_receipts_of_the_sink_pass_through(tmp_path: Path):
    receiver = Receiver()
    receiver.answers.append(Receipt(delivered=1, failed=1, dropped={"why": 1}))
    assert Spool(receiver, tmp_path).write(events(3)) == Receipt(delivered=1, failed=1, dropped={"why": 1})


def test_the_oldest_go_when_there_is_no_room(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    receiver.up = False
    size = sum(len(event.encode()) + 1 for event in events(1))
    spool = Spool(receiver, tmp_path, max_bytes=size * 4)
    dropped = 0
    for event in events(10):
        receipt = spool.write([event])
        dropped += receipt.dropped.get("spool_full", 0)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= size * 4
    receiver.up = True
    clock[0] += 100
    assert spool.idle() == Receipt(delivered=10 - dropped)
    assert receiver.got == ids(events(10))[dropped:]
    assert dropped


def test_what_is_too_old_goes(tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch):
    receiver = Receiver()
    receiver.up = False
    spool = Spool(receiver, tmp_path, max_age_s=60)
    spool.write(events(2))
    now = _clock.wall_ns()
    monkeypatch.setattr(_clock, "wall_ns", lambda: now + 61 * 10**9)
    clock[0] += 2
    assert spool.idle() == Receipt(dropped={"spool_expired": 2})


def test_the_next_process_drains_what_the_last_left_and_counts_it_apart(tmp_path: Path):
    tests = Path(__file__).parents[1]
    child = [sys.executable, str(tests / "support" / "spool_child.py"), str(tmp_path)]
    path = os.pathsep.join([str(tests), str(tests.parent)])
    subprocess.run(child, check=True, env={**os.environ, "PYTHONPATH": path})
    assert len(list(tmp_path.iterdir())) == 1
    receiver = Receiver()
    spool = Spool(receiver, tmp_path)
    mine = events(1, "mine")
    assert spool.write(mine) is None
    assert spool.recovered == 3
    assert receiver.got == [*ids(events(3, "left")), *ids(mine)]
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_holds_is_left_to_it(tmp_path: Path):
    down = Receiver()
    down.up = False
    owner = Spool(down, tmp_path)
    owner.write(events(2))
    other = Receiver()
    assert Spool(other, tmp_path).idle() is None
    assert other.got == []


def test_a_torn_line_of_a_crash_is_passed_over(tmp_path: Path):
    whole = b"".join(event.encode() + b"\n" for event in events(2))
    (tmp_path / "00000000000000000001-1-abc.spool.jsonl").write_bytes(b"{torn\n" + whole + b'{"torn')
    receiver = Receiver()
    spool = Spool(receiver, tmp_path, max_age_s=float("inf"))
    assert spool.idle() is None
    assert (spool.recovered, receiver.got) == (2, ids(events(2)))
    assert list(tmp_path.iterdir()) == []


def test_what_was_left_and_expired_is_counted_as_lost(tmp_path: Path):
    whole = b"".join(event.encode() + b"\n" for event in events(3))
    (tmp_path / "00000000000000000001-1-abc.spool.jsonl").write_bytes(whole + b"torn")
    spool = Spool(Receiver(), tmp_path)
    assert spool.idle() is None
    assert spool.recovered_lost == 3


def test_after_close_the_same_spool_goes_on_where_it_was(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    spool = Spool(receiver, tmp_path)
    receiver.answers.append(SinkWriteError("reset", delivered=1))
    spool.write(events(4))
    assert spool.close() is None
    clock[0] += 2
    assert spool.idle() == Receipt(delivered=3)
    assert spool.recovered == 0


def test_a_forked_child_leaves_the_parents_files_alone(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    receiver.up = False
    parent = Spool(receiver, tmp_path)
    parent.write(events(2))
    pid = os.fork()
    if not pid:
        parent.after_fork()
        clock[0] += 100
        os._exit(0 if parent.idle() is None and not parent._segments else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    receiver.up = True
    clock[0] += 100
    assert parent.idle() == Receipt(delivered=2)


def test_after_a_fork_the_spool_is_empty_and_writes_files_of_its_own(tmp_path: Path, clock: list[float]):
    receiver = Receiver()
    receiver.up = False
    spool = Spool(receiver, tmp_path)
    spool.write(events(2))
    spool.after_fork()
    assert spool.write(events(1, "child")) == Receipt()
    assert len(list(tmp_path.iterdir())) == 2
    clock[0] += 2


def test_a_folder_that_cannot_be_read_is_looked_at_later(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
):
    def unreadable(_folder: Path) -> list[Path]:
        raise PermissionError

    spool = Spool(Receiver(), tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr("spanforge.sinks.spool.left_behind", unreadable)
        assert spool.write(events(1)) is None
    (tmp_path / "00000000000000000001-1-abc.spool.jsonl").write_bytes(events(1)[0].encode() + b"\n")
    clock[0] += 31
    assert spool.idle() is None
    assert spool.recovered_lost == 1


def test_a_disk_that_is_full_too_leaves_the_batch_to_the_worker(tmp_path: Path):
    (tmp_path / "file").touch()
    receiver = Receiver()
    receiver.up = False
    spool = Spool(receiver, tmp_path / "file" / "folder")
    with pytest.raises(SinkWriteError, match="spool: ENOTDIR"):
        spool.write(events(2))
    receiver.up = True
    receiver.answers.append(SinkWriteError("reset", delivered=1))
    spool = Spool(receiver, tmp_path / "file" / "folder")
    assert spool.write(events(2)) == Receipt(delivered=1, dropped={"spool_ENOTDIR": 1})


def test_an_event_that_cannot_be_encoded_fails_alone(tmp_path: Path):
    receiver = Receiver()
    receiver.up = False
    (good,) = events(1)
    bad = Event(**{**good.to_dict(), "payload": {"x": float("nan")}})
    assert Spool(receiver, tmp_path).write([bad, good]) == Receipt(failed=1)


def test_limits_must_be_some(tmp_path: Path):
    with pytest.raises(ConfigError):
        Spool(Receiver(), tmp_path, max_bytes=0)
    with pytest.raises(ConfigError):
        Spool(Receiver(), tmp_path, max_age_s=float("nan"))


def test_it_stands_in_front_of_otlp(tmp_path: Path, clock: list[float]):
    with http_receiver() as received:
        address = received.address
    spool = Spool(OtlpSink(f"http://{address}", signals=()), tmp_path)
    assert spool.whole_sessions
    assert spool.write(VARIANTS["evaluation"]()) == Receipt()
    with http_receiver() as received:
        spool._sink = OtlpSink(f"http://{received.address}", signals=())
        clock[0] += 5
        assert spool.idle() == Receipt(delivered=6)
        assert len(received.distinct_spans) == 7
        assert spool.close() is None


ANSWER = st.one_of(
    st.none(),
    st.builds(SinkWriteError, st.just("x"), delivered=st.integers(0, 1), retryable=st.booleans()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.lists(ANSWER, max_size=3)), max_size=8))
def test_every_event_is_settled_once_whatever_the_receiver_says(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("spool")
    receiver = Receiver()
    spool = Spool(receiver, folder)
    source = iter(events(100))
    settled: Counter[str] = Counter()
    given_count = 0

    def count(receipt: Receipt | None, batch: int) -> None:
        receipt = Receipt(delivered=batch) if receipt is None and batch else receipt or Receipt()
        settled.update({"delivered": receipt.delivered, "failed": receipt.failed, **receipt.dropped})

    for size, answers in steps:
        receiver.answers.extend(answers)
        spool._rest_until = 0.0
        batch = [next(source) for _ in range(size)]
        given_count += size
        count(spool.write(batch) if batch else spool.idle(), size)
        assert settled.total() <= given_count
    receiver.answers.clear()
    spool._rest_until = 0.0
    count(spool.idle(), 0)
    assert settled.total() == given_count
    assert len(receiver.got) >= settled["delivered"]
    spool.close()


def test_a_short_write_leaves_no_torn_line_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first, second = events(2)
    segment = begin(tmp_path)
    whole = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: whole(fd, data[: len(first.encode()) + 10]))
    assert segment.append([first.encode(), second.encode()]) == 1
    monkeypatch.undo()
    assert segment.append([second.encode()]) == 1
    assert segment.path.read_bytes().splitlines() == [first.encode(), second.encode()]
    segment.close()


def test_only_so_much_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    segment = begin(tmp_path)
    segment.append([event.encode() for event in events(3)])
    found, ends = segment.peek(2)
    assert ids(found) == ids(events(2))
    segment.settle(2, ends[-1])
    monkeypatch.setattr("spanforge.sinks._spool_files._READ_BYTES", 10)
    assert segment.peek(2) == ([], [])
    segment.close()


def test_a_segment_that_is_gone_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert adopt(tmp_path / "gone.spool.jsonl") is None
    path = tmp_path / "a.spool.jsonl"
    path.touch()

    def drained_meanwhile(_fd: int) -> None:
        path.unlink()

    monkeypatch.setattr("spanforge.sinks._spool_files.lock", drained_meanwhile)
    assert adopt(path) is None


@pytest.mark.parametrize("line", [b"{damaged", replace(events(1)[0], event_type="spanforge.pruned").encode()])
def test_what_is_no_event_is_passed_over_between_events(tmp_path: Path, line: bytes):
    first, second = events(2)
    path = tmp_path / "00000000000000000001-1-abc.spool.jsonl"
    path.write_bytes(b"\n".join([line, first.encode(), line, second.encode(), line, b""]))
    receiver = Receiver()
    assert Spool(receiver, tmp_path, max_age_s=float("inf")).idle() is None
    assert receiver.got == ids([first, second])
