"""The end of the process and its forks, as far as one process can try them (tests/process has the rest)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator

import pytest

from spanforge._warnings import settle
from spanforge.delivery import process


class Owner:
    """Counts what it hears of; fails where it is told to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.heard: list[str] = []
        self.fails = fails

    def hear(self, what: str) -> None:
        self.heard.append(what)
        if self.fails:
            raise OSError

    def after_fork(self) -> None:
        self.hear("fork")

    def deliver(self, *, ends: bool) -> None:
        self.hear("end" if ends else "deliver")

    def at_exit(self) -> None:
        self.hear("exit")


@pytest.fixture
def _own_sigterm(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(process, "_previous_sigterm", None)
    yield
    signal.signal(signal.SIGTERM, before)


def test_all_who_watch_hear_of_a_fork_and_of_the_end_whoever_fails() -> None:
    owners = [Owner(fails=True), Owner(fails=True), Owner()]
    for owner in owners:
        process.watch(owner)
    process._after_fork()
    process._at_exit()
    assert [owner.heard for owner in owners] == [["fork", "exit"]] * 3


def test_a_child_of_celerys_pool_hears_of_its_end_once(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = pytest.importorskip("celery.signals", reason="celery is not installed on this platform")
    owner = Owner()
    for pid in (-1, -2):  # a child, and a child of that
        monkeypatch.setattr(process, "_hooked_in", pid)
        process.watch(owner)
    signals.worker_process_shutdown.send(sender=None, pid=1, exitcode=0)
    assert owner.heard == ["exit"]


@pytest.mark.usefixtures("_own_sigterm")
def test_on_sigterm_events_are_delivered_before_the_handler_that_was_there() -> None:
    owner = Owner()
    process.watch(owner)
    signal.signal(signal.SIGTERM, lambda *_: owner.heard.append("the application's"))
    process.handle_sigterm()
    process.handle_sigterm()  # once is enough
    signal.raise_signal(signal.SIGTERM)
    assert owner.heard == ["deliver", "the application's"]


@pytest.mark.usefixtures("_own_sigterm")
def test_where_sigterm_was_ignored_it_still_is() -> None:
    owner = Owner()
    process.watch(owner)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    process.handle_sigterm()
    signal.raise_signal(signal.SIGTERM)
    assert owner.heard == ["deliver"]


@pytest.mark.usefixtures("_own_sigterm")
def test_another_thread_than_the_main_one_can_set_no_handler_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=process.handle_sigterm)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before
    settle(5)
    assert "main thread" in caplog.text
