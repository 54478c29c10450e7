"""The cell that holds the runtime of a client.

It outlives its content: `configure()` puts a new runtime in, a forked child starts one of its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final

from spanforge._guard import attempt
from spanforge._warnings import warn
from spanforge.config import Settings
from spanforge.delivery import process
from spanforge.exceptions import ConfigError
from spanforge.sdk._runtime import Runtime, weakly
from spanforge.sinks import from_spec
from spanforge.sinks.base import Sink
from spanforge.sinks.memory import MemorySink

__all__ = ["RuntimeCell"]

_LEAVE_S: Final = 5.0
_LEAVE_IN_S: Final = 0.1
_RECONFIGURE_S: Final = 2.0


def _open_sinks(settings: Settings) -> list[Sink]:
    if settings.sandbox:
        return [MemorySink()]
    return [from_spec(spec, signing_key=settings.signing_key) for spec in settings.sinks]


class RuntimeCell:
    """Holds the runtime of one client, or of all clients that share it, for the life of the process."""

    def __init__(self, load: Callable[[], Settings] = Settings.load_leniently) -> None:
        self._load = load
        self._lock = threading.RLock()
        self._lock_of = process.generation()
        self._runtime: Runtime | None = None

    def get(self) -> Runtime:
        """Return the runtime; build it at the first call, and anew in a child that was forked."""
        runtime = self._runtime
        if runtime is None or runtime.generation != process.generation():
            return self._renew()
        return runtime

    def current(self) -> Runtime | None:
        """Return the runtime if there is one in this process."""
        runtime = self._runtime
        return runtime if runtime is not None and runtime.generation == process.generation() else None

    def _own_lock(self) -> None:
        """After a fork the thread that held the lock may not exist: take a new one."""
        if self._lock_of != process.generation():
            self._lock, self._lock_of = threading.RLock(), process.generation()

    def _renew(self) -> Runtime:
        self._own_lock()
        with self._lock:
            runtime = self._runtime
            if runtime is None:
                runtime = self._runtime = self._first()
            elif runtime.generation != process.generation():
                runtime.dispatcher.forked()
                sinks = runtime.dispatcher.sinks
                for sink in sinks:
                    attempt(sink.after_fork)
                runtime = self._runtime = self._started(runtime.settings, sinks)
            return runtime

    def _first(self) -> Runtime:
        settings = self._load()
        sinks: list[Sink] = []
        # In whatever call comes first: nobody there expects that a path cannot be made or a package is missing.
        error = attempt(lambda: sinks.extend(_open_sinks(settings)))
        if error is not None:
            problem = str(error) if isinstance(error, (ConfigError, ImportError)) else type(error).__name__
            warn("spanforge falls back to the structlog sink: %s", problem)
            sinks = [from_spec("structlog")]
        return self._started(settings, sinks)

    def _started(self, settings: Settings, sinks: list[Sink]) -> Runtime:
        if settings.handle_sigterm:
            process.handle_sigterm()
        # At the first event, not now: a child of multiprocessing clears what is registered before it runs its target.
        return Runtime(settings, sinks, on_start=weakly(self._watch))

    def _watch(self) -> None:
        process.watch(self)

    def configure(self, overrides: dict[str, object]) -> None:
        """Put new settings and sinks in; the old sinks get what was emitted, for at most two seconds, and are closed.

        Nothing of the settings before is kept: where that changes sinks that nobody named, it is said.

        Raises:
            ConfigError: A setting cannot be used; nothing has changed then.
        """
        settings = Settings.load(overrides)
        sinks = _open_sinks(settings)
        self._own_lock()
        with self._lock:
            runtime = self.current()
            if runtime is None:
                self._runtime = self._started(settings, sinks)
                return
            if settings.handle_sigterm:
                process.handle_sigterm()
            if "sinks" not in overrides and settings.sinks != runtime.settings.sinks and not settings.sandbox:
                names = ", ".join(sink.name for sink in sinks)
                warn("configure() was given no sinks, and keeps none: from now on events go to %s", names)
            old = runtime.reconfigure(settings, sinks)
        runtime.dispatchers.retire(old, _RECONFIGURE_S)

    # -- what the process tells us (spanforge.delivery.process) -------------------------------------------------

    def __del__(self) -> None:
        """The last client that used it is gone: its sessions end, and its workers with them."""
        runtime = self.current()
        # When the interpreter goes down, `at_exit` has been here, and threads are where they were stopped.
        if runtime is not None and not runtime.dispatcher.closed and not sys.is_finalizing():
            attempt(lambda: runtime.end_all("evicted", _LEAVE_IN_S))
            attempt(lambda: runtime.dispatcher.leave(_LEAVE_S))

    def deliver(self, *, ends: bool) -> None:
        """Deliver what waits, within the time the settings allow; end the open sessions first if the process ends."""
        runtime = self.current()
        if runtime is not None and not runtime.dispatcher.closed:
            runtime.leave(ends=ends)

    def after_fork(self) -> None:
        """Start anew in a child: its ledger, queues and sessions are empty, and what was queued is the parent's."""
        if self._runtime is not None:
            self._renew()

    def at_exit(self) -> None:
        """End the open sessions and deliver, within the time the settings allow; no thread will, from here on."""
        self.deliver(ends=True)
        if (runtime := self.current()) is not None:
            runtime.dispatcher.deliver_in_line()
