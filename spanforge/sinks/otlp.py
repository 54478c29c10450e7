"""OTLP: sessions as span trees to any OpenTelemetry receiver (extra `otel`).

A batch is one request. Its spans carry the ids of the events, so a request that is sent again makes no second
span. Logs (evaluation results) and metrics follow once the spans have arrived; a receiver that takes traces
only is asked once for the others.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from spanforge import _clock
from spanforge.config import OtlpEnvironment, openinference_hidden, otlp_environment
from spanforge.conventions import aitf, genai, openinference, own
from spanforge.conventions.genai_metrics import measure
from spanforge.conventions.spans import Contribution, Document, Span, nodes, spans
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks._endpoint import check_header, parse_endpoint, parse_headers
from spanforge.sinks._otlp_proto import logs_request, metrics_request, rejected_spans, trace_request
from spanforge.sinks._otlp_transport import RequestTooLargeError, Signal, Transport, UnsupportedSignalError
from spanforge.sinks._sessions import SessionMemory
from spanforge.sinks.base import BaseSink, Receipt

__all__ = ["OtlpSink"]

_log = logging.getLogger("spanforge")

Protocol = Literal["http/protobuf", "grpc"]

_DEFAULTS: Final = {"http/protobuf": "http://localhost:4318", "grpc": "http://localhost:4317"}
_GRPC_PORT: Final = 4317
_DEFAULT_TIMEOUT_MS: Final = 10_000
_REPORT_EVERY_S: Final = 60.0


class OtlpSink(BaseSink):
    """Sends sessions as span trees over OTLP.

    Values not given are read from `SPANFORGE_OTLP_*`, then from OpenTelemetry's own variables, then are those
    of OpenTelemetry: `http://localhost:4318`, `http/protobuf`, 10 s.

    Args:
        endpoint: Base URL of the receiver, http or https, without credentials.
        headers: Sent with each request; the place for tokens.
        protocol: `http/protobuf` or `grpc`.
        timeout_s: Longest wait for one request, in seconds, more than 0.
        certificate: File of certificate authorities to trust in place of the system's.
        compression: `gzip` or `none`.
        signals: What is sent beside traces.
        later_names: Send the attribute names of later AITF releases and of CoSAI too.
        genai_documents: Send `gen_ai.retrieval.documents` (ids and scores).
        transport: Carries the requests, in place of one made from the values above.

    Raises:
        ConfigError: A value cannot be used; the message does not repeat it.
        MissingExtraError: The packages of the extra are not installed.
    """

    whole_sessions = True

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        protocol: str | None = None,
        timeout_s: float | None = None,
        certificate: str | None = None,
        compression: str | None = None,
        signals: Iterable[str] = ("logs", "metrics"),
        later_names: bool = True,
        genai_documents: bool = False,
        transport: Transport | None = None,
    ) -> None:
        environment = otlp_environment()
        chosen = _protocol(protocol or environment.protocol or "http/protobuf")
        base = endpoint or environment.endpoint
        self._transport = transport or _transport(
            chosen,
            base or _DEFAULTS[chosen],
            "" if endpoint else environment.traces_endpoint,
            _headers(headers, environment),
            timeout_s=_timeout(timeout_s, environment),
            certificate=certificate if certificate is not None else environment.certificate,
            compress=_compress(compression or environment.compression or "none"),
        )
        where = "" if endpoint else environment.traces_endpoint
        self.name = f"otlp:{parse_endpoint(where or base or _DEFAULTS[chosen], 'endpoint').authority}"
        self._signals = _signals(signals)
        self._contributions = _contributions(later_names=later_names, documents=genai_documents)
        self._document: Document = aitf.document_and_later if later_names else aitf.document
        self._memory = SessionMemory()
        self._measured_until = _clock.wall_ns()
        self._side_reported = -_REPORT_EVERY_S
        self.side_losses: Counter[str] = Counter()

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        """Send the events' spans; what is too large for the receiver goes in parts.

        Returns:
            None where every event arrived; else a receipt that counts as failed the spans that the receiver
            refused among others, and the events that this version cannot read.

        Raises:
            SinkWriteError: The receiver did not take the events from `delivered` on.
        """
        sessions = self._memory.sessions(events)
        by_event: dict[str, list[Span]] = {}
        for session in sessions:
            for span in spans(session, self._contributions, self._document):
                by_event.setdefault(span.event_id, []).append(span)
        try:
            refused = self._send_parts(events, by_event)
        except SinkWriteError as error:
            self._send_rest(events[: error.delivered])
            raise
        self._send_rest(events)
        unreadable = sum(session.unread for session in sessions)
        if not refused and not unreadable:
            return None
        # A receiver counts the spans it refuses and names none; each is taken for an event of its own.
        failed = min(refused + unreadable, len(events))
        return Receipt(delivered=len(events) - failed, failed=failed)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def after_fork(self) -> None:
        """Forget the parent's connection."""
        self._transport.forget()

    def _send_parts(self, events: Sequence[Event], by_event: Mapping[str, list[Span]]) -> int:
        """Send these events' spans, in halves where they are too many; return how many spans were refused."""
        waiting = [events]
        done = refused = 0
        while waiting:
            part = waiting.pop()
            try:
                refused += self._send_spans(part, by_event)
                done += len(part)
                continue
            except RequestTooLargeError:
                middle = len(part) // 2
            except SinkWriteError as error:
                error.delivered += done
                raise
            if not middle:
                raise SinkWriteError("too_large", delivered=done, retryable=False)
            waiting += (part[middle:], part[:middle])
        return refused

    def _send_spans(self, events: Sequence[Event], by_event: Mapping[str, list[Span]]) -> int:
        by_source: dict[str, list[Span]] = {}
        for event in events:
            by_source.setdefault(event.source, []).extend(by_event.get(event.event_id, ()))
        if not any(by_source.values()):
            return 0
        return rejected_spans(self._transport.send("traces", trace_request(by_source).SerializeToString()))

    def _send_rest(self, events: Sequence[Event]) -> None:
        """Send logs and metrics. The facts have arrived with the spans; a loss here is counted apart."""
        if not self._signals or not events:
            return
        sessions, source = self._memory.sessions(events), events[0].source
        if "logs" in self._signals:
            results = [result for session in sessions for result in genai.evaluation_results(session)]
            if results:
                self._side("logs", lambda: logs_request(source, results))
        if "metrics" in self._signals:
            metrics = measure(node for session in sessions for node in nodes(session))
            started, self._measured_until = self._measured_until, _clock.wall_ns()
            if metrics:
                self._side("metrics", lambda: metrics_request(source, metrics, started, self._measured_until))

    def _side(self, signal: Signal, request: Callable[[], Any]) -> None:
        try:
            self._transport.send(signal, request().SerializeToString())
        except UnsupportedSignalError:
            self._signals.discard(signal)
            _log.info("%s: the receiver takes no %s; none will be sent", self.name, signal)
        except (SinkWriteError, RequestTooLargeError) as error:
            self.side_losses[signal] += 1
            self._report(signal, error)

    def _report(self, signal: Signal, error: Exception) -> None:
        now = _clock.monotonic()
        if now - self._side_reported >= _REPORT_EVERY_S:
            self._side_reported = now
            _log.warning("%s: %s not sent: %s", self.name, signal, str(error) or type(error).__name__)


