"""Events out of Parquet: whole lines or envelopes by column, and what is neither."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.many_sessions import many_events

from spanforge.exceptions import MissingExtraError
from spanforge.namespaces.event import Event
from spanforge.reader import read_events

arrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")

EVENTS = list(many_events(3))


def _written(folder: Path, rows: list[dict[str, Any]], schema: Any = None) -> Path:
    path = folder / "events.parquet"
    parquet.write_table(arrow.Table.from_pylist(rows, schema), path)
    return path


def _read(path: Path) -> tuple[list[Event], dict[str, int]]:
    reader = read_events(path)
    return list(reader), dict(reader.damaged)


def test_lines_may_be_bytes_or_text(tmp_path: Path) -> None:
    for line in (Event.encode, lambda event: event.encode().decode()):
        assert _read(_written(tmp_path, [{"line": line(event)} for event in EVENTS])) == (EVENTS, {})


def test_envelopes_by_column_come_back_as_they_were(tmp_path: Path) -> None:
    assert _read(_written(tmp_path, [event.to_dict() for event in EVENTS])) == (EVENTS, {})


def test_payloads_may_be_texts_and_tags_maps(tmp_path: Path) -> None:
    rows = [{**event.to_dict(), "payload": json.dumps(event.to_dict()["payload"]), "tags": None} for event in EVENTS]
    rows[0]["tags"] = {"env": "prod"}
    text = arrow.string()
    kinds = {name: arrow.map_(text, text) if name == "tags" else text for name in rows[0]}
    events, damaged = _read(_written(tmp_path, rows, arrow.schema(list(kinds.items()))))
    assert not damaged
    assert [event.payload for event in events] == [event.payload for event in EVENTS]
    assert [dict(event.tags) for event in events[:2]] == [{"env": "prod"}, {}]


def test_what_is_no_table_of_events_is_counted(tmp_path: Path) -> None:
    other = _written(tmp_path, [{"x": 1}])
    assert _read(other) == ([], {"no_events": 1})
    other.write_bytes(other.read_bytes()[:-20])
    assert _read(other) == ([], {"corrupt": 1})


def test_a_row_that_is_no_event_is_counted_as_a_line_is(tmp_path: Path) -> None:
    rows = [{"line": b"{"}, {"line": None}, {"line": EVENTS[0].encode()}]
    events, damaged = _read(_written(tmp_path, rows))
    assert events == EVENTS[:1]
    assert sum(damaged.values()) == 2


def test_without_arrow_a_table_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written(tmp_path, [{"line": EVENTS[0].encode()}])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"spanforge\[analysis\]"):
        list(read_events(path))
