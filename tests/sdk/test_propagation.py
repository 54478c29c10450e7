from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from spanforge import _ids
from spanforge.exceptions import StrictModeError
from spanforge.namespaces.event import Event
from spanforge.sdk import sf_rag
from spanforge.sdk.propagation import extract, inject
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import spans
from spanforge.testing import capture


@pytest.fixture
def service():
    with capture(strict=False) as events:
        yield events


def headers_of(session_id: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    inject(headers, session_id)
    return headers


OTHER_SERVICE = """
import json, sys
from spanforge.namespaces.event import Event
from spanforge.sdk import sf_rag
from spanforge.sdk.propagation import extract
from spanforge.testing import capture
with capture() as events:
    session_id = extract({name.upper(): value for name, value in json.load(sys.stdin).items()})
    sf_rag.trace_generation(session_id, "m")
    assert sf_rag.end_session(session_id).partial_view
    print(*(event.encode().decode() for event in events), sep="\\n")
"""


def in_another_process(headers: dict[str, str]) -> list[Event]:
    """Let a generation service answer a request with these headers, and return its events."""
    command = [sys.executable, "-c", OTHER_SERVICE]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, input=json.dumps(headers), capture_output=True, text=True, check=True, env=environment
    )
    return [Event.decode(line) for line in done.stdout.splitlines()]


def test_a_retrieval_and_a_generation_service_make_one_session(service):
    session_id = sf_rag.trace_query("q", session_id="run 7/ä", retriever_name="docs", pipeline_name="p")
    sf_rag.trace_retrieval(session_id, [{"id": "a", "score": 0.5}])
    theirs = in_another_process(headers_of(session_id))
    sf_rag.end_session(session_id)
    events = [*service.all, *theirs]
    assert {event.session_id for event in events} == {session_id}
    assert {event.trace_id for event in events} == {_ids.trace_id_of(session_id)}
    root, *stages = spans(Session(service.all)) + spans(Session(theirs))
    assert [span.name for span in stages] == ["rag.query p", "rag.retrieve docs", "chat m"]
    assert {span.parent_span_id for span in stages} == {root.span_id}


def test_a_trace_of_opentelemetry_goes_on_in_the_other_service(service):
    with TracerProvider().get_tracer("t").start_as_current_span("request") as span:
        session_id = sf_rag.trace_query("q")
    headers = headers_of(session_id)
    sf_rag.end_session(session_id)
    theirs = in_another_process(headers)
    trace_id = f"{span.get_span_context().trace_id:032x}"
    assert {event.trace_id for event in (*service.all, *theirs)} == {trace_id}


@pytest.mark.parametrize(("flags", "decided"), [("00", "00"), ("01", "01"), ("02", "00"), ("03", "01")])
def test_a_decision_not_to_sample_goes_on_in_the_next_service(service, flags: str, decided: str):
    received = {"baggage": "spanforge.session_id=run", "traceparent": f"00-{'1' * 32}-{'2' * 16}-{flags}"}
    assert extract(received) == "run"
    assert headers_of("run")["traceparent"].endswith(f"-{decided}")
    sf_rag.end_session("run")
    assert {event.trace_flags for event in service.all} == {"00" if decided == "00" else ""}


@pytest.mark.usefixtures("service")
def test_the_headers_are_those_of_the_w3c():
    headers = headers_of("a b")
    context = TraceContextTextMapPropagator().extract(headers)
    span = trace.get_current_span(context).get_span_context()
    assert f"{span.trace_id:032x}" == _ids.trace_id_of("a b")
    assert f"{span.span_id:016x}" == _ids.root_span_id_of("a b")
    assert baggage.get_baggage("spanforge.session_id", W3CBaggagePropagator().extract(headers)) == "a b"


@pytest.mark.usefixtures("service")
def test_arguments_there_is_no_place_for_are_left_out_and_counted(service):
    before = Counter(sf_rag.get_status().replaced)
    headers: dict[str, str] = {}
    inject(headers, "s", "more")  # type: ignore[call-arg]
    assert extract(headers, "more", joining=True) == "s"  # type: ignore[call-arg]
    inject()  # type: ignore[call-arg]
    assert extract() is None  # type: ignore[call-arg]
    since = Counter(sf_rag.get_status().replaced) - before
    assert {reason: count for reason, count in since.items() if "ject" in reason} == {
        "inject_unknown_argument": 1,
        "inject_failed:TypeError": 1,
    }


def test_what_others_put_into_the_headers_stays():
    headers = {"Baggage": "tenant=acme;p=1,spanforge.session_id=old", "TraceParent": "theirs"}
    inject(headers, "new")
    assert headers == {"Baggage": "spanforge.session_id=new,tenant=acme;p=1", "TraceParent": "theirs"}