def _contributions(*, later_names: bool, documents: bool) -> tuple[Contribution, ...]:
    return (
        aitf.attributes_and_later if later_names else aitf.attributes,
        genai.attributes_with_documents if documents else genai.attributes,
        openinference.hiding(openinference_hidden()),
        own.attributes,
    )


def _protocol(value: str) -> Protocol:
    if value not in _DEFAULTS:
        raise ConfigError("protocol: use http/protobuf or grpc")
    return cast("Protocol", value)


def _compress(value: str) -> bool:
    if value not in {"gzip", "none"}:
        raise ConfigError("compression: use gzip or none")
    return value == "gzip"


def _timeout(value: float | None, environment: OtlpEnvironment) -> float:
    if value is None:
        text = environment.timeout_ms or str(_DEFAULT_TIMEOUT_MS)
        value = int(text) / 1000 if text.isascii() and text.isdigit() else 0.0
    if not 0 < value < float("inf"):
        raise ConfigError("timeout: must be more than 0")
    return value


def _headers(headers: Mapping[str, str] | None, environment: OtlpEnvironment) -> dict[str, str]:
    if headers is None:
        return parse_headers(environment.headers.get_secret_value(), "headers")
    return {check_header(name, value, "headers"): value for name, value in headers.items()}


def _signals(signals: Iterable[str]) -> set[str]:
    chosen = set(signals)
    if chosen - {"logs", "metrics"}:
        raise ConfigError("signals: use logs and metrics; traces are always sent")
    return chosen


def _transport(
    protocol: Protocol,
    base: str,
    traces: str,
    headers: Mapping[str, str],
    *,
    timeout_s: float,
    certificate: str,
    compress: bool,
) -> Transport:
    if protocol == "grpc":
        from spanforge.sinks._otlp_grpc import GrpcTransport  # noqa: PLC0415  gRPC is loaded only where it is used

        endpoint = parse_endpoint(traces or base, "endpoint", default_port=_GRPC_PORT)
        return GrpcTransport(endpoint, headers, timeout_s=timeout_s, certificate=certificate, compress=compress)
    from spanforge.sinks._otlp_http import HttpTransport  # noqa: PLC0415  loads TLS only where it is used

    return HttpTransport(
        parse_endpoint(base, "endpoint"),
        parse_endpoint(traces, "traces endpoint") if traces else None,
        headers,
        timeout_s=timeout_s,
        certificate=certificate,
        compress=compress,
    )
