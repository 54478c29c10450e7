from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from support.golden import VARIANTS

from spanforge._warnings import settle
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks import kafka
from spanforge.sinks.base import Receipt
from spanforge.sinks.kafka import KafkaSink

MOCK = {"test.mock.num.brokers": 1}
"""librdkafka's own cluster, inside the producer."""


@pytest.fixture
def sink() -> Iterator[KafkaSink]:
    sink = KafkaSink("mock:1", "events", config=MOCK)
    yield sink
    sink.close()


def consume(sink: KafkaSink, count: int) -> list[Message]:
    brokers = sink._producer.list_topics(timeout=5).brokers.values()
    settings = {"bootstrap.servers": ",".join(f"{b.host}:{b.port}" for b in brokers), "group.id": "test"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "log_level": 0})
    consumer.subscribe(["events"])
    found: list[Message] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message)
    consumer.close()
    return found


def broken(session_id: str = "s") -> Event:
    fields = {"event_id": "0" * 26, "event_type": "llm.rag.query", "timestamp": "", "source": "a@1"}
    return Event(**fields, session_id=session_id, payload={"x": float("nan")})


def test_events_arrive_in_order_keyed_by_session_with_type_and_version(sink: KafkaSink):
    events = [*VARIANTS["plain"](), *VARIANTS["rerank"]()]
    assert sink.write(events) is None
    messages = consume(sink, len(events))
    assert {message.key() for message in messages} == {b"golden-plain", b"golden-rerank"}
    for session in ("golden-plain", "golden-rerank"):
        sent = [event.event_id for event in events if event.session_id == session]
        arrived = [json.loads(m.value())["event_id"] for m in messages if m.key() == session.encode()]
        assert arrived == sent
    assert dict(messages[0].headers()) == {"event_type": b"llm.rag.query", "schema_version": b"2.0"}


def test_the_brokers_reports_are_what_counts():
    sink = KafkaSink("127.0.0.1:9", "events", config={"message.timeout.ms": 300}, wait_s=0.05)
    events = VARIANTS["plain"]()
    assert sink.write(events) == Receipt()
    deadline = time.monotonic() + 10
    failed = 0
    while failed < len(events) and time.monotonic() < deadline:
        time.sleep(0.05)
        receipt = sink.idle()
        failed += receipt.failed if receipt else 0
    assert failed == len(events)
    assert sink.idle() is None
    assert sink.close() is None


@pytest.mark.slow
def test_brokers_that_are_away_for_half_a_minute_cost_no_event():
    sink = KafkaSink("127.0.0.1:9", "events", wait_s=0.05)
    assert sink.write(VARIANTS["plain"]()) == Receipt()
    until = time.monotonic() + 33
    while time.monotonic() < until:
        assert sink.idle() is None
        time.sleep(0.5)
    sink.close()


def test_what_is_never_reported_has_failed_at_the_end():
    sink = KafkaSink("127.0.0.1:9", "events", wait_s=0.05)
    events = VARIANTS["plain"]()
    assert sink.write(events) == Receipt()
    assert sink.close() == Receipt(failed=len(events))
    assert sink.close() is None


def test_an_event_that_cannot_be_sent_fails_and_its_mates_arrive(sink: KafkaSink):
    good = VARIANTS["orphan"]()
    large = Event(**{**good[0].to_dict(), "payload": {"x": "y" * 2_000_000}})
    assert sink.write([broken(), large, *good]) == Receipt(delivered=1, failed=2)


def test_a_full_queue_takes_none_or_refuses_the_rest():
    full = {"queue.buffering.max.messages": 2, "linger.ms": 10_000}
    sink = KafkaSink("127.0.0.1:9", "events", config=full, wait_s=0.05)
    events = VARIANTS["plain"]()
    assert sink.write(events) == Receipt(failed=len(events) - 2)
    with pytest.raises(SinkWriteError) as caught:
        sink.write(events)
    assert (caught.value.reason, caught.value.retryable) == ("queue_full", True)
    assert sink.close() == Receipt(failed=2)


def test_a_producer_that_is_beyond_repair_is_replaced(sink: KafkaSink):
    class Broken:
        def produce(self, *_: object, **__: object) -> None:
            raise KafkaException(KafkaError(KafkaError._FATAL, fatal=True))

        def purge(self) -> None: ...

        def flush(self, _: float) -> None: ...

    working, sink._producer = sink._producer, Broken()
    with pytest.raises(SinkWriteError, match="_FATAL"):
        sink.write(VARIANTS["orphan"]())
    assert sink.write(VARIANTS["orphan"]()) is None
    assert sink._producer is not working


def test_the_child_of_a_fork_has_a_producer_and_reports_of_its_own(sink: KafkaSink):
    sink._pending = 3
    sink.after_fork()
    assert kafka._abandoned
    assert sink.idle() is None
    sink.after_fork()
    assert sink.write(VARIANTS["orphan"]()) is None


def test_an_outage_is_said_once_a_minute(sink: KafkaSink, caplog: pytest.LogCaptureFixture):
    for _ in range(3):
        sink._on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    settle(5)
    assert [record.message for record in caplog.records] == ["kafka:events: _ALL_BROKERS_DOWN"]


@pytest.mark.parametrize(
    ("servers", "topic", "config"),
    [
        ("", "events", None),
        ("host:1", "", None),
        ("host:1", "events", {"sasl.hunter2": "x"}),
        ("host:1", "events", {"linger.ms": "hunter2"}),
        ("host:1", "events", {"enable.idempotence": False}),
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_once_and_not_repeated(servers, topic, config):
    with pytest.raises(ConfigError) as caught:
        KafkaSink(servers, topic, config=config)
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__context__ is None
