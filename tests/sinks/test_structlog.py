"""The default sink: through the application's structlog where there is one, else stderr, never stdout."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from support.stored import event

from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import EVENT_TYPES, Event
from spanforge.reader import read_events
from spanforge.sinks.structlog import StructlogSink

STAGES = ("llm.rag.query", "llm.rag.retrieved", "llm.rag.reranked", "llm.rag.generated", "llm.rag.evaluated")


@pytest.fixture(autouse=True)
def _unconfigured() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def one_of_each() -> list[Event]:
    return [event(number, event_type=kind) for number, kind in enumerate(EVENT_TYPES)]


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


def test_stages_alone_write_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    StructlogSink().write([event(1, event_type=kind) for kind in STAGES])
    assert capsys.readouterr() == ("", "")


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
    StructlogSink().write([event(1)])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_stderr_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115  closed below, which fails
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(SinkWriteError, match="OSError") as caught:
        StructlogSink().write([event(1, event_type="llm.rag.session")])
    assert (caught.value.delivered, caught.value.retryable) == (0, False)
    with contextlib.suppress(OSError):
        stream.close()
