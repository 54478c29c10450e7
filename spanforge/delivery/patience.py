"""How long a worker may wait: for company, for a sink that rests, for another try."""

from __future__ import annotations

from spanforge import _clock
from spanforge.delivery.queue import EventLog

__all__ = ["Patience"]


class Patience:
    """The waits of one worker, which a flush cuts short and a stop ends.

    Args:
        log: Whose lock guards this; a wait lets go of it.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._hurry = 0
        self._turns = 0
        self._stop_by: float | None = None

    def hurry(self, *, on: bool) -> None:
        """Skip the wait for company, and try a sink that rests, while somebody waits for a flush."""
        if on and not self._hurry:
            self._turns = 0
        self._hurry += 1 if on else -1

    def turn(self) -> int:
        """Return by how much the next try should be put off while somebody waits: 1 at first, then twice as much."""
        self._turns += 1
        return 1 << min(self._turns - 1, 16)

    def stop(self, deadline: float) -> None:
        """Deliver what can be until `deadline` (monotonic seconds), and end."""
        self._stop_by = deadline

    @property
    def stopping(self) -> bool:
        """True once there is a time to stop."""
        return self._stop_by is not None

    @property
    def in_a_hurry(self) -> bool:
        """True where somebody waits for the queue to be empty."""
        return self._hurry > 0 or self._stop_by is not None

    @property
    def over(self) -> bool:
        """True where the time to stop has come."""
        return self._stop_by is not None and _clock.monotonic() >= self._stop_by

    @property
    def left_to_stop(self) -> float:
        """Seconds until the time to stop; 0 where there is none."""
        return 0.0 if self._stop_by is None else max(0.0, self._stop_by - _clock.monotonic())

    def pause(self, seconds: float) -> bool:
        """Wait, but not past the time to stop; False when that has come."""
        until = _clock.monotonic() + seconds
        with self._log.lock:
            while (left := until - _clock.monotonic()) > 0:
                if self.over:
                    return False
                self._log.changed.wait(min(left, self.left_to_stop) if self.stopping else left)
        return not self.over
