"""What the SDK says of itself: it arrives, and nobody waits for it."""

from __future__ import annotations

import logging
import logging.config
import os
import sys
import threading
from collections.abc import Iterator

import pytest
from support.pipes import full_pipe

from spanforge import _warnings
from spanforge._warnings import leave, settle, warn

LOGGER = logging.getLogger("spanforge")


class Hanging(logging.Handler):
    """Takes nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go, self.said = threading.Event(), threading.Event(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.entered.set()
        self.go.wait()
        self.said.append(record.getMessage())


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    handler = Hanging()
    LOGGER.addHandler(handler)
    yield handler
    handler.go.set()
    settle(5)
    LOGGER.removeHandler(handler)


def test_a_warning_is_a_record_of_the_logger_spanforge(caplog: pytest.LogCaptureFixture):
    warn("one of %d: %s", 3, "code")
    assert settle(5)
    assert caplog.record_tuples == [("spanforge", logging.WARNING, "one of 3: code")]


def test_nobody_waits_for_a_handler_that_hangs_and_what_finds_no_room_is_counted(hanging: Hanging):
    warn("first")
    hanging.entered.wait()
    for number in range(_warnings._MOST_WAITING + 5):
        warn("number %d", number)
    assert not settle(0.01)
    hanging.go.set()
    assert settle(5)
    assert len(hanging.said) == 1 + _warnings._MOST_WAITING
    assert hanging.said[1] == "number 0 (and 5 warnings that found no way out)"


def test_the_end_lets_go_of_a_handler_that_hangs(hanging: Hanging, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_warnings, "_LEAVE_S", 0.01)
    warn("first")
    hanging.entered.wait()
    leave()
    taken: list[bool] = []

    # As `logging.shutdown` does it, in a thread, so that a failure is no hang.
    def end() -> None:
        hanging.acquire()
        hanging.flush()
        hanging.release()
        taken.append(True)

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    thread.join(5)
    assert taken == [True]


def test_a_handler_that_fails_costs_the_line(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise SystemExit

    handler = Failing()
    LOGGER.addHandler(handler)
    warn("lost")
    assert settle(5)
    LOGGER.removeHandler(handler)
    warn("said")
    assert settle(5)
    assert caplog.messages == ["said"]


def test_a_dictconfig_that_disables_what_exists_silences_no_warning(caplog: pytest.LogCaptureFixture):
    try:
        logging.config.dictConfig({"version": 1})
        assert LOGGER.disabled
        warn("still here")
        assert settle(5)
    finally:
        LOGGER.disabled = False
    assert caplog.messages == ["still here"]


@pytest.mark.parametrize("level", [logging.ERROR, logging.CRITICAL])
def test_a_level_that_was_chosen_is_kept(caplog: pytest.LogCaptureFixture, level: int):
    before = LOGGER.level
    LOGGER.setLevel(level)
    try:
        warn("not wanted")
        assert settle(5)
    finally:
        LOGGER.setLevel(before)
    assert caplog.messages == []


@pytest.fixture
def unread() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe that is full."""
    reader, writer = full_pipe()
    yield reader, writer
    os.close(reader)


@pytest.mark.skipif(os.name == "nt", reason="pipes cannot be asked there")
def test_a_stream_handler_on_a_full_pipe_is_not_waited_for(unread: tuple[int, int]):
    reader, writer = unread
    with os.fdopen(writer, "w") as stream:
        handler = logging.StreamHandler(stream)
        LOGGER.addHandler(handler)
        warn("not now")
        assert settle(5)
        os.read(reader, 1 << 20)
        warn("now")
        assert settle(5)
        LOGGER.removeHandler(handler)
    assert os.read(reader, 1 << 20) == b"now (and 1 warnings that found no way out)\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes cannot be asked there")
def test_nor_is_stderr_where_logging_was_not_configured(unread: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    reader, writer = unread
    monkeypatch.setattr(_warnings, "handlers_of", lambda _: ())
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        warn("not now")
        assert settle(5)
        os.read(reader, 1 << 20)
        warn("now")
        assert settle(5)
    assert os.read(reader, 1 << 20) == b"now (and 1 warnings that found no way out)\n"


def test_without_threads_a_plain_handler_is_written_to_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(_warnings, "handlers_of", lambda _: ())
    warn("at the end")
    assert settle(0)
    assert capsys.readouterr().err == "at the end\n"
    monkeypatch.setattr(_warnings, "handlers_of", lambda _: [Hanging()])
    warn("to nobody")
    assert settle(0)
    monkeypatch.undo()
    warn("later")
    assert settle(5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_a_way_of_its_own(hanging: Hanging):
    warn("the parent's")
    hanging.entered.wait()
    child = os.fork()
    if not child:
        LOGGER.removeHandler(hanging)
        warn("the child's")
        os._exit(0 if settle(5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
