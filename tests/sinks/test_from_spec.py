"""What a setting says becomes a sink, or one clear sentence without the value."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.stored import events

from spanforge.exceptions import ConfigError, MissingExtraError
from spanforge.namespaces.chain import verify_lines
from spanforge.sinks import BaseSink, Sink, from_spec
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.memory import MemorySink
from spanforge.sinks.sqlite import SqliteSink
from spanforge.sinks.structlog import StructlogSink


def test_each_name_has_its_sink(tmp_path: Path) -> None:
    assert isinstance(from_spec("structlog"), StructlogSink)
    assert isinstance(from_spec("memory"), MemorySink)
    assert isinstance(from_spec(f"jsonl:{tmp_path}/a.jsonl"), JsonlSink)
    assert isinstance(from_spec(f" SQLITE:{tmp_path}/a.db "), SqliteSink)
    assert from_spec(f"jsonl:{tmp_path}/a.jsonl").name == "jsonl:a.jsonl"
    assert from_spec(f"sqlite:{tmp_path}/a.db").name == "sqlite:a.db"
    assert not list(tmp_path.iterdir()), "nothing is opened before something is written"


def test_the_sinks_of_other_standards_have_names_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    assert from_spec("otlp").name == "otlp:collector:4318"
    assert from_spec("otlp:http://other:4318").name == "otlp:other:4318"
    assert from_spec(f"spool:{tmp_path}/a+b+otlp").name == "spool:otlp:collector:4318"
    assert from_spec(f"spool:{tmp_path}/spool+otlp:http://other:4318").name == "spool:otlp:other:4318"
    assert from_spec(f"ocsf:{tmp_path}/a.jsonl").name == "ocsf:a.jsonl"
    assert from_spec(f"ocsf-aitf:{tmp_path}/a.jsonl").name == "ocsf-aitf:a.jsonl"
    for spec, name in (("kafka:127.0.0.1:9/events", "kafka:events"), ("kafka:127.0.0.1:9", "kafka:spanforge")):
        sink = from_spec(spec)
        assert sink.name == name
        sink.close()


@pytest.mark.parametrize(
    ("spec", "module", "extra"), [("otlp", "opentelemetry.proto", "otel"), ("kafka:a:1", "confluent_kafka", "kafka")]
)
def test_a_sink_whose_extra_is_missing_says_which(
    spec: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.startswith((module, "spanforge.sinks.otlp", "spanforge.sinks._otlp"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "spanforge.sinks.kafka", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'spanforge\[{extra}\]'"):
        from_spec(spec)


def test_an_object_with_the_methods_is_a_sink() -> None:
    mine = BaseSinkOfMine()
    assert from_spec(mine) is mine
    assert isinstance(mine, Sink)
    mine.idle(), mine.close(), mine.after_fork()


class BaseSinkOfMine(BaseSink):
    def write(self, events: object, /) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    "spec",
    [
        "secret",
        "secret:x",
        "",
        ":secret",
        "jsonl",
        "jsonl:",
        "structlog:secret",
        "memory:secret",
        "spool:secret",
        "spool:+otlp",
        "spool:secret+kafka:secret",
        "spool:secret+otlpx",
        object(),
        7,
        None,
        BaseSinkOfMine,
    ],
)
def test_what_is_no_sink_is_refused_without_repeating_it(spec: object) -> None:
    with pytest.raises(ConfigError, match=r"^sinks: ") as caught:
        from_spec(spec)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", [None, 5, "", ["x"], b"x"])
def test_a_sink_needs_a_name_the_ledger_can_say(name: object) -> None:
    nameless = BaseSinkOfMine()
    nameless.name = name  # type: ignore[assignment]
    with pytest.raises(ConfigError, match=r"^sinks: a sink's `name` "):
        from_spec(nameless)


def test_a_home_that_is_nobodys_is_said_to_be() -> None:
    with pytest.raises(ConfigError, match=r"^path: there is no such user") as caught:
        from_spec("jsonl:~no-such-user-of-this-machine/events.jsonl")
    assert "no-such-user-of" not in str(caught.value)
    assert caught.value.__context__ is None


def test_the_signing_key_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    sink = from_spec(f"jsonl:{path}", signing_key=SecretStr("k" * 32))
    sink.write(events(3))
    assert verify_lines(path.read_bytes().splitlines(), b"k" * 32).ok


def test_importing_the_package_loads_no_sink() -> None:
    code = (
        "import sys; before = set(sys.modules); import spanforge.sinks\n"
        "print([name for name in sys.modules.keys() - before if name == 'sqlite3' or name == 'structlog'\n"
        "       or name.startswith('spanforge.sinks.') and not name.endswith('.base')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_memory_sink_is_bounded_and_the_childs_is_empty() -> None:
    sink = MemorySink(3)
    sink.write(events(5))
    assert [item.payload["number"] for item in sink.events] == [2, 3, 4]
    assert [payload["number"] for payload in sink.of_type("llm.rag.query")] == [2, 3, 4]
    assert sink.of_type("llm.rag.session") == []
    sink.clear()
    assert sink.events == []
    sink.write(events(1))
    sink.after_fork()
    assert sink.events == []
