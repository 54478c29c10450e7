from __future__ import annotations

import dataclasses
import logging
import ssl
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse as Response
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from support.certificates import authority
from support.golden import VARIANTS, Recorder, generated, measure, query, retrieved
from support.otlp_receiver import Received, half_an_answer, hang, hang_up, http_receiver, status

from spanforge._warnings import settle
from spanforge.config import DEFAULT_SOURCE
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks._otlp_http import retry_after
from spanforge.sinks._otlp_proto import trace_request
from spanforge.sinks.base import Receipt
from spanforge.sinks.otlp import OtlpSink
from spanforge.standards._table import Level, Row
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import spans


@pytest.fixture
def receiver():
    with http_receiver() as received:
        yield received


@pytest.fixture
def sink(receiver: Received):
    sink = OtlpSink(f"http://{receiver.address}", timeout_s=5)
    yield sink
    sink.close()


def attributes(span: Span) -> dict:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


def fails_with(sink: OtlpSink, events: list[Event] | None = None) -> SinkWriteError:
    with pytest.raises(SinkWriteError) as caught:
        sink.write(events or VARIANTS["plain"]())
    assert caught.value.__context__ is None
    return caught.value


def test_a_session_arrives_as_one_tree_with_real_times(sink: OtlpSink, receiver: Received):
    assert sink.write(VARIANTS["evaluation"]()) is None
    spans = {span.name: span for span in receiver.spans}
    assert set(spans) == {
        "rag.pipeline knowledge-base",
        "rag.query knowledge-base",
        "embeddings text-embedding-3-small",
        "rag.retrieve pinecone",
        "rag.rerank cross-encoder/ms-marco",
        "chat gpt-4o",
        "rag.evaluate knowledge-base",
    }
    root = spans["rag.pipeline knowledge-base"]
    assert root.parent_span_id == b""
    assert len({span.trace_id for span in spans.values()}) == 1
    embeddings = spans.pop("embeddings text-embedding-3-small")
    assert embeddings.parent_span_id == spans["rag.query knowledge-base"].span_id
    assert all(span.parent_span_id == root.span_id for span in spans.values() if span is not root)
    chat = spans["chat gpt-4o"]
    assert chat.end_time_unix_nano - chat.start_time_unix_nano == 850_000_000
    assert chat.kind == Span.SPAN_KIND_CLIENT
    assert root.kind == Span.SPAN_KIND_INTERNAL
    assert [event.name for event in spans["rag.retrieve pinecone"].events] == ["rag.doc.retrieved"] * 3


def test_every_standard_stands_on_the_same_spans(sink: OtlpSink, receiver: Received):
    sink.write(VARIANTS["plain"]())
    retrieval = next(attributes(span) for span in receiver.spans if span.name == "rag.retrieve pinecone")
    for key in (
        "aitf.rag.retrieve.database",
        "rag.retrieve.top_k",
        "rag.database.name",
        "gen_ai.data_source.id",
        "openinference.span.kind",
        "retrieval.documents.2.document.score",
        "spanforge.event_id",
    ):
        assert key in retrieval
    assert "gen_ai.retrieval.documents" not in retrieval


def test_later_names_and_documents_are_switches(receiver: Received):
    sink = OtlpSink(f"http://{receiver.address}", later_names=False, genai_documents=True)
    sink.write(VARIANTS["plain"]())
    sink.close()
    retrieval = next(attributes(span) for span in receiver.spans if span.name == "rag.retrieve pinecone")
    assert "rag.retrieve.top_k" not in retrieval
    assert "gen_ai.retrieval.documents" in retrieval


