"""OTLP: sessions as span trees to any OpenTelemetry receiver (extra `otel`).

A batch is one request. Its spans carry the ids of the events, so a request that is sent again makes no second
span. Logs (evaluation results) follow once the spans have arrived, metrics go beside them; a receiver that takes
traces only is asked once for the others. Where the OpenTelemetry trace around a session is not sampled, its spans
are not sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, cast

from spanforge import _clock
from spanforge._warnings import warn
from spanforge.config import DEFAULT_SOURCE, OtlpEnvironment, openinference_hidden, otlp_environment
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.metrics.meter import PointLedger
from spanforge.namespaces.event import NOT_SAMPLED, Event, Identity
from spanforge.sinks._endpoint import check_header, parse_endpoint, parse_headers
from spanforge.sinks._otlp_metrics import MetricExport, instruments
from spanforge.sinks._otlp_proto import logs_request, rejected, trace_request
from spanforge.sinks._otlp_resource import Resource
from spanforge.sinks._otlp_transport import RequestTooLargeError, Transport, UnsupportedSignalError
from spanforge.sinks._sessions import SessionMemory
from spanforge.sinks.base import BaseSink, Receipt
from spanforge.standards import aitf, genai, openinference, own
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import AITF_NAMES, GENAI_NAMES, Names, Span, Tables, merged, spans

__all__ = ["OtlpSink"]

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
        metric_names: How metrics are called: `genai` (OpenTelemetry GenAI 0.1), `genai-earlier` (the names before
            it), `aitf`; any of them.
        later_names: Send the attribute names of later AITF releases and of CoSAI too.
        genai_documents: Send `gen_ai.retrieval.documents` (ids and scores).
        span_names: `aitf`, or `genai`: the root is then `invoke_workflow`, the retrieval `retrieval` and INTERNAL.
        user_ids: Send the `actor_id` that events are bound to as `user.id`.
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
        metric_names: Iterable[str] = ("genai",),
        later_names: bool = True,
        genai_documents: bool = False,
        span_names: str = "aitf",
        user_ids: bool = False,
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
        hidden = openinference_hidden()
        tables = _tables(later_names=later_names, documents=genai_documents, users=user_ids)
        self._tables = openinference.hiding(hidden, tables)
        documents = aitf.DOCUMENT_AND_LATER if later_names else aitf.DOCUMENT
        self._documents = () if openinference.hides_documents(hidden) else documents
        self._names = _names(span_names)
        self._memory = SessionMemory()
        self._resource = Resource(environment)
        self._source = DEFAULT_SOURCE
        self._disabled = environment.disabled
        self._side_reported = -_REPORT_EVERY_S
        self.side_losses: Counter[str] = Counter()
        self._metrics = (
            MetricExport(self._transport, instruments(metric_names), environment.temporality, environment.interval_ms)
            if "metrics" in self._signals and not self._disabled
            else None
        )
        self.meter = self._metrics.meter if self._metrics else None

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        """Send the events' spans; what is too large for the receiver goes in parts.

        Returns:
            None where every event arrived; else a receipt that counts as failed the spans that the receiver
            refused among others and the events that this version cannot read, and as dropped those that
            OpenTelemetry's own settings keep back: `otel_unsampled`, `otel_disabled`.

        Raises:
            SinkWriteError: The receiver did not take the events from `delivered` on.
        """
        if self._disabled:
            return Receipt(dropped={"otel_disabled": len(events)})
        self._source = events[-1].source
        sampled = [event for event in events if event.trace_flags != NOT_SAMPLED]
        receipt = self._send(events, sampled)
        if self._metrics:
            self._metrics.send_news(self._resource.of(self._source))
        return None if receipt == Receipt(delivered=len(events)) else receipt

    def _send(self, events: Sequence[Event], sampled: Sequence[Event]) -> Receipt:
        """Send the spans of these events that are sampled."""
        sessions = self._memory.sessions(sampled)
        by_event: dict[Identity, list[Span]] = {}
        for key, session in sessions.items():
            for span in spans(session, self._tables, self._documents, self._names):
                by_event.setdefault((*key, span.event_id), []).append(span)
        try:
            refused = self._send_parts(sampled, by_event)
        except SinkWriteError as error:
            self._send_logs(sessions, sampled[: error.delivered])
            if error.delivered:
                error.dropped = _kept_back(events[: events.index(sampled[error.delivered - 1])])
            raise
        self._send_logs(sessions, sampled)
        unreadable = sum(session.unread for session in sessions.values())
        # A receiver counts the spans it refuses and names none; each is taken for an event of its own.
        failed = min(refused + unreadable, len(sampled))
        return Receipt(
            delivered=len(sampled) - failed,
            failed=failed,
            dropped=_kept_back(events),
            last_error="partial_success" if refused else "unreadable_event" if unreadable else "",
        )

    def idle(self) -> None:
        """Send metrics that are due."""
        if self._metrics:
            self._metrics.send_due(self._resource.of(self._source))

    @property
    def metric_points(self) -> PointLedger | None:
        """What became of the points; None where no metrics are sent."""
        return self._metrics.meter.ledger() if self._metrics else None

    def close(self) -> None:
        """Send the last metrics, and close the connection."""
        if self._metrics:
            self._metrics.close(self._resource.of(self._source))
        self._transport.close()

    def after_fork(self) -> None:
        """Forget the parent's connection."""
        self._transport.forget()
        self._resource.renew()
        if self._metrics:
            self._metrics.after_fork()

    def _send_parts(self, events: Sequence[Event], by_event: Mapping[Identity, list[Span]]) -> int:
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

    def _send_spans(self, events: Sequence[Event], by_event: Mapping[Identity, list[Span]]) -> int:
        by_source: dict[str, list[Span]] = {}
        for event in events:
            by_source.setdefault(event.source, []).extend(by_event.get(event.identity, ()))
        if not any(by_source.values()):
            return 0
        sent = [(self._resource.of(source), found) for source, found in by_source.items()]
        return rejected("traces", self._transport.send("traces", trace_request(sent).SerializeToString()))

    def _send_logs(self, sessions: Mapping[tuple[str, str], Session], events: Sequence[Event]) -> None:
        """Send the evaluation results of events that have arrived; a loss here is counted apart."""
        if "logs" not in self._signals:
            return
        arrived = {event.identity for event in events}
        results = [
            result
            for key, session in sessions.items()
            for result in genai.evaluation_results(session)
            if (*key, result.event_id) in arrived
        ]
        if not results:
            return
        request = logs_request(self._resource.of(events[0].source), results)
        try:
            refused = rejected("logs", self._transport.send("logs", request.SerializeToString()))
        except UnsupportedSignalError:
            self._signals.discard("logs")
        except (SinkWriteError, RequestTooLargeError) as error:
            self._lost(len(results), str(error) or "too_large")
        else:
            self._lost(refused, "partial_success")

    def _lost(self, logs: int, reason: str) -> None:
        if not logs:
            return
        self.side_losses["logs"] += logs
        now = _clock.monotonic()
        if now - self._side_reported >= _REPORT_EVERY_S:
            self._side_reported = now
            warn("%s: evaluation results not sent: %s", self.name, reason)


def _kept_back(events: Sequence[Event]) -> dict[str, int]:
    """Count the events whose spans OpenTelemetry's sampling keeps back."""
    count = sum(event.trace_flags == NOT_SAMPLED for event in events)
    return {"otel_unsampled": count} if count else {}


def _tables(*, later_names: bool, documents: bool, users: bool) -> Tables:
    return merged(
        aitf.ATTRIBUTES_AND_LATER if later_names else aitf.ATTRIBUTES,
        genai.ATTRIBUTES_WITH_DOCUMENTS if documents else genai.ATTRIBUTES,
        openinference.ATTRIBUTES_WITH_USER if users else openinference.ATTRIBUTES,
        own.ATTRIBUTES,
    )


def _names(value: str) -> Names:
    names = {"aitf": AITF_NAMES, "genai": GENAI_NAMES}.get(value)
    if names is None:
        raise ConfigError("span_names: use aitf or genai")
    return names


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
