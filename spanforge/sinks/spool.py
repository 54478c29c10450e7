"""A spool: what a network sink cannot send waits on disk, in order, also across a restart of the process.

Delivery is at least once: after a restart a segment is sent from its beginning, and receivers know events by
their ids. An event in the spool is pending, never delivered.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from spanforge import _clock
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.metrics.meter import PointLedger
from spanforge.namespaces.event import Event
from spanforge.sinks._files import absolute, code_of
from spanforge.sinks._spool_files import Segment, adopt, begin, left_behind
from spanforge.sinks.base import BaseSink, Receipt, Sink

__all__ = ["Spool"]

_BATCH: Final = 256
_SEGMENTS: Final = 8
_LOOK_EVERY_S: Final = 30.0
_DRAIN_S: Final = 5.0
_FIRST_REST_S: Final = 1.0
_LONGEST_REST_S: Final = 60.0
_UNENCODABLE: Final = (TypeError, ValueError, RecursionError)


class Spool(BaseSink):
    """Wraps a network sink that settles what it is given at once, such as `OtlpSink`.

    Args:
        sink: Where events go while it takes them.
        path: Folder of the spool; processes may share it. Files are the owner's alone (mode 0600).
        max_bytes: Bytes the spool may take on disk; the oldest events are dropped beyond it.
        max_age_s: Seconds after which events in the spool are dropped.

    Attributes:
        recovered: Events of earlier processes that were delivered; they are in no ledger of this one.
        recovered_lost: Events of earlier processes that were refused or dropped.

    Raises:
        ConfigError: A limit cannot be used.
    """

    def __init__(
        self,
        sink: Sink,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = 64 << 20,
        max_age_s: float = 86_400.0,
    ) -> None:
        if max_bytes <= 0 or not max_age_s > 0:
            raise ConfigError("spool: max_bytes and max_age_s must be more than 0")
        self._sink = sink
        self._folder: Path = absolute(path)
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self.name = f"spool:{sink.name}"
        self.whole_sessions = bool(getattr(sink, "whole_sessions", False))
        self.meter = getattr(sink, "meter", None)
        self.recovered = 0
        self.recovered_lost = 0
        self._forget()

    def _forget(self) -> None:
        self._segments: list[Segment] = []
        self._closed: dict[Path, Segment] = {}
        self._delivered = 0
        self._failed = 0
        self._dropped: Counter[str] = Counter()
        self._last_error = ""
        self._look_at = 0.0
        self._rest_until = 0.0
        self._rest_s = _FIRST_REST_S

    @property
    def metric_points(self) -> PointLedger | None:
        """What became of the points that the sink behind it sends."""
        return getattr(self._sink, "metric_points", None)

    # -- what a sink does ---------------------------------------------------------------------------------------

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        """Send the events, or keep them on disk behind those that wait already.

        Raises:
            SinkWriteError: Neither the receiver nor the disk takes any of them.
        """
        self._look()
        self._drain()
        sent = 0 if self._segments or not self._is_awake() else self._send(events, ours=True)
        self._store(events[sent:], any_settled=sent > 0)
        receipt = self._settled()
        return None if receipt == Receipt(delivered=len(events)) else receipt or Receipt()

    def idle(self) -> Receipt | None:
        """Drain what waits, if the receiver is back."""
        self._add(self._sink.idle(), ours=True)
        self._look()
        self._drain()
        return self._settled()

    def close(self) -> Receipt | None:
        """Close the sink; what waits stays on disk, for this process or the next."""
        self._add(self._sink.close(), ours=True)
        for segment in self._segments:
            segment.close()
            self._closed[segment.path] = segment
        self._segments = []
        self._look_at = 0.0
        return self._settled()

    def after_fork(self) -> None:
        """Leave the spool to the parent; the child's has files of its own in the same folder."""
        for segment in self._segments:
            segment.leave_to_parent()
        self._forget()
        self._sink.after_fork()

    # -- sending ------------------------------------------------------------------------------------------------

    def _is_awake(self) -> bool:
        return _clock.monotonic() >= self._rest_until

    def _rest(self, asked: float | None) -> None:
        self._rest_until = _clock.monotonic() + max(self._rest_s, min(asked or 0.0, _LONGEST_REST_S))
        self._rest_s = min(self._rest_s * 2, _LONGEST_REST_S)

    def _send(self, events: Sequence[Event], *, ours: bool) -> int:
        """Send events and count them; return how many from the front are settled.

        Fewer than all means that the receiver is to be left alone for a while.
        """
        done, alone = 0, False
        while done < len(events):
            part = events[done : done + 1] if alone else events[done:]
            try:
                receipt = self._sink.write(part) or Receipt(delivered=len(part))
            except OSError as error:
                known = error if isinstance(error, SinkWriteError) else SinkWriteError("")
                arrived = min(max(known.delivered, 0), len(part))
                refused = len(part) == 1 and not arrived and not known.dropped and not known.retryable
                settled = Receipt(delivered=arrived, failed=int(refused), dropped=known.dropped)
                self._add(settled, ours=ours)
                done += settled.total
                if known.retryable:
                    self._rest(known.retry_after_s)
                    return done
                alone = True
                continue
            self._add(receipt, ours=ours)
            done += len(part)
        self._rest_s = _FIRST_REST_S
        return done

    def _drain(self) -> None:
        """Send what waits, oldest first, for as long as the receiver takes it and a few seconds at most."""
        deadline = _clock.monotonic() + _DRAIN_S
        while self._segments and self._is_awake() and _clock.monotonic() < deadline:
            segment = self._segments[0]
            if segment.is_older_than(self._max_age_s):
                self._drop(segment, "spool_expired")
                continue
            events, ends = segment.peek(_BATCH)
            done = self._send(events, ours=segment.ours)
            if done:
                segment.settle(done, ends[done - 1])
            if segment.drained or not events:
                self._drop(segment, "spool_damaged")

    # -- keeping ------------------------------------------------------------------------------------------------

    def _store(self, events: Sequence[Event], *, any_settled: bool) -> None:
        lines: list[bytes] = []
        for event in events:
            try:
                lines.append(event.encode())
            except _UNENCODABLE:
                self._failed += 1
                any_settled = True
        problem = ""
        while lines and not problem:
            try:
                whole = self._current().append(lines)
            except OSError as error:
                problem = code_of(error)
            else:
                lines = lines[whole:]
                any_settled = any_settled or whole > 0
                problem = "" if whole else "short write"
        if problem and not any_settled:
            # The worker keeps the batch and tries again.
            raise SinkWriteError(f"spool: {problem}")
        self._dropped[f"spool_{problem}"] += len(lines)
        self._trim()

    def _current(self) -> Segment:
        if not self._segments or not self._segments[-1].ours or self._is_full(self._segments[-1]):
            self._segments.append(begin(self._folder))
        return self._segments[-1]

    def _is_full(self, segment: Segment) -> bool:
        return segment.size >= self._max_bytes / _SEGMENTS

    def _trim(self) -> None:
        while self._segments and sum(segment.size for segment in self._segments) > self._max_bytes:
            self._drop(self._segments[0], "spool_full")

    def _drop(self, segment: Segment, reason: str) -> None:
        """Delete a segment, and count what still waited in it."""
        self._segments.remove(segment)
        if segment.ours:
            self._dropped[reason] += segment.waiting
        else:
            while not segment.drained:
                events, ends = segment.peek(_BATCH)
                self.recovered_lost += len(events)
                segment.settle(len(events), ends[-1] if ends else segment.size)
        segment.delete()

    def _look(self) -> None:
        """Take over what processes that are gone have left behind; ours of before a `close` come back too."""
        now = _clock.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_EVERY_S
        mine = {segment.path for segment in self._segments}
        try:
            for path in left_behind(self._folder):
                fd = None if path in mine else adopt(path)
                if fd is None:
                    continue
                known = self._closed.pop(path, None)
                if known is not None:
                    known.reopen(fd)
                self._segments.append(known or Segment(path, fd, ours=False))
        except OSError:
            # Looked at again later; what is there stays there.
            return
        self._segments.sort(key=lambda segment: segment.path)

    # -- counting -----------------------------------------------------------------------------------------------

    def _add(self, receipt: Receipt | None, *, ours: bool) -> None:
        if receipt is None:
            return
        self._last_error = receipt.last_error or self._last_error
        if ours:
            self._delivered += receipt.delivered
            self._failed += receipt.failed
            self._dropped.update(receipt.dropped)
        else:
            self.recovered += receipt.delivered
            self.recovered_lost += receipt.total - receipt.delivered

    def _settled(self) -> Receipt | None:
        dropped = {reason: count for reason, count in self._dropped.items() if count}
        receipt = Receipt(delivered=self._delivered, failed=self._failed, dropped=dropped, last_error=self._last_error)
        self._delivered = self._failed = 0
        self._last_error = ""
        self._dropped.clear()
        return receipt if receipt.total else None
