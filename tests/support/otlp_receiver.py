"""A real OTLP receiver in the test's own process, over HTTP and over gRPC, that can be told to misbehave."""

from __future__ import annotations

import gzip
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.loopback import answering

REQUESTS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": ExportTraceServiceRequest,
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": ExportLogsServiceRequest,
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": ExportMetricsServiceRequest,
}


@dataclass
class Received:
    """What arrived, and what to answer next."""

    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    answers: deque[Callable[[Any], None]] = field(default_factory=deque)
    max_bytes: int | None = None
    address: str = ""
    reply: bytes = b""

    def of(self, kind: type) -> list[Any]:
        return [message for _, _, message in self.requests if isinstance(message, kind)]

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in self.of(ExportTraceServiceRequest)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def distinct_spans(self) -> set[bytes]:
        return {span.span_id for span in self.spans}

    @property
    def logs(self) -> list[Any]:
        return [
            record
            for request in self.of(ExportLogsServiceRequest)
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    @property
    def resources(self) -> list[dict[str, str]]:
        return [
            {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            for request in self.of(ExportTraceServiceRequest)
            for resource in request.resource_spans
        ]

    @property
    def metrics(self) -> dict[str, Any]:
        return {
            metric.name: metric
            for request in self.of(ExportMetricsServiceRequest)
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    received: ClassVar[Received]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.received.max_bytes is not None and len(body) > self.received.max_bytes:
            self.answer(413)
            return
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if self.received.answers:
            self.received.answers.popleft()(self)
            return
        if self.path not in REQUESTS:
            self.answer(404)
            return
        self.received.requests.append((self.path, headers, REQUESTS[self.path].FromString(body)))
        self.answer(200)

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class calls it so
        """Keep the test's output clean."""


def status(code: int, body: bytes = b"", **headers: str) -> Callable[[Any], None]:
    """Answer with a status."""
    return lambda handler: handler.answer(code, body, **headers)


def hang_up(handler: Any) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def half_an_answer(handler: Any) -> None:
    """Announce more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"half")
    handler.wfile.flush()
    hang_up(handler)


def hang(seconds: float) -> Callable[[Any], None]:
    """Say nothing for a while."""

    def answer(handler: Any) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return answer


@contextmanager
def http_receiver(wrap: Callable[[socket.socket], socket.socket] | None = None) -> Iterator[Received]:
    """Receive OTLP over HTTP on a free port of the loopback."""
    received = Received()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"received": received}))
    server.daemon_threads = True
    if wrap is not None:
        server.socket = wrap(server.socket)
    received.address = f"127.0.0.1:{server.server_address[1]}"
    with answering(server):
        yield received


class _Service(grpc.GenericRpcHandler):
    def __init__(self, received: Received) -> None:
        self._received = received

    def service(self, call: Any) -> Any:
        kind = REQUESTS.get(call.method)
        if kind is None:
            return None
        metadata = {entry.key: entry.value for entry in call.invocation_metadata}

        def export(body: bytes, context: Any) -> bytes:
            if self._received.answers:
                self._received.answers.popleft()(context)
            self._received.requests.append((call.method, metadata, kind.FromString(body)))
            return self._received.reply

        return grpc.unary_unary_rpc_method_handler(export)


@contextmanager
def grpc_receiver(max_bytes: int = 4 << 20) -> Iterator[Received]:
    """Receive OTLP over gRPC on a free port of the loopback."""
    received = Received()
    server = grpc.server(
        ThreadPoolExecutor(max_workers=2),
        handlers=[_Service(received)],
        options=[("grpc.max_receive_message_length", max_bytes)],
    )
    received.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield received
    finally:
        server.stop(None).wait()