def test_openinference_switches_are_read_from_the_environment(receiver: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENINFERENCE_HIDE_OUTPUTS", "true")
    monkeypatch.setenv("OPENINFERENCE_HIDE_INPUTS", "TRUE")
    sink = OtlpSink(f"http://{receiver.address}")
    sink.write(VARIANTS["rerank"]())
    sink.close()
    keys = {key for span in receiver.spans for key in attributes(span)}
    assert not any(key.startswith(("retrieval.documents", "reranker.input_documents")) for key in keys)
    assert "input.value" in keys


def test_the_resource_says_who_emitted(sink: OtlpSink, receiver: Received):
    sink.write(VARIANTS["plain"]())
    request = receiver.of(ExportTraceServiceRequest)[0]
    said = {pair.key: pair.value.string_value for pair in request.resource_spans[0].resource.attributes}
    assert said["service.name"] == "golden"
    assert said["service.version"] == "1.2.3"


def test_errors_and_time_outs_have_the_status_of_an_error(sink: OtlpSink, receiver: Received):
    sink.write([*VARIANTS["error"](), *VARIANTS["timeout"]()])
    failed = [span for span in receiver.spans if span.status.code == Status.STATUS_CODE_ERROR]
    kinds = {span.name: attributes(span)["error.type"] for span in failed}
    assert kinds["chat gpt-4o"] == "RateLimitError"
    assert kinds["rag.retrieve pinecone"] == "timeout"


def test_an_orphan_stage_is_sent_alone_under_its_root(sink: OtlpSink, receiver: Received):
    sink.write(VARIANTS["orphan"]())
    (span,) = receiver.spans
    assert span.parent_span_id.hex() == VARIANTS["orphan"]()[0].parent_span_id


def test_a_joined_session_gives_its_stages_and_leaves_the_root_to_the_process_it_began_in(
    sink: OtlpSink, receiver: Received
):
    run = Recorder("s")
    run.add(10, generated("s"))
    assert sink.write(run.end(20, partial_view=True)) is None
    assert [span.name for span in receiver.spans] == ["chat gpt-4o"]
    assert sink.write(run.events[-1:]) is None


def test_a_stage_sent_after_its_query_still_knows_the_pipeline(sink: OtlpSink, receiver: Received):
    run = Recorder("s")
    first, second = run.add(10, query("s")), run.add(50, retrieved("s"))
    sink.write([first])
    sink.write([second])
    assert receiver.spans[-1].name == "rag.retrieve pinecone"


def test_sending_again_makes_no_second_span(sink: OtlpSink, receiver: Received):
    sink.write(VARIANTS["evaluation"]())
    sink.write(VARIANTS["evaluation"]())
    assert len(receiver.spans) == 14
    assert len(receiver.distinct_spans) == 7


def test_an_id_of_another_organisation_is_another_span(sink: OtlpSink, receiver: Received):
    events = VARIANTS["evaluation"]()
    assert sink.write(events) is None
    alone = len(receiver.spans)
    sink.write([*events, *(dataclasses.replace(event, org_id="globex") for event in events)])
    assert len(receiver.spans) == alone + 2 * alone


def test_evaluations_are_log_records_under_the_evaluated_span(sink: OtlpSink, receiver: Received):
    sink.write(VARIANTS["evaluation"]())
    chat = next(span for span in receiver.spans if span.name == "chat gpt-4o")
    assert {record.event_name for record in receiver.logs} == {"gen_ai.evaluation.result"}
    assert {record.span_id for record in receiver.logs} == {chat.span_id}
    assert len(receiver.logs) == 4


def test_a_receiver_of_traces_only_is_asked_once_for_the_rest(sink: OtlpSink, receiver: Received):
    receiver.answers.extend([status(200), status(404), status(405)])
    for _ in range(2):
        measure(sink, "evaluation")
        sink.write(VARIANTS["evaluation"]())
    assert receiver.logs == []
    assert receiver.metrics == {}
    assert sink.side_losses == {}
    ledger = sink.metric_points
    assert (ledger.dropped["unsupported"], ledger.lost, ledger.balanced) == (ledger.accepted, 0, True)


def test_a_lost_log_is_counted_reported_once_and_fails_no_event(
    sink: OtlpSink, receiver: Received, caplog: pytest.LogCaptureFixture
):
    receiver.answers.extend([status(200), status(500)])
    assert sink.write(VARIANTS["evaluation"]()) is None
    assert sink.side_losses == {"logs": 4}
    settle(5)
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


def test_429_says_when_to_come_back(sink: OtlpSink, receiver: Received):
    receiver.answers.append(status(429, Retry_After="7"))
    error = fails_with(sink)
    assert (error.reason, error.retryable, error.retry_after_s, error.delivered) == ("http_429", True, 7.0, 0)
    assert sink.write(VARIANTS["plain"]()) is None


def test_retry_after_may_be_a_date_and_is_bounded():
    soon = datetime.now(UTC) + timedelta(seconds=90)
    assert 60 < retry_after(format_datetime(soon, usegmt=True)) <= 91
    assert retry_after("Wed, 21 Oct 2015 07:28:00") == 0.0
    assert retry_after("99999999999999") == 3600.0
    assert retry_after("soon") is None
    assert retry_after(None) is None


@pytest.mark.parametrize(("code", "retryable"), [(500, True), (503, True), (400, False), (401, False), (404, False)])
def test_other_refusals_say_whether_to_try_again(sink: OtlpSink, receiver: Received, code: int, retryable: bool):
    receiver.answers.append(status(code, b"what the receiver says is not repeated"))
    error = fails_with(sink)
    assert (error.reason, error.retryable) == (f"http_{code}", retryable)


def test_a_redirect_is_not_followed(sink: OtlpSink, receiver: Received):
    with http_receiver() as elsewhere:
        receiver.answers.append(status(307, Location=f"http://{elsewhere.address}/v1/traces"))
        error = fails_with(sink)
        assert (error.reason, error.retryable) == ("http_307", False)
        assert elsewhere.requests == []


def test_what_is_too_large_goes_in_parts(sink: OtlpSink, receiver: Received):
    events = [*VARIANTS["evaluation"](), *VARIANTS["rerank"](), *VARIANTS["plain"]()]
    receiver.max_bytes = 12_000
    assert sink.write(events) is None
    assert len(receiver.of(ExportTraceServiceRequest)) > 1
    assert len(receiver.distinct_spans) == len(events) + 3


def test_an_event_too_large_alone_fails_at_its_place(sink: OtlpSink, receiver: Received):
    run = Recorder("s")
    events = [
        run.add(1, generated("s")),
        run.add(2, generated("s", model="m" * 20_000)),
        run.add(3, generated("s")),
    ]
    receiver.max_bytes = 8_000
    error = fails_with(sink, events)
    assert (error.reason, error.delivered, error.retryable) == ("too_large", 1, False)
    assert len(receiver.spans) == 1


def test_spans_refused_among_others_are_counted_and_not_sent_again(sink: OtlpSink, receiver: Received):
    refusal = Response()
    refusal.partial_success.rejected_spans = 2
    receiver.answers.append(status(200, refusal.SerializeToString()))
    assert sink.write(VARIANTS["plain"]()) == Receipt(delivered=2, failed=2, last_error="partial_success")


def test_an_event_this_version_cannot_read_fails_and_its_mates_arrive(sink: OtlpSink, receiver: Received):
    strange = Event(
        event_id="0" * 26,
        event_type="llm.rag.newer",
        timestamp="",
        source="a@1",
        session_id="s",
        payload={"x": 1},
    )
    assert sink.write([strange]) == Receipt(failed=1, last_error="unreadable_event")
    assert sink.write([*VARIANTS["orphan"](), strange]) == Receipt(delivered=1, failed=1, last_error="unreadable_event")
    assert len(receiver.spans) == 1


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"<html><title>Sign in</title></html>", "text/html; charset=utf-8"),
        (b"\xff\xff not protobuf", ""),
        (b"\xff\xff not protobuf", "application/x-protobuf"),
        (b"OK", "text/plain"),
        (b"[]", "application/json"),
        (b'{"error": "no token"}', "application/json"),
        (b"\xff", "application/json"),
        (b"x" * (2 << 20), "application/x-protobuf"),
    ],
)
def test_an_answer_that_no_receiver_of_otlp_gives_is_no_delivery(
    sink: OtlpSink, receiver: Received, body: bytes, media_type: str
):
    receiver.answers.append(status(200, body, **({"Content_Type": media_type} if media_type else {})))
    error = fails_with(sink)
    assert (error.reason, error.retryable, error.delivered) == ("answer_unreadable", True, 0)
    assert sink.write(VARIANTS["plain"]()) is None


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(b"", "text/html"), (b"{}", "application/json"), (Response().SerializeToString(), "application/x-protobuf")],
)
def test_an_answer_may_be_empty_or_json(sink: OtlpSink, receiver: Received, body: bytes, media_type: str):
    receiver.answers.append(status(200, body, Content_Type=media_type))
    assert sink.write(VARIANTS["plain"]()) is None


