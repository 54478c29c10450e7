"""The codec: one event is one line of strict JSON, and comes back as it was."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stored import EVENTS, LAW, event

from spanforge.exceptions import DecodeError
from spanforge.namespaces.event import Event

CANARY = "canary-7f3a"


def _refuse(constant: str) -> None:
    raise AssertionError(constant)


@given(EVENTS)
@LAW
def test_one_line_of_strict_json_that_comes_back_equal(stored: Event) -> None:
    line = stored.encode()
    assert len(line.splitlines()) == 1
    assert line.isascii()
    assert len(line.decode().splitlines()) == 1  # not even by Unicode's idea of a line end
    fields = json.loads(line, parse_constant=_refuse)
    assert None not in fields.values()
    assert Event.decode(line) == stored
    assert Event.decode(line.decode()) == stored
    assert Event.decode(line).encode() == line


def test_an_event_is_encoded_once() -> None:
    stored = event(1)
    assert stored.encode() is stored.encode()


def test_a_changed_copy_is_encoded_as_what_it_is() -> None:
    first = event(1)
    line = first.encode()
    assert Event.decode(replace(first, source="other@1.0.0").encode()).source == "other@1.0.0"
    assert first.encode() is line


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_json_cannot_say_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        event(1, score=[value]).encode()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"\xff{}", "not UTF-8"),
        (b'{"a":', "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a": NaN}', "not strict JSON: NaN or Infinity"),
        (b'{"a": [-Infinity]}', "not strict JSON: NaN or Infinity"),
        (b'{"a": 1e999}', "a number is out of range"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"{}", "event_id: missing or empty"),
    ],
)
def test_damage_is_named(line: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=f"^{re.escape(problem)}$"):
        Event.decode(line)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("event_id", "", "event_id: missing or empty"),
        ("event_type", None, "event_type: missing or empty"),
        ("timestamp", 5, "timestamp: not a string"),
        ("payload", [], "payload: missing or empty"),
        ("payload", "x", "payload: not an object"),
        ("tags", {"a": 1}, "tags: a value is not a string"),
        ("tags", ["a"], "tags: not an object"),
        ("session_id", 1, "session_id: not a string"),
        ("signature", {}, "signature: not a string"),
    ],
)
def test_wrong_fields_are_named(field: str, value: object, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        Event.from_dict({**event(1).to_dict(), field: value})


@given(st.binary(max_size=40) | st.text(max_size=40))
@LAW
def test_errors_hold_nothing_of_the_line(junk: bytes | str) -> None:
    canary = CANARY if isinstance(junk, str) else CANARY.encode()
    with pytest.raises(DecodeError) as caught:
        Event.decode(canary + junk)  # type: ignore[operator]  both are of one kind
    assert CANARY not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"


def test_unknown_fields_are_kept() -> None:
    data = {**event(1).to_dict(), "schema_version": "2.7", "region": "eu", "cost": {"usd": 0.5}}
    stored = Event.from_dict(data)
    assert stored.extra == {"region": "eu", "cost": {"usd": 0.5}}
    assert stored.to_dict() == data


def test_an_empty_payload_is_a_payload() -> None:
    assert Event.from_dict({**event(1).to_dict(), "payload": {}}).payload == {}
