"""What the SDK has to say of itself, on the logger `spanforge`, without anybody waiting for a log handler.

A handler may hang: on a pipe that nobody reads, on a connection. So a few warnings wait for a thread that is started
for them and ends with them; what finds no room is counted, and said with the next. At the end of the process that
thread is waited for a moment, and then given up.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import Final

from spanforge._guard import attempt
from spanforge._streams import descriptor, put, takes_more

__all__ = ["handlers_of", "is_free", "leave", "settle", "warn"]

_MOST_WAITING: Final = 100
_PATIENCE_S: Final = 0.2
_LEAVE_S: Final = 0.5
_Warning = tuple[str, tuple[object, ...]]


class _Outlet:
    """Warnings on their way out."""

    def __init__(self) -> None:
        self._leaves = False
        self.forget()

    def forget(self) -> None:
        """Begin anew in a forked child: what waits, the thread and its lock are the parent's."""
        # Re-entrant: a signal handler may have something to say while its own thread has.
        self._lock = threading.RLock()
        self._waiting: deque[_Warning] = deque()
        self._lost = 0
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def say(self, warning: _Warning) -> None:
        if self._pid != os.getpid():
            self.forget()
        if not self._leaves:
            self._leaves = True
            atexit.register(leave)
        with self._lock:
            if len(self._waiting) >= _MOST_WAITING:
                self._lost += 1
                return
            self._waiting.append(warning)
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="spanforge warnings", daemon=True)
            started = attempt(self._thread.start) is None
            if not started:
                self._thread = None
        if not started:
            # The interpreter is going down, or the system has no more threads.
            self._run(in_line=True)

    def settle(self, timeout: float) -> bool:
        """Wait until everything is said, at most `timeout` seconds; False where it is not."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        return self._thread is None

    def _run(self, *, in_line: bool = False) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                message, args = self._waiting.popleft()
                lost, self._lost = self._lost, 0
            if lost:
                message, args = f"{message} (and %d warnings that found no way out)", (*args, lost)
            if not self._said(message, args, in_line=in_line):
                with self._lock:
                    self._lost += lost + 1

    @staticmethod
    def _said(message: str, args: tuple[object, ...], *, in_line: bool) -> bool:
        said: list[bool] = []
        attempt(lambda: said.append(_log(message, args, in_line=in_line)))
        return said != [False]


def handlers_of(logger: logging.Logger | None) -> Iterator[logging.Handler]:
    """Yield the handlers that a logger's records go to; a disabled one's too, for that is mostly an accident."""
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def _log(message: str, args: tuple[object, ...], *, in_line: bool) -> bool:
    """Log a warning; False where that might take for ever, as any handler but a plain one might in line."""
    logger = logging.getLogger("spanforge")
    if max(logger.getEffectiveLevel(), logger.manager.disable + 1) > logging.WARNING:
        return True
    record = logger.makeRecord(logger.name, logging.WARNING, __file__, 0, message, args, None)
    handlers = list(handlers_of(logger))
    if not handlers:
        return _print(record.getMessage())
    plain = not in_line or all(isinstance(handler, logging.StreamHandler) for handler in handlers)
    if not plain or not all(is_free(handler) for handler in handlers):
        return False
    logger.callHandlers(record)
    return True


def _print(line: str) -> bool:
    """Write to stderr, as logging does where it was not configured, but not into a pipe that is full."""
    stream = sys.stderr
    fd = descriptor(stream)
    if fd is None:
        print(line, file=stream)
        return True
    data = f"{line}\n".encode()
    return put(fd, data, _PATIENCE_S) == len(data)


def is_free(handler: logging.Handler) -> bool:
    """Tell whether a handler would take a record at once, as far as one can know."""
    if handler.lock is not None:
        if not handler.lock.acquire(timeout=_PATIENCE_S):
            return False
        handler.lock.release()
    return takes_more(getattr(handler, "stream", None), _PATIENCE_S)


def _let_go(handler: logging.Handler) -> None:
    """Keep the end of `logging` from waiting for a handler in which a thread of ours, or any other, is stuck."""
    if not is_free(handler):
        handler.createLock()
        handler.flush = _nothing


def _nothing() -> None: ...


def leave() -> None:
    """Wait a moment for what is still to be said; the process is about to end."""
    _outlet.settle(_LEAVE_S)
    for handler in list(handlers_of(logging.getLogger("spanforge"))):
        attempt(lambda handler=handler: _let_go(handler))


_outlet: Final = _Outlet()
settle: Final = _outlet.settle

if hasattr(os, "register_at_fork"):  # pragma: no branch  Windows has no fork
    os.register_at_fork(after_in_child=_outlet.forget)


def warn(message: str, *args: object) -> None:
    """Log a warning; nobody waits for it, and an application's handler that fails costs the line and nothing else.

    Args:
        message: With `%s` and the like for the arguments.
        args: Free of user text.
    """
    _outlet.say((message, args))