def test_a_refusal_in_json_is_read_too(sink: OtlpSink, receiver: Received):
    answer = b'{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "no"}}'
    receiver.answers.append(status(200, answer, Content_Type="application/json"))
    assert sink.write(VARIANTS["orphan"]()) == Receipt(failed=1, last_error="partial_success")


@pytest.mark.parametrize("fault", [hang_up, half_an_answer])
def test_a_broken_answer_is_worth_another_try(sink: OtlpSink, receiver: Received, fault):
    receiver.answers.append(fault)
    assert fails_with(sink).retryable
    assert sink.write(VARIANTS["plain"]()) is None


def test_a_connection_closed_while_idle_is_made_anew_unseen(sink: OtlpSink, receiver: Received):
    sink.write(VARIANTS["orphan"]())
    receiver.answers.append(hang_up)
    assert sink.write(VARIANTS["orphan"]()) is None


def test_a_receiver_that_hangs_is_left_after_the_timeout(receiver: Received):
    sink = OtlpSink(f"http://{receiver.address}", timeout_s=0.2)
    receiver.answers.append(hang(1.0))
    started = time.monotonic()
    assert fails_with(sink).reason == "TimeoutError"
    assert time.monotonic() - started < 1.0
    sink.close()


def test_a_receiver_that_is_not_there_is_worth_another_try():
    sink = OtlpSink("http://127.0.0.1:9")
    error = fails_with(sink)
    assert (error.reason, error.retryable) == ("ConnectionRefusedError", True)


