"""What happens when the process forks, ends, or is told to end. Registered at the first event, not at import."""

from __future__ import annotations

import atexit
import mmap
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Any, Final, NoReturn, Protocol
from weakref import WeakSet

from spanforge._guard import attempt
from spanforge._warnings import leave, warn

__all__ = ["generation", "handle_sigterm", "is_ending", "may_start_threads", "watch"]

_MADV_WIPEONFORK: Final = 18
"""Linux empties such a page in a child, however it was forked; Python has no name for the number."""
_INIT: Final = 1
"""Number of the first process of a PID namespace, which no signal ends by default."""


class Watched(Protocol):
    """Something that must hear of a fork and of the end."""

    def after_fork(self) -> None:
        """The process has become a forked child."""
        ...

    def deliver(self, *, ends: bool) -> None:
        """The process was told to end, which it will, or may not."""
        ...

    def at_exit(self) -> None:
        """The process is about to end."""
        ...


_watched: WeakSet[Any] = WeakSet()
_hooked_in: int | None = None
_previous_sigterm: Any = None


# -- forks ------------------------------------------------------------------------------------------------------------


class _Generation:
    """Counts the forks between this process and the first that used spanforge.

    The number of the process would not do: the first child in a new PID namespace has its parent's. Nor would Python's
    at-fork hook: some servers fork from C.

    Attributes:
        hooks_were_ignored: The latest fork was noticed without its hook.
    """

    def __init__(self) -> None:
        self._number = 0
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._mark = _wiped_by_forks()
        self._needs_pid = self._mark is None
        self._alive: mmap.mmap | list[int] = [1] if self._mark is None else self._mark
        self.hooks_were_ignored = False

    def number(self) -> int:
        """Return the number, which a process shares with no child of its own."""
        if self._alive[0] and not (self._needs_pid and self._pid != os.getpid()):
            return self._number
        return self._forked()

    def _forked(self) -> int:
        with self._lock:
            if not self._alive[0] or self._pid != os.getpid():
                self.hooks_were_ignored = _hooked_in is not None
                self._count()
            return self._number

    def after_fork(self) -> None:
        """Take note of a fork in its hook, where the child has one thread and may find the lock taken."""
        self._lock = threading.Lock()
        self.hooks_were_ignored = False
        if self._needs_pid or not self._alive[0]:  # a hook of the application's may have been here before
            self._count()

    def _count(self) -> None:
        self._number += 1
        self._pid = os.getpid()
        self._alive[0] = 1


def _wiped_by_forks() -> mmap.mmap | None:
    """Return a page that says 1 here and 0 in any child, where the system has such pages."""
    with suppress(AttributeError, OSError, ValueError):
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(_MADV_WIPEONFORK)
        page[0] = 1
        return page
    return None


_generation: Final = _Generation()
generation: Final = _generation.number


def _after_fork() -> None:
    _generation.after_fork()
    for owner in list(_watched):
        attempt(owner.after_fork)


# -- threads ----------------------------------------------------------------------------------------------------------


def is_ending() -> bool:
    """Tell whether the interpreter is past its main thread: it then runs exit handlers, and takes no new ones."""
    return not threading.main_thread().is_alive()


def may_start_threads() -> bool:
    """Tell whether a worker's thread would do its work, and do no harm.

    After a fork past Python's hooks the interpreter's own lock was not made anew, and a new thread may wait for it
    forever. Our exit handler comes too late once the interpreter is ending, so nobody would wait for a thread. And a
    sub-interpreter that is destroyed while a daemon thread is left aborts the process.
    """
    return not (_generation.hooks_were_ignored or is_ending() or _IS_SUBINTERPRETER)


def _is_subinterpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):
        with suppress(ImportError, AttributeError):
            interpreters = import_module(name)
            return bool(interpreters.get_current() != interpreters.get_main())
    return False


_IS_SUBINTERPRETER: Final = _is_subinterpreter()
"""Looked up once: importing is not safe against a signal handler that traces, and a trace call must not import."""


# -- the end ----------------------------------------------------------------------------------------------------------


def watch(owner: Watched) -> None:
    """Tell `owner` of forks and of the end of the process."""
    global _hooked_in  # noqa: PLW0603  hooks are registered once for each process
    _watched.add(owner)
    now = generation()
    if _hooked_in is None:
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):  # pragma: no branch  Windows has no fork
            os.register_at_fork(after_in_child=_after_fork)
    if _hooked_in != now:
        _hooked_in = now
        _finalize_in_multiprocessing()
        _listen_to_celery()
        _stay_for_rq()


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


def _stay_for_rq() -> None:
    """A child of RQ's leaves by `os._exit` after its one job, and tells nobody before."""
    leave_at_once = os._exit
    if "rq.worker" in sys.modules and leave_at_once.__module__ != __name__:

        def leave_delivered(status: int) -> NoReturn:
            attempt(_at_exit)
            leave_at_once(status)

        os._exit = leave_delivered


def _at_exit() -> None:
    for owner in list(_watched):
        attempt(owner.at_exit)
    leave()


def _deliver(*, ends: bool) -> None:
    for owner in list(_watched):
        attempt(partial(owner.deliver, ends=ends))


# -- SIGTERM ----------------------------------------------------------------------------------------------------------


def handle_sigterm() -> None:
    """On SIGTERM deliver first, then do what would have been done without us: call the old handler, or end."""
    global _previous_sigterm  # noqa: PLW0603  the chain must know whom it comes before
    if threading.current_thread() is not threading.main_thread():
        warn("handle_sigterm: Python lets only the main thread set signal handlers; configure() there")
        return
    current = signal.getsignal(signal.SIGTERM)
    if current is None:
        warn("handle_sigterm: a handler that was not set from Python is left alone, since it could not be called")
    elif current is not _on_sigterm:
        _previous_sigterm = current
        signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    previous: Callable[[int, FrameType | None], Any] | int = _previous_sigterm
    if previous == signal.SIG_DFL and not _is_spared(number):
        _deliver(ends=True)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        # Still here: whatever spared the process, the next signal is ours again.
        signal.signal(number, _on_sigterm)
        return
    # It goes on, or its handler may let it finish its work first: sessions stay open, and end at exit if not before.
    _deliver(ends=False)
    if callable(previous):
        previous(number, frame)


def _is_spared(number: int) -> bool:
    """Tell whether the signal does nothing by default to this process: the first of a container, or one that waits."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ()) if hasattr(signal, "pthread_sigmask") else ()
    return os.getpid() == _INIT or number in blocked
