"""Kafka: one message an event, keyed by session (extra `kafka`).

The producer is idempotent and retries by itself, in order. An event counts as delivered when the brokers have
reported it, and not before: what is handed over and not reported is pending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanforge import _clock
from spanforge._warnings import warn
from spanforge.exceptions import ConfigError, MissingExtraError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks.base import BaseSink, Receipt

try:
    from confluent_kafka import KafkaError, KafkaException, Message, Producer
except ImportError:
    raise MissingExtraError("The Kafka sink", "kafka") from None

__all__ = ["KafkaSink"]

_POLL_S: Final = 0.05
_REPORT_EVERY_S: Final = 60.0
_UNENCODABLE: Final = (TypeError, ValueError, RecursionError)
_DEFAULTS: Final[Mapping[str, object]] = {
    "enable.idempotence": True,
    "compression.type": "zstd",
    "queue.buffering.max.messages": 10_000,
    "queue.buffering.max.kbytes": 32 << 10,
    "linger.ms": 5,
    # librdkafka would write to stderr on its own.
    "log_level": 0,
}
_FIXED: Final = ("bootstrap.servers", "enable.idempotence", "on_delivery", "error_cb")
_abandoned: Final[list[Producer]] = []
"""Producers of a parent process: destroyed in a forked child, they would wait for threads that are not there."""


class KafkaSink(BaseSink):
    """Sends each event as a message: key the session id, headers its type and schema version.

    Args:
        servers: `HOST:PORT` of one or more brokers, separated by commas.
        topic: Topic to send to.
        config: More of librdkafka's settings, such as those of TLS and SASL.
        wait_s: Seconds a write waits for the brokers' reports; what is reported later is settled later.

    Raises:
        ConfigError: A value cannot be used; the message does not repeat it.
        MissingExtraError: The packages of the extra are not installed.
    """

    def __init__(
        self,
        servers: str,
        topic: str = "spanforge",
        *,
        config: Mapping[str, object] | None = None,
        wait_s: float = 5.0,
    ) -> None:
        if not servers or not topic:
            raise ConfigError("kafka: name the brokers as HOST:PORT and a topic")
        for name in config or ():
            if name in _FIXED:
                raise ConfigError(f"kafka: {name} is the sink's own; leave it out of `config`")
        self._config: dict[str, Any] = {
            **_DEFAULTS,
            **(config or {}),
            "bootstrap.servers": servers,
            "error_cb": self._on_error,
        }
        self._topic = topic
        self._wait_s = wait_s
        self.name = f"kafka:{topic}"
        self._error_at = -_REPORT_EVERY_S
        self._producer: Producer | None = None
        # Checked at once, so that a bad setting is refused where somebody can see it.
        self._opened()
        self._forget_reports()

    def _forget_reports(self) -> None:
        self._pending = 0
        self._delivered = 0
        self._failed = 0

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        """Hand the events over in order, and wait for their reports.

        Returns:
            None where all of these, and nothing else, were reported as delivered; else what was reported.

        Raises:
            SinkWriteError: The producer takes no more; none of the events was handed over.
        """
        producer = self._opened()
        for place, event in enumerate(events):
            problem = self._produce(producer, event)
            if problem and not place:
                raise SinkWriteError(problem)
            if problem:
                # The first ones are with the producer and cannot be taken back; the others count as refused.
                self._failed += len(events) - place
                break
        self._await_reports(producer)
        receipt = self._settled()
        return None if receipt == Receipt(delivered=len(events)) else receipt or Receipt()

    def idle(self) -> Receipt | None:
        """Collect the reports that came in since."""
        if self._producer is not None:
            self._producer.poll(0)
        return self._settled()

    def close(self) -> Receipt | None:
        """Wait for the last reports; what is not reported by then is given up and counts as failed."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush(self._wait_s)
            producer.purge()
            producer.flush(0)
        self._failed += self._pending
        self._pending = 0
        return self._settled()

    def after_fork(self) -> None:
        """Leave the parent its producer and its reports."""
        if self._producer is not None:
            _abandoned.append(self._producer)
            self._producer = None
        self._forget_reports()

    def _opened(self) -> Producer:
        if self._producer is None:
            problem = ""
            try:
                self._producer = Producer(self._config)
            except (KafkaException, TypeError, ValueError):
                problem = "kafka: librdkafka refuses the settings; check names and values in `config`"
            if self._producer is None:
                raise ConfigError(problem)
        return self._producer

    def _produce(self, producer: Producer, event: Event) -> str:
        """Hand one event over; return what keeps the producer from taking any, empty otherwise."""
        deadline = _clock.monotonic() + self._wait_s
        while True:
            try:
                producer.produce(
                    self._topic,
                    key=event.session_id.encode("utf-8", "surrogatepass"),
                    value=event.encode(),
                    headers=[
                        ("event_type", event.event_type.encode()),
                        ("schema_version", event.schema_version.encode()),
                    ],
                    on_delivery=self._on_report,
                )
            except BufferError:
                if _clock.monotonic() >= deadline:
                    return "queue_full"
                producer.poll(_POLL_S)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if reason.fatal():
                    self._abandon(producer)
                    return reason.name()
                self._failed += 1
                return ""
            except _UNENCODABLE:
                self._failed += 1
                return ""
            else:
                self._pending += 1
                return ""

    def _abandon(self, producer: Producer) -> None:
        """Give up a producer that can go on no more; the next write makes one."""
        self._producer = None
        producer.purge()
        producer.flush(0)
        self._failed += self._pending
        self._pending = 0

    def _await_reports(self, producer: Producer) -> None:
        deadline = _clock.monotonic() + self._wait_s
        while self._pending and _clock.monotonic() < deadline:
            producer.poll(_POLL_S)

    def _settled(self) -> Receipt | None:
        if not self._delivered and not self._failed:
            return None
        receipt = Receipt(delivered=self._delivered, failed=self._failed)
        self._delivered = self._failed = 0
        return receipt

    def _on_report(self, error: KafkaError | None, _message: Message) -> None:
        self._pending -= 1
        if error is None:
            self._delivered += 1
        else:
            self._failed += 1

    def _on_error(self, error: KafkaError) -> None:
        """Say at most once a minute that the brokers are out of reach; librdkafka goes on trying."""
        now = _clock.monotonic()
        if now - self._error_at >= _REPORT_EVERY_S:
            self._error_at = now
            warn("%s: %s", self.name, error.name())