def test_certificates_are_verified(tmp_path):
    files = authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with http_receiver(lambda plain: context.wrap_socket(plain, server_side=True)) as received:
        url = f"https://{received.address}"
        assert fails_with(OtlpSink(url)).reason == "SSLCertVerificationError"
        trusting = OtlpSink(url, certificate=str(files.certificate))
        assert trusting.write(VARIANTS["plain"]()) is None
        trusting.close()
    assert len(received.spans) == 5


def test_headers_and_compression_travel(receiver: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5000")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{receiver.address}/")
    sink = OtlpSink()
    sink.write(VARIANTS["plain"]())
    sink.close()
    path, headers, _ = receiver.requests[0]
    assert path == "/v1/traces"
    assert headers["authorization"] == "Bearer hunter2"
    assert headers["content-encoding"] == "gzip"
    assert "hunter2" not in repr(sink) + sink.name


def test_our_own_variable_wins_over_opentelemetrys(receiver: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPANFORGE_OTLP_ENDPOINT", f"http://{receiver.address}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/v1/traces")
    assert OtlpSink().name == f"otlp:{receiver.address}"
    monkeypatch.delenv("SPANFORGE_OTLP_ENDPOINT")
    assert OtlpSink().name == "otlp:127.0.0.1:9"


def test_the_traces_endpoint_is_taken_as_it_is(receiver: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://{receiver.address}/v1/traces")
    sink = OtlpSink(signals=())
    assert sink.write(VARIANTS["plain"]()) is None
    sink.close()
    assert len(receiver.spans) == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"endpoint": "http://me:hunter2@host"},
        {"endpoint": "ftp://hunter2"},
        {"protocol": "http/hunter2"},
        {"compression": "hunter2"},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"signals": ("hunter2",)},
        {"metric_names": ("hunter2",)},
        {"headers": {"a": "hunter2\n"}},
        {"endpoint": "https://host", "certificate": "/nonexistent/hunter2"},
    ],
)
def test_values_that_cannot_be_used_are_refused_at_once_and_not_repeated(changes: dict):
    with pytest.raises(ConfigError) as caught:
        OtlpSink(**{"endpoint": "http://localhost", **changes})
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__context__ is None


def test_a_timeout_in_the_environment_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")
    with pytest.raises(ConfigError, match="timeout"):
        OtlpSink("http://localhost")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_RESOURCE_ATTRIBUTES", "hunter2"),
        ("OTEL_RESOURCE_ATTRIBUTES", "=hunter2"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "hunter2"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "hunter2"),
    ],
)
def test_variables_that_cannot_be_used_are_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        OtlpSink("http://localhost")
    assert "hunter2" not in repr(caught.value)


