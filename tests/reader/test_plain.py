"""Lines that are known from their bytes: no more of them than decoding and the payload class would take."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import MISSING, fields

import pytest
from support.lines import STRANGE

from spanforge.namespaces.event import SCHEMA_VERSION, Event
from spanforge.namespaces.stages import PAYLOADS
from spanforge.reader.plain import plain
from spanforge.reader.records import record_of

_VALUES = (*STRANGE, -0.5, 2, 3, 4, 10**15, 10**15 + 1, "up", "ok", "error", "custom", "cosine", [1.5], {"a": -1})


@pytest.mark.parametrize("event_type", PAYLOADS)
def test_a_plain_line_is_sound_whatever_any_field_holds(event_type: str) -> None:
    plain_ones = 0
    for field in fields(PAYLOADS[event_type]):
        for value in _VALUES:
            line = _line(event_type, **{field.name: value})
            if plain(line) is not None:
                plain_ones += 1
                damaged = Counter[str]()
                assert record_of(Event.decode(line), damaged) is not None, (field.name, value)
    assert plain_ones >= len(fields(PAYLOADS[event_type]))


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63, 10**20, 10**400, 1.5, -0.0, 0, True])
@pytest.mark.parametrize("around", ["{}", "[{}]", '{{"a":[1,{}]}}'])
def test_a_filter_keeps_each_digit_of_a_number(number: float, around: str) -> None:
    value = json.loads(around.format(json.dumps(number)))
    known = plain(_line("llm.rag.query", filters={"year": value}))
    assert known is not None
    assert repr(known["payload"]["filters"]["year"]) == repr(value)


def _line(event_type: str, **changed: object) -> bytes:
    needed = [one.name for one in fields(PAYLOADS[event_type]) if one.default is one.default_factory is MISSING]
    event = {
        "schema_version": SCHEMA_VERSION,
        "event_id": "01KDVDNA000000000000000001",
        "event_type": event_type,
        "timestamp": "2026-01-01T00:00:00.000000Z",
        "source": "notes@1.0.0",
        "session_id": "s",
        "payload": {**dict.fromkeys(needed, "s"), **({"rating": "thumbs_up"} if "rating" in needed else {}), **changed},
    }
    return json.dumps(event).encode()
