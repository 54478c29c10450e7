"""OTLP over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from spanforge._version import __version__
from spanforge.exceptions import ConfigError, MissingExtraError, SinkWriteError
from spanforge.sinks._endpoint import Endpoint
from spanforge.sinks._otlp_transport import Answer, RequestTooLargeError, Signal, UnsupportedSignalError

try:
    import grpc
    from google.protobuf.message import DecodeError
    from google.rpc.error_details_pb2 import RetryInfo
    from google.rpc.status_pb2 import Status
except ImportError:
    raise MissingExtraError("OTLP over gRPC", "otel") from None

__all__ = ["GrpcTransport"]

_METHODS: Final[Mapping[Signal, str]] = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
_RETRYABLE: Final = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)
_DETAILS: Final = "grpc-status-details-bin"
_abandoned: Final[list[Any]] = []
"""Channels of a parent process: their destructors would hang in a forked child."""


class GrpcTransport:
    """Sends OTLP requests over gRPC, on one channel.

    Args:
        endpoint: Where to; its path is not used.
        headers: Sent as metadata with each request.
        timeout_s: Longest time for one request.
        certificate: File of certificate authorities; gRPC's own where empty.
        compress: Send bodies with gzip.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        certificate: str,
        compress: bool,
    ) -> None:
        self._endpoint = endpoint
        self._metadata = tuple(headers.items())
        self._timeout_s = timeout_s
        self._compression = grpc.Compression.Gzip if compress else grpc.Compression.NoCompression
        self._roots = _authorities(certificate) if endpoint.secure else None
        self._channel: Any = None

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send one request (see `Transport.send`)."""
        call: Callable[..., bytes] = self._open().unary_unary(_METHODS[signal])
        try:
            return Answer(call(body, timeout=self._timeout_s, metadata=self._metadata, compression=self._compression))
        except grpc.RpcError as error:
            code, wait = _code(error), _wait(error)
        # Raised here, outside the handler: a gRPC error holds what the receiver said.
        raise _refusal(code, wait)

    def _open(self) -> Any:
        if self._channel is None:
            options = (("grpc.primary_user_agent", f"spanforge/{__version__}"),)
            target = self._endpoint.authority
            if self._endpoint.secure:
                credentials = grpc.ssl_channel_credentials(self._roots)
                self._channel = grpc.secure_channel(target, credentials, options=options)
            else:
                self._channel = grpc.insecure_channel(target, options=options)
        return self._channel

    def close(self) -> None:
        """Close the channel."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def forget(self) -> None:
        """Forget the channel, and keep it from being destroyed here."""
        if self._channel is not None:
            _abandoned.append(self._channel)
            self._channel = None


def _authorities(certificate: str) -> bytes | None:
    if not certificate:
        return None
    problem = ""
    try:
        return Path(certificate).read_bytes()
    except OSError as error:
        problem = type(error).__name__
    raise ConfigError(f"certificate: the file of certificate authorities cannot be read ({problem})")


def _code(error: grpc.RpcError) -> grpc.StatusCode:
    return error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN


def _wait(error: grpc.RpcError) -> float | None:
    """Return how long the receiver asks to wait, from the `RetryInfo` among the error's details."""
    trailing = error.trailing_metadata() if isinstance(error, grpc.Call) else ()
    details = next((entry.value for entry in trailing or () if entry.key == _DETAILS), None)
    if not isinstance(details, bytes):
        return None
    info = RetryInfo()
    try:
        for detail in Status.FromString(details).details:
            if detail.Unpack(info):
                return max(0.0, info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
    except DecodeError:
        return None
    return None


def _refusal(code: grpc.StatusCode, wait: float | None) -> Exception:
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and wait is None:
        # Without a time to wait it says that the message is too large.
        return RequestTooLargeError()
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return UnsupportedSignalError("grpc_unimplemented", retryable=False)
    return SinkWriteError(f"grpc_{code.name.lower()}", retryable=code in _RETRYABLE, retry_after_s=wait)
