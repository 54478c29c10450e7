from __future__ import annotations

import sys

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from support.golden import VARIANTS, measure
from support.otlp_receiver import Received, grpc_receiver

from spanforge.exceptions import ConfigError, MissingExtraError, SinkWriteError
from spanforge.sinks.base import Receipt
from spanforge.sinks.otlp import OtlpSink


@pytest.fixture
def receiver():
    with grpc_receiver() as received:
        yield received


@pytest.fixture
def sink(receiver: Received):
    sink = OtlpSink(f"http://{receiver.address}", protocol="grpc", headers={"X-Key": "k"}, compression="gzip")
    yield sink
    sink.close()


def abort(code: grpc.StatusCode, details: bytes | None = None):
    def answer(context):
        if details is not None:
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
        context.abort(code, "what the receiver says is not repeated")

    return answer


def fails_with(sink: OtlpSink) -> SinkWriteError:
    with pytest.raises(SinkWriteError) as caught:
        sink.write(VARIANTS["orphan"]())
    assert caught.value.__context__ is None
    return caught.value


def test_traces_logs_and_metrics_arrive_with_the_metadata(sink: OtlpSink, receiver: Received):
    measure(sink, "evaluation")
    assert sink.write(VARIANTS["evaluation"]()) is None
    assert len(receiver.distinct_spans) == 7
    assert len(receiver.logs) == 4
    assert "gen_ai.client.inference.duration" in receiver.metrics
    assert receiver.requests[0][1]["x-key"] == "k"


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        (grpc.StatusCode.UNAVAILABLE, True),
        (grpc.StatusCode.INTERNAL, True),
        (grpc.StatusCode.UNAUTHENTICATED, False),
        (grpc.StatusCode.INVALID_ARGUMENT, False),
    ],
)
def test_refusals_say_whether_to_try_again(sink: OtlpSink, receiver: Received, code: grpc.StatusCode, retryable: bool):
    receiver.answers.append(abort(code))
    error = fails_with(sink)
    assert (error.reason, error.retryable) == (f"grpc_{code.name.lower()}", retryable)


def test_an_answer_that_is_none_is_no_delivery(sink: OtlpSink, receiver: Received):
    receiver.reply = b"<html>"
    error = fails_with(sink)
    assert (error.reason, error.retryable) == ("answer_unreadable", True)


def test_spans_refused_among_others_are_counted_and_said(sink: OtlpSink, receiver: Received):
    refusal = ExportTraceServiceResponse()
    refusal.partial_success.rejected_spans = 1
    receiver.reply = refusal.SerializeToString()
    assert sink.write(VARIANTS["orphan"]()) == Receipt(failed=1, last_error="partial_success")


def test_the_time_to_wait_is_read_from_the_details(sink: OtlpSink, receiver: Received):
    detail = AnyMessage()
    detail.Pack(RetryInfo(retry_delay=Duration(seconds=3, nanos=500_000_000)))
    status = Status(code=8, details=[AnyMessage(type_url="other", value=b""), detail])
    receiver.answers.append(abort(grpc.StatusCode.RESOURCE_EXHAUSTED, status.SerializeToString()))
    error = fails_with(sink)
    assert (error.reason, error.retry_after_s) == ("grpc_resource_exhausted", 3.5)


@pytest.mark.parametrize("details", [b"\xff\xff", Status(code=8).SerializeToString()])
def test_details_without_a_time_are_no_time(sink: OtlpSink, receiver: Received, details: bytes):
    receiver.answers.append(abort(grpc.StatusCode.UNAVAILABLE, details))
    assert fails_with(sink).retry_after_s is None


def test_what_is_too_large_goes_in_parts():
    with grpc_receiver(max_bytes=9_000) as received:
        sink = OtlpSink(f"http://{received.address}", protocol="grpc", signals=())
        assert sink.write([*VARIANTS["evaluation"](), *VARIANTS["rerank"]()]) is None
        sink.close()
    assert len(received.distinct_spans) == 13


def test_a_receiver_of_traces_only_is_asked_once_for_the_rest(sink: OtlpSink, receiver: Received):
    receiver.answers.extend([lambda _: None, abort(grpc.StatusCode.UNIMPLEMENTED)])
    sink.write(VARIANTS["evaluation"]())
    sink.write(VARIANTS["evaluation"]())
    assert receiver.logs == []


def test_a_receiver_that_is_not_there_is_worth_another_try():
    sink = OtlpSink("http://127.0.0.1:9", protocol="grpc", timeout_s=2)
    assert fails_with(sink).retryable
    sink.close()
    sink.close()


def test_a_plain_receiver_is_not_taken_for_a_secure_one(receiver: Received):
    sink = OtlpSink(f"https://{receiver.address}", protocol="grpc", timeout_s=2)
    assert fails_with(sink).reason == "grpc_unavailable"
    sink.close()


def test_the_authorities_must_be_readable(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        OtlpSink("https://localhost", protocol="grpc", certificate=str(tmp_path / "none"))
    (tmp_path / "ca").write_bytes(b"-----BEGIN CERTIFICATE-----")
    assert OtlpSink("https://localhost", protocol="grpc", certificate=str(tmp_path / "ca")).name == "otlp:localhost:443"


def test_a_forked_child_makes_its_own_channel(sink: OtlpSink, receiver: Received):
    sink.after_fork()
    sink.write(VARIANTS["orphan"]())
    sink.after_fork()
    assert sink.write(VARIANTS["orphan"]()) is None
    assert len(receiver.spans) == 2


def test_without_grpc_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "spanforge.sinks._otlp_grpc")
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'spanforge\[otel\]'"):
        OtlpSink("http://localhost", protocol="grpc")
