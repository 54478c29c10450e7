"""Sends what was measured, beside the spans; what a receiver refuses of it is counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from spanforge import _clock
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.metrics.aitf import AITF
from spanforge.metrics.genai import EARLIER, GENAI
from spanforge.metrics.instruments import Instrument
from spanforge.metrics.meter import Meter, Snapshot
from spanforge.sinks._otlp_proto import metrics_request, rejected
from spanforge.sinks._otlp_transport import RequestTooLargeError, Transport, UnsupportedSignalError

__all__ = ["MetricExport", "instruments"]

_DELTA: Final = frozenset({"delta", "lowmemory"})
"""`lowmemory` is `delta` for the instruments there are here."""
_FIRST_REST_S: Final = 1.0
_DEFAULT_INTERVAL_MS: Final = "60000"
_NAMES: Final[Mapping[str, tuple[Instrument, ...]]] = {"genai": GENAI, "genai-earlier": EARLIER, "aitf": AITF}


def instruments(names: Iterable[str]) -> tuple[Instrument, ...]:
    """Return the instruments of these conventions.

    Raises:
        ConfigError: There is no such convention.
    """
    chosen = set(names)
    if chosen - set(_NAMES):
        raise ConfigError(f"metric_names: use {', '.join(_NAMES)}")
    return tuple(instrument for name, found in _NAMES.items() if name in chosen for instrument in found)


class MetricExport:
    """Sends the points of a meter to one receiver.

    Args:
        transport: Carries the requests.
        measured: What is measured.
        temporality: `cumulative` (also where empty), `delta` or `lowmemory`.
        interval_ms: Milliseconds after which totals are sent anew although nothing has changed.

    Attributes:
        meter: Gets the events.

    Raises:
        ConfigError: A value cannot be used.
    """

    def __init__(
        self, transport: Transport, measured: Iterable[Instrument], temporality: str = "", interval_ms: str = ""
    ) -> None:
        if temporality not in {"", "cumulative", *_DELTA}:
            raise ConfigError("temporality: use cumulative, delta or lowmemory")
        interval = interval_ms or _DEFAULT_INTERVAL_MS
        if not interval.isascii() or not interval.isdigit() or not int(interval):
            raise ConfigError("interval: OTEL_METRIC_EXPORT_INTERVAL is a number of milliseconds above 0")
        self._transport = transport
        self._delta = temporality in _DELTA
        self._interval_s = int(interval) / 1000
        self.meter = Meter(measured, delta=self._delta)
        self._forget()

    def _forget(self) -> None:
        self._supported = True
        self._due = _clock.monotonic() + self._interval_s
        self._rest_until = 0.0
        self._rest_s = _FIRST_REST_S

    def after_fork(self) -> None:
        """Begin at zero in a child."""
        self.meter.reset()
        self._forget()

    def send_news(self, resource: Mapping[str, str]) -> None:
        """Send what has changed, unless the receiver is to be left alone for a while."""
        if self.meter.pending and _clock.monotonic() >= self._rest_until:
            self._send(resource)

    def send_due(self, resource: Mapping[str, str]) -> None:
        """Send when it is time to, changed or not: receivers forget totals that nobody repeats."""
        if _clock.monotonic() >= max(self._due, self._rest_until):
            self._send(resource)

    def close(self, resource: Mapping[str, str]) -> None:
        """Send what has changed, and give up what cannot be sent."""
        if self.meter.pending:
            self._send(resource)
        if self.meter.pending:
            self.meter.settle(self.meter.outgoing(), dropped="shutdown")

    def _send(self, resource: Mapping[str, str]) -> None:
        taken = self.meter.outgoing()
        self._due = _clock.monotonic() + self._interval_s
        if not taken.points:
            return
        if not self._supported:
            self.meter.settle(taken, dropped="unsupported")
            return
        body = metrics_request(resource, taken, delta=self._delta).SerializeToString()
        try:
            refused = rejected("metrics", self._transport.send("metrics", body))
        except UnsupportedSignalError:
            self._supported = False
            self.meter.settle(taken, dropped="unsupported")
        except RequestTooLargeError:
            self._refused(taken, "too_large")
        except SinkWriteError as error:
            self._failed(taken, error)
        else:
            self._rest_s = _FIRST_REST_S
            self.meter.settle(taken, refused=refused, error="partial_success" if refused else "")

    def _failed(self, taken: Snapshot, error: SinkWriteError) -> None:
        if not error.retryable:
            self._refused(taken, error.reason)
            return
        self.meter.note(error.reason)
        self._rest_until = _clock.monotonic() + max(self._rest_s, error.retry_after_s or 0.0)
        self._rest_s = min(self._rest_s * 2, self._interval_s)

    def _refused(self, taken: Snapshot, reason: str) -> None:
        self.meter.settle(taken, refused=sum(map(len, taken.points.values())), error=reason)
