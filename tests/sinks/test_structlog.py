"""The default sink: through the application's structlog where there is one, else stderr, never stdout."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import logging.config
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from support.pipes import full_pipe
from support.stored import event

from spanforge.exceptions import SinkWriteError
from spanforge.namespaces import PAYLOADS
from spanforge.namespaces.event import Event
from spanforge.reader import read_events
from spanforge.sinks.base import Receipt
from spanforge.sinks.structlog import StructlogSink

STAGES = ("llm.rag.query", "llm.rag.retrieved", "llm.rag.reranked", "llm.rag.generated", "llm.rag.evaluated")


@pytest.fixture(autouse=True)
def _unconfigured() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def one_of_each() -> list[Event]:
    return [event(number, event_type=kind) for number, kind in enumerate(PAYLOADS)]


def test_unconfigured_info_and_above_go_to_stderr_as_json_lines(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    StructlogSink().write(one_of_each())
    out, err = capsys.readouterr()
    assert out == ""
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("info", "llm.rag.session"),
        ("warning", "llm.rag.escalated"),
        ("info", "llm.feedback.submitted"),
    ]
    (tmp_path / "stderr.jsonl").write_text(err)
    read = list(read_events(tmp_path / "stderr.jsonl"))
    assert [item.event_type for item in read] == [line["event"] for line in lines]
    assert read[0].payload == one_of_each()[5].payload


def test_stages_alone_write_nothing_and_are_said_to_be_below_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    receipt = StructlogSink().write([event(1, event_type=kind) for kind in STAGES])
    assert receipt == Receipt(dropped={"log_level": 5})
    assert capsys.readouterr() == ("", "")


def logged(level: int | str, processors: list[Any], **more: Any) -> Receipt | None:
    """Configure structlog over `logging`, and return what the sink says of one event of each type."""
    logging.getLogger("spanforge").setLevel(level)
    structlog.configure(logger_factory=structlog.stdlib.LoggerFactory(), processors=processors, **more)
    return StructlogSink().write(one_of_each())


@pytest.fixture
def plain_logger() -> Iterator[logging.Logger]:
    """The logger `spanforge`, put back afterwards."""
    logger = logging.getLogger("spanforge")
    yield logger
    logger.setLevel(logging.NOTSET)
    logger.disabled, logger.propagate = False, True
    logger.handlers.clear()
    logging.disable(logging.NOTSET)


JSON = structlog.processors.JSONRenderer()
FILTERED = [structlog.stdlib.filter_by_level, JSON]


@pytest.mark.parametrize("processors", [[JSON], FILTERED], ids=["logger", "processor"])
@pytest.mark.parametrize(("level", "below"), [("DEBUG", 0), ("INFO", 5), ("WARNING", 7), ("ERROR", 8)])
def test_what_the_loggers_level_filters_is_dropped(
    plain_logger: logging.Logger, processors: list[Any], level: str, below: int
) -> None:
    receipt = logged(level, processors, wrapper_class=structlog.stdlib.BoundLogger)
    assert receipt == (Receipt(delivered=8 - below, dropped={"log_level": below}) if below else None)


def test_what_no_handlers_level_lets_pass_is_dropped(plain_logger: logging.Logger) -> None:
    plain_logger.propagate = False
    handler = logging.StreamHandler(out := io.StringIO())
    handler.setLevel(logging.WARNING)
    plain_logger.addHandler(handler)
    assert logged("DEBUG", [JSON]) == Receipt(delivered=1, dropped={"log_level": 7})
    assert out.getvalue().count("\n") == 1
    plain_logger.removeHandler(handler)
    assert logged("DEBUG", [JSON]) == Receipt(delivered=1, dropped={"log_level": 7}), "as logging's last resort does"


def test_what_is_disabled_by_level_everywhere_is_dropped(plain_logger: logging.Logger) -> None:
    logging.disable(logging.INFO)
    assert logged("DEBUG", [JSON]) == Receipt(delivered=1, dropped={"log_level": 7})


def test_what_structlogs_own_level_filters_is_dropped() -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(io.StringIO()),
    )
    assert StructlogSink().write(one_of_each()) == Receipt(delivered=1, dropped={"log_level": 7})


def test_a_disabled_logger_is_a_sink_that_is_down_until_it_is_enabled(
    plain_logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    plain_logger.setLevel("INFO")
    structlog.configure(logger_factory=structlog.stdlib.LoggerFactory(), processors=FILTERED)
    sink, batch = StructlogSink(), one_of_each()
    logging.config.dictConfig({"version": 1})
    with pytest.raises(SinkWriteError) as caught:
        sink.write(batch)
    assert (caught.value.reason, caught.value.retryable) == ("logger_disabled", True)
    assert (caught.value.delivered, caught.value.dropped) == (0, {"log_level": 0})
    plain_logger.disabled = False
    assert sink.write(batch) == Receipt(delivered=3, dropped={"log_level": 5})


def test_a_level_is_no_alarm_and_a_disabled_logger_is(plain_logger: logging.Logger, connect: Any) -> None:
    plain_logger.setLevel("ERROR")
    structlog.configure(logger_factory=structlog.stdlib.LoggerFactory(), processors=FILTERED)
    client = connect(StructlogSink(), delivery="thread", batch_delay_s=0.0, backoff_s=0.0)
    client.end_session(client.trace_query("q"))
    client.flush()
    status = client.get_status()
    assert (status.status, status.sinks["structlog"].dropped) == ("ok", {"log_level": 2})
    plain_logger.disabled = True
    client.end_session(client.trace_query("q"))
    client.flush(1)
    status = client.get_status()
    assert (status.status, status.sinks["structlog"].last_error) == ("degraded", "logger_disabled")
    assert (status.sinks["structlog"].pending, status.sinks["structlog"].balanced) == (2, True)
    plain_logger.disabled = False
    assert client.flush() == 0
    assert client.get_status().status == "ok"


pipes = pytest.mark.skipif(os.name == "nt", reason="pipes cannot be asked there")


@pipes
@pytest.mark.parametrize("blocking", [True, False])
def test_what_a_pipe_does_not_take_is_not_delivered_and_lines_stay_whole(
    monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    monkeypatch.setattr("spanforge.sinks.structlog._PATIENCE_S", 0.0)
    reader, writer = os.pipe()
    os.set_blocking(writer, blocking)
    os.set_blocking(reader, False)
    summaries = [event(number, event_type="llm.rag.session", tags={"long": "x" * 3_000}) for number in range(100)]
    sink, waiting, delivered, received, reasons = StructlogSink(), summaries, 0, b"", set[str]()
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        for _ in range(1_000):
            try:
                assert sink.write(waiting) is None
            except SinkWriteError as error:
                reasons.add(error.reason)
                delivered, waiting = delivered + error.delivered, waiting[error.delivered :]
                received += os.read(reader, 5_000)
            else:
                break
        else:
            pytest.fail("the sink never came to the end")
    while part := os.read(reader, 1 << 20):
        received += part
    os.close(reader)
    assert reasons == {"stream_full"}
    assert 0 < delivered < 100
    assert [json.loads(line)["event_id"] for line in received.splitlines()] == [one.event_id for one in summaries]


@pipes
def test_a_descriptor_beyond_what_select_knows_is_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl, resource = pytest.importorskip("fcntl"), pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 2_000:
        pytest.skip("this process may not open so many files")
    monkeypatch.setattr("spanforge.sinks.structlog._PATIENCE_S", 0.0)
    reader, writer = full_pipe()
    high = fcntl.fcntl(writer, fcntl.F_DUPFD_CLOEXEC, 2_000)
    os.close(writer)
    with os.fdopen(high, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with pytest.raises(SinkWriteError, match="stream_full"):
            StructlogSink().write([event(1, event_type="llm.rag.session")])
        os.read(reader, 1 << 20)
        assert StructlogSink().write([event(1, event_type="llm.rag.session")]) is None
    assert b"llm.rag.session" in os.read(reader, 1 << 20)
    os.close(reader)


@pipes
@pytest.mark.parametrize("logger", ["stdlib", "print"])
def test_a_worker_is_not_stuck_in_a_logger_on_a_full_pipe(
    plain_logger: logging.Logger, monkeypatch: pytest.MonkeyPatch, logger: str
) -> None:
    monkeypatch.setattr("spanforge.sinks.structlog._PATIENCE_S", 0.0)
    reader, writer = full_pipe()
    sink, batch = StructlogSink(), [event(1, event_type="llm.rag.session")]
    with os.fdopen(writer, "w") as stream:
        factory: Any = structlog.PrintLoggerFactory(stream)
        if logger == "stdlib":
            plain_logger.setLevel("INFO")
            plain_logger.addHandler(logging.StreamHandler(stream))
            factory = structlog.stdlib.LoggerFactory()
        structlog.configure(logger_factory=factory, processors=[JSON])
        with pytest.raises(SinkWriteError, match="stream_full"):
            sink.write(batch)
        os.read(reader, 1 << 20)
        assert sink.write(batch) is None
    assert b"llm.rag.session" in os.read(reader, 1 << 20)
    os.close(reader)


def test_a_stream_that_takes_less_than_it_was_given_has_not_taken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Short(io.StringIO):
        def write(self, text: str) -> int:
            return super().write(text[:10])

    monkeypatch.setattr(sys, "stderr", Short())
    with pytest.raises(SinkWriteError, match="short_write"):
        StructlogSink().write([event(1, event_type="llm.rag.session")])


def test_configured_entries_go_through_the_applications_processors() -> None:
    entries: list[dict[str, Any]] = []

    def keep(_logger: object, method: str, entry: Any) -> Any:
        entries.append({"method": method, **entry})
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    sealed = Event.from_dict({**event(50).to_dict(), "event": "taken", "tags": {"a": "b"}})
    StructlogSink().write([sealed, *one_of_each()])
    assert [entry["method"] for entry in entries] == ["debug"] * 6 + ["info", "warning", "info"]
    assert entries[0] == {
        "method": "debug",
        "event": "llm.rag.query",
        "event_": "taken",
        "event_id": sealed.event_id,
        "event_timestamp": sealed.timestamp,
        "schema_version": "2.0",
        "source": "tests@1.0.0",
        "session_id": "s1",
        "trace_id": sealed.trace_id,
        "tags": {"a": "b"},
        "payload": dict(sealed.payload),
    }


def test_the_standard_library_logger_is_named_spanforge(caplog: pytest.LogCaptureFixture) -> None:
    structlog.configure(
        logger_factory=structlog.stdlib.LoggerFactory(),
        processors=[structlog.stdlib.add_log_level, structlog.processors.JSONRenderer()],
    )
    with caplog.at_level(logging.INFO, "spanforge"):
        StructlogSink().write([event(1, event_type="llm.rag.session")])
    assert [(record.name, record.levelname) for record in caplog.records] == [("spanforge", "INFO")]


@pytest.mark.parametrize(
    "wrapper",
    [structlog.BoundLogger, structlog.stdlib.BoundLogger, structlog.stdlib.AsyncBoundLogger],
    ids=lambda wrapper: wrapper.__name__,
)
def test_any_kind_of_logger_gets_its_entries_from_a_thread_without_a_loop(wrapper: Any) -> None:
    with structlog.testing.capture_logs() as entries:
        structlog.configure(wrapper_class=wrapper)
        StructlogSink().write([event(1, event_type="llm.rag.session")])
    assert [(entry["event"], entry["log_level"]) for entry in entries] == [("llm.rag.session", "info")]


def test_what_was_logged_before_a_processor_failed_is_not_logged_again() -> None:
    seen: list[str] = []
    broken = True

    def choosy(_logger: object, _method: str, entry: Any) -> Any:
        if broken and entry["payload"]["number"] == 2:
            raise LookupError
        seen.append(entry["event_id"])
        raise structlog.DropEvent

    structlog.configure(processors=[choosy])
    sink, batch = StructlogSink(), [event(number) for number in range(4)]
    for _ in range(3):
        with pytest.raises(LookupError):
            sink.write(batch)
    broken = False
    sink.write(batch)
    assert seen == [item.event_id for item in batch]
    sink.write(batch)
    assert len(seen) == 8, "a later batch is a later batch"


def test_an_id_of_another_organisation_or_session_is_another_event() -> None:
    one = event(1, event_type="llm.rag.session")
    batch = [one, replace(one, org_id="acme"), replace(one, session_id="s2")]
    with structlog.testing.capture_logs() as entries:
        structlog.configure()
        assert StructlogSink().write(batch) is None
    assert len(entries) == 3


def test_memory_of_half_logged_batches_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(_logger: object, _method: str, entry: Any) -> Any:
        if entry["payload"]["number"] % 2:
            raise LookupError
        raise structlog.DropEvent

    structlog.configure(processors=[drop])
    monkeypatch.setattr("spanforge.sinks.structlog._REMEMBERED", 5)
    sink = StructlogSink()
    for number in range(0, 100, 2):
        with pytest.raises(LookupError):
            sink.write([event(number), event(number + 1)])
    assert len(sink._logged) <= 6
    sink.after_fork()
    assert not sink._logged


@pytest.mark.parametrize("closed", [True, False])
def test_no_stderr(monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream if closed else None)
    with pytest.raises(SinkWriteError, match="stderr is closed") as caught:
        StructlogSink().write([event(1, event_type="llm.rag.session")])
    assert caught.value.__context__ is None
    assert StructlogSink().write([event(1)]) == Receipt(dropped={"log_level": 1})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_stderr_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115  closed below, which fails
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(SinkWriteError, match="OSError") as caught:
        StructlogSink().write([event(1, event_type="llm.rag.session")])
    assert (caught.value.delivered, caught.value.retryable) == (0, False)
    with contextlib.suppress(OSError):
        stream.close()
