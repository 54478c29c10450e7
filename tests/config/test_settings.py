"""Settings: keywords over environment over defaults; errors name the setting and never the value."""

from __future__ import annotations

import math

import pytest
from pydantic import SecretStr

from spanforge._warnings import settle
from spanforge.config import OtlpEnvironment, Settings, SFClientConfig, openinference_hidden, otlp_environment
from spanforge.exceptions import ConfigError
from spanforge.sdk import SFRAGClient
from spanforge.sinks.memory import MemorySink


def test_keywords_win_over_the_environment_and_that_over_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANFORGE_SAMPLE_RATE", "0.25")
    monkeypatch.setenv("SPANFORGE_ORG_ID", "from-environment")
    monkeypatch.setenv("SPANFORGE_TEAM_ID", "")
    settings = Settings.load({"org_id": "from-keyword"})
    assert (settings.sample_rate, settings.org_id, settings.team_id) == (0.25, "from-keyword", "")
    assert settings.sinks == ("structlog",)


def test_sinks_are_one_or_many_and_written_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = MemorySink()
    assert Settings.load({"sinks": sink}).sinks == (sink,)
    assert Settings.load({"sinks": [sink, "memory"]}).sinks == (sink, "memory")
    monkeypatch.setenv("SPANFORGE_SINKS", "structlog, jsonl:a.jsonl ,")
    assert Settings.load().sinks == ("structlog", "jsonl:a.jsonl")
    assert Settings.load({"metadata_allow": {"a"}}).metadata_allow == {"a"}


def test_a_project_is_a_tag_of_every_event() -> None:
    assert Settings.load({"project_id": "p"}).default_tags == {"project_id": "p"}
    assert Settings.load().default_tags == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sample_rate", "canary"),
        ("delivery", "canary"),
        ("source", "canary without a version"),
        ("queue_events", 0),
        ("hash_key", "canary"),
        ("no_such_setting", "canary"),
        ("strict", "canary"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{field}: ") as caught:
        Settings.load({field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e7, -1, "inf", "nan"])
@pytest.mark.parametrize("field", [name for name, field in Settings.model_fields.items() if field.annotation is float])
def test_a_time_or_a_share_is_a_number_that_clocks_and_locks_can_take(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{field}: "):
        Settings.load({field: value})


def test_without_the_key_that_was_asked_for_nothing_is_digested_in_the_clear(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPANFORGE_HASH_KEY", "canary: too short")
    monkeypatch.setenv("SPANFORGE_SINKS", "memory")
    assert Settings.load_leniently().disabled
    client = SFRAGClient(SFClientConfig())
    session_id = client.trace_query("q")
    assert client.end_session(session_id).session_id == session_id
    assert sum(ledger.accepted for ledger in client.get_status().sinks.values()) == 0
    settle(5)
    assert "hash_key" in caplog.text
    assert "canary" not in caplog.text


def test_a_key_of_any_characters_is_measured_in_bytes() -> None:
    assert Settings.load({"hash_key": "\udcff" * 16}).hash_key is not None
    assert "ü" not in repr(Settings.load({"hash_key": "ü" * 16}))


def test_leniently_bad_values_are_left_out_and_logged_without_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPANFORGE_SAMPLE_RATE", "canary")
    monkeypatch.setenv("SPANFORGE_STRICT", "canary")
    monkeypatch.setenv("SPANFORGE_ORG_ID", "acme")
    settings = Settings.load_leniently({"queue_events": 7})
    assert (settings.sample_rate, settings.strict, settings.org_id, settings.queue_events) == (1.0, False, "acme", 7)
    settle(5)
    assert "sample_rate" in caplog.text
    assert "canary" not in caplog.text


def test_a_variable_that_means_nothing_is_mentioned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPANFORGE_SAMPEL_RATE", "canary")
    monkeypatch.setenv("SPANFORGE_ENDPOINT", "canary")
    Settings.load()
    settle(5)
    assert "SPANFORGE_SAMPEL_RATE" in caplog.text
    assert "canary" not in caplog.text
    assert "ENDPOINT" not in caplog.text


def test_the_earlier_configuration_reads_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "ENDPOINT": "https://example.invalid", "API_KEY": "canary", "PROJECT_ID": "p", "TIMEOUT_MS": "5",
        "LOCAL_FALLBACK": "false", "SIGNING_KEY": "k",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"SPANFORGE_{name}", value)
    config = SFClientConfig.from_env()
    assert (config.endpoint, config.timeout_ms, config.local_fallback_enabled) == ("https://example.invalid", 5, False)
    assert config.api_key.get_secret_value() == "canary"
    assert "canary" not in repr(config)
    assert config.as_overrides() == {"max_attempts": 4, "project_id": "p", "signing_key": SecretStr("k")}
    assert "user:pass" not in repr(SFClientConfig(proxy="http://user:pass@proxy"))
    assert SFClientConfig().as_overrides() == {"max_attempts": 4}


def test_and_names_one_it_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANFORGE_TIMEOUT_MS", "canary")
    with pytest.raises(ConfigError, match=r"^timeout_ms: SPANFORGE_TIMEOUT_MS ") as caught:
        SFClientConfig.from_env()
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


def test_otlp_is_read_from_our_variables_before_the_common_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert otlp_environment() == OtlpEnvironment()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "k=canary")
    read = otlp_environment()
    assert (read.endpoint, read.traces_endpoint, read.headers.get_secret_value()) == (
        "http://a",
        "http://b",
        "k=canary",
    )
    assert "canary" not in repr(read)
    monkeypatch.setenv("SPANFORGE_OTLP_ENDPOINT", "http://c")
    assert (otlp_environment().endpoint, otlp_environment().traces_endpoint) == ("http://c", "")


def test_openinference_hides_what_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert openinference_hidden() == frozenset()
    monkeypatch.setenv("OPENINFERENCE_HIDE_INPUTS", "True")
    monkeypatch.setenv("OPENINFERENCE_HIDE_OUTPUT_TEXT", "true")
    assert openinference_hidden() == {"inputs", "outputs"}