@pytest.mark.usefixtures("service")
def test_the_current_session_is_meant_and_outside_of_one_nothing_is_written():
    headers: dict[str, str] = {}
    inject(headers)
    assert headers == {}
    with sf_rag.session("q") as run:
        inject(headers)
        assert extract(headers) == run.session_id


@pytest.mark.usefixtures("service")
def test_what_is_too_long_is_not_written():
    assert headers_of("x" * 257) == {}
    headers = {"baggage": "a=" + "b" * 8_190}
    inject(headers, "s")
    assert headers["baggage"].startswith("a=")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"baggage": "tenant=acme"},
        {"baggage": "spanforge.session_id="},
        {"baggage": "spanforge.session_id=%00"},
        {"baggage": "spanforge.session_id=" + "x" * 300},
        {"baggage": "," * 9_000 + "spanforge.session_id=s"},
        {"traceparent": "00-" + "1" * 32 + "-" + "1" * 16 + "-01"},
    ],
)
def test_headers_without_a_session_join_none(service, headers: dict[str, str]):
    assert extract(headers) is None
    assert service.all == []


class Hostile(dict[str, str]):
    """Headers of a framework that has its own opinion of them."""

    def items(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "headers",
    [None, 7, "baggage", b"baggage", object, ["baggage"], [("baggage",)], [1, 2], Hostile(baggage="x")],
    ids=repr,
)
def test_what_is_no_headers_joins_none_and_is_counted(service, headers):
    before = sf_rag.get_status().replaced.get("headers", 0)
    assert extract(headers) is None
    assert service.all == []
    assert sf_rag.get_status().replaced["headers"] == before + 1


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        ["spanforge.session_id=s"],
        {"a": 1},
        b"\xff\xfe",
        "x" * 1_000_000,
        "=" * 1_000_000,
        "%" * 8_000,
        "\ud800",
    ],
    ids=lambda value: str(type(value)),
)
def test_headers_of_any_value_raise_nothing_and_join_none(service, value):
    assert extract({"baggage": value, "traceparent": value, 7: "x", b"\xff": "x", None: value}) is None
    assert extract({"baggage": "spanforge.session_id=" + "y" * 300, "traceparent": value}) is None
    assert extract({"baggage": "spanforge.session_id=s", "traceparent": value}) == "s"
    sf_rag.end_session("s")
    assert service.all[0].trace_id == _ids.trace_id_of("s")


@pytest.mark.usefixtures("service")
def test_an_asgi_servers_pairs_of_bytes_are_headers_too():
    headers = headers_of("ünï cöde")
    pairs = [(name.upper().encode(), value.encode()) for name, value in headers.items()]
    assert extract(iter(pairs)) == "ünï cöde"
    assert extract([(b"Baggage", b"tenant=acme"), *pairs]) == "ünï cöde", "two lines of one header are one list"
    sf_rag.end_session("ünï cöde")


@pytest.mark.parametrize("headers", [None, 7, {1: 2}, MappingProxyType({})], ids=repr)
def test_headers_that_cannot_be_written_to_stay_as_they_are(service, headers):
    before = sf_rag.get_status().replaced.get("headers", 0)
    inject(headers, "s")
    assert sf_rag.get_status().replaced["headers"] == before + 1
    with capture(strict=True), pytest.raises(StrictModeError, match="headers"):
        inject(headers, "s")


@pytest.mark.usefixtures("service")
def test_an_id_that_is_no_text_is_written_as_the_trace_calls_write_it():
    assert extract(headers_of(b"\xff")) == "ff"
    sf_rag.end_session("ff")
    assert headers_of(object()) == {}


@pytest.mark.parametrize(
    "traceparent",
    ["", "nonsense", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "ff-" + "1" * 32 + "-" + "1" * 16 + "-01"],
)
def test_a_trace_that_cannot_be_read_is_the_sessions_own(service, traceparent: str):
    session_id = extract({"baggage": "spanforge.session_id=s;p=1", "traceparent": traceparent})
    sf_rag.trace_generation(session_id, "m")
    assert service.all[0].trace_id == _ids.trace_id_of("s")
    sf_rag.end_session("s")


def test_a_foreign_parent_is_the_parent_of_the_sessions_root(service):
    traceparent = f"00-{'1' * 32}-{'2' * 16}-01"
    session_id = extract({"baggage": "spanforge.session_id=t", "traceparent": traceparent})
    sf_rag.end_session(session_id)
    (summary,) = service.all
    assert (summary.trace_id, summary.parent_span_id) == ("1" * 32, "2" * 16)


def test_switched_off_it_still_says_which_session():
    with capture(disabled=True):
        assert extract({"baggage": "spanforge.session_id=u"}) == "u"


@given(st.text(min_size=1, max_size=60).filter(str.isprintable))
def test_any_printable_id_survives_the_journey(session_id: str):
    with capture(disabled=True):
        assert extract(headers_of(session_id)) == session_id