def test_the_resource_is_what_opentelemetrys_variables_say(receiver: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other, deployment.environment.name=a%20b,x=1=2")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "checkout")
    sink = OtlpSink(f"http://{receiver.address}")
    named = VARIANTS["orphan"]()
    sink.write([dataclasses.replace(event, source=DEFAULT_SOURCE) for event in named])
    sink.write(named)
    sink.after_fork()
    sink.write(named)
    sink.close()
    ours, theirs, childs = receiver.resources
    assert (ours["service.name"], ours["deployment.environment.name"], ours["x"]) == ("checkout", "a b", "1=2")
    assert (theirs["service.name"], theirs["service.version"]) == ("golden", "1.2.3")
    assert ours["service.instance.id"] == theirs["service.instance.id"] != childs["service.instance.id"]
    (request, *_) = receiver.of(ExportTraceServiceRequest)
    assert request.resource_spans[0].schema_url
    assert request.resource_spans[0].scope_spans[0].schema_url


def test_an_instance_may_be_named_from_outside(receiver: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=pod-7")
    sink = OtlpSink(f"http://{receiver.address}")
    sink.write(VARIANTS["orphan"]())
    sink.close()
    assert receiver.resources[0]["service.instance.id"] == "pod-7"


def test_where_opentelemetry_is_switched_off_nothing_is_sent(receiver: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "True")
    sink = OtlpSink(f"http://{receiver.address}")
    assert sink.write(VARIANTS["plain"]()) == Receipt(dropped={"otel_disabled": 4})
    sink.idle()
    sink.close()
    assert receiver.requests == []
    assert sink.metric_points is None


def test_spans_of_a_trace_that_is_not_sampled_are_not_sent(sink: OtlpSink, receiver: Received):
    unsampled = [dataclasses.replace(event, trace_flags="00") for event in VARIANTS["plain"]()]
    assert sink.write([*unsampled, *VARIANTS["orphan"]()]) == Receipt(delivered=1, dropped={"otel_unsampled": 4})
    assert len(receiver.spans) == 1
    receiver.answers.append(status(503))
    error = fails_with(sink, [*unsampled, *VARIANTS["orphan"]()])
    assert (error.delivered, error.dropped) == (0, {})


def test_what_is_kept_back_among_what_arrived_is_said_so(sink: OtlpSink, receiver: Received):
    run = Recorder("s")
    events = [
        run.add(1, generated("s")),
        dataclasses.replace(run.add(2, generated("s")), trace_flags="00"),
        run.add(3, generated("s")),
        run.add(4, generated("s", model="m" * 20_000)),
    ]
    receiver.max_bytes = 8_000
    error = fails_with(sink, events)
    assert (error.reason, error.delivered, error.dropped) == ("too_large", 2, {"otel_unsampled": 1})


def test_after_a_fork_the_childs_sink_makes_its_own_connection(sink: OtlpSink, receiver: Received):
    sink.write(VARIANTS["orphan"]())
    sink.after_fork()
    assert sink.write(VARIANTS["orphan"]()) is None
    assert len(receiver.spans) == 2


def test_a_source_without_a_version_is_a_service_without_one(sink: OtlpSink, receiver: Received):
    (event,) = VARIANTS["orphan"]()
    sink.write([Event(**{**event.to_dict(), "source": "bare"})])
    (resource,) = receiver.of(ExportTraceServiceRequest)[0].resource_spans
    said = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert said["service.name"] == "bare"
    assert "service.version" not in said


def test_every_kind_of_attribute_has_its_form():
    forms = {"s": "text", "b": True, "i": 7, "f": 0.5, "t": ("a", "b")}
    rows = tuple(Row(key, Level.OWN, lambda _, value=value: value, "") for key, value in forms.items())
    span = spans(Session(VARIANTS["orphan"]()), {"generation": rows})[0]
    (sent,) = trace_request([({"service.name": "s"}, [span])]).resource_spans[0].scope_spans[0].spans
    kinds = {pair.key: pair.value.WhichOneof("value") for pair in sent.attributes}
    assert list(kinds.values()) == ["string_value", "bool_value", "int_value", "double_value", "array_value"]
