"""What happens when the process forks, ends, or is told to end. Registered at the first event, not at import."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol
from weakref import WeakSet

from spanforge.delivery.guard import attempt

__all__ = ["handle_sigterm", "hooks_were_ignored", "is_ending", "watch"]

_log = logging.getLogger("spanforge")


class Watched(Protocol):
    """Something that must hear of a fork and of the end."""

    def after_fork(self) -> None:
        """The process has become a forked child."""
        ...

    def deliver(self) -> None:
        """The process was told to end, and may not yet."""
        ...

    def at_exit(self) -> None:
        """The process is about to end."""
        ...


_watched: WeakSet[Any] = WeakSet()
_hooked_in: int | None = None
_hook_ran_in: int | None = None
_previous_sigterm: Any = None


def watch(owner: Watched) -> None:
    """Tell `owner` of forks and of the end of the process."""
    global _hooked_in, _hook_ran_in  # noqa: PLW0603  hooks are registered once for each process
    _watched.add(owner)
    pid = os.getpid()
    if _hooked_in is None:
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):  # pragma: no branch  Windows has no fork
            os.register_at_fork(after_in_child=_after_fork)
            _hook_ran_in = pid
    if _hooked_in != pid:
        _hooked_in = pid
        _finalize_in_multiprocessing()
        _listen_to_celery()


def is_ending() -> bool:
    """Tell whether the interpreter is past its main thread: it then runs exit handlers, and takes no new ones."""
    return not threading.main_thread().is_alive()


def hooks_were_ignored() -> bool:
    """Tell whether this process was forked past Python's hooks, as some servers do from C.

    The interpreter's own lock was not made anew then, and a new thread may wait for it forever.
    """
    return _hook_ran_in is not None and _hook_ran_in != os.getpid()


def _finalize_in_multiprocessing() -> None:
    """Children of multiprocessing leave by `os._exit`, past atexit; their own finalisers are run before.

    They are cleared when a child starts, so this is done anew in each process, at its first event.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize  # noqa: PLC0415  only in such a child, where it is loaded already

        Finalize(None, _at_exit, exitpriority=-100)


def _listen_to_celery() -> None:
    """The children of Celery's pool leave by `os._exit` too, and a signal of Celery's own is all they give before."""
    signals = sys.modules.get("celery.signals")
    if signals is not None:
        signals.worker_process_shutdown.connect(_at_celerys_exit, weak=False, dispatch_uid=__name__)


def _at_celerys_exit(**_told: object) -> None:
    _at_exit()


def _after_fork() -> None:
    global _hook_ran_in  # noqa: PLW0603  see `hooks_were_ignored`
    _hook_ran_in = os.getpid()
    for owner in list(_watched):
        attempt(owner.after_fork)


def _at_exit() -> None:
    for owner in list(_watched):
        attempt(owner.at_exit)


def handle_sigterm() -> None:
    """On SIGTERM deliver first, then do what would have been done without us: call the old handler, or end."""
    global _previous_sigterm  # noqa: PLW0603  the chain must know whom it comes before
    if threading.current_thread() is not threading.main_thread():
        _log.warning("handle_sigterm: Python lets only the main thread set signal handlers; configure() there")
        return
    current = signal.getsignal(signal.SIGTERM)
    if current is not _on_sigterm:
        _previous_sigterm = current
        signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    previous: Callable[[int, FrameType | None], Any] | int | None = _previous_sigterm
    if callable(previous):
        # It may let the process finish its work first, so sessions stay open: those that do not end are ended at exit.
        for owner in list(_watched):
            attempt(owner.deliver)
        previous(number, frame)
        return
    _at_exit()
    if previous != signal.SIG_IGN:  # pragma: no cover  a process that ends by a signal leaves no figures
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
