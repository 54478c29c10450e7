"""Verbs over a sqlite store: they ask its table of sessions, and say what reading every event would say."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.many_sessions import many_events
from support.viewer import write

from spanforge.cli import main
from spanforge.reader.session_store import SESSIONS_SINCE, session_store
from spanforge.sinks._schema import MIGRATIONS


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    """The same events in a sqlite store and in a file."""
    found = list(many_events(8))
    return write(tmp_path / "events.db", found), write(tmp_path / "events.jsonl", found)


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(one) for one in arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(one) for one in arguments]) != 0
    return capsys.readouterr().err


def test_what_is_unsound_hides_no_event_from_any_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = list(many_events(3))
    twins = [replace(one, payload={**one.payload, "session_id": 1}) for one in found]
    whole = write(tmp_path / "whole.jsonl", found)
    session_id = found[0].session_id
    for store in (write(tmp_path / "events.db", twins + found), write(tmp_path / "events.jsonl", twins + found)):
        for verb in (["sessions", "--json"], ["show", session_id, "--json"], ["export", "ocsf", session_id]):
            assert said(capsys, *verb, "--from", store) == said(capsys, *verb, "--from", whole)


def test_the_table_is_read_in_the_shape_that_the_sink_writes() -> None:
    assert len(MIGRATIONS) == SESSIONS_SINCE


@pytest.mark.parametrize("more", [(), ("--limit", 3), ("--limit", 0, "--status", "ok"), ("--status", "error")])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_sessions_are_those_of_the_file(
    stores: tuple[Path, Path], capsys: pytest.CaptureFixture[str], more: tuple[object, ...], form: tuple[str, ...]
) -> None:
    by_table, by_events = (said(capsys, "sessions", "--from", store, *more, *form) for store in stores)
    assert by_table == by_events


def test_a_session_is_the_one_of_the_file(stores: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    ids = [row["session_id"] for row in json.loads(said(capsys, "sessions", "--from", stores[0], "--json"))]
    for wanted in (ids[2], ids[2][-8:]):
        by_table, by_events = (said(capsys, "show", wanted, "--from", store, "--json") for store in stores)
        assert by_table == by_events
    for wanted in ("nobody", ids[0][:4]):
        by_table, by_events = (refused(capsys, "show", wanted, "--from", store) for store in stores)
        assert by_table == by_events.replace("events.jsonl", "events.db")


@pytest.mark.parametrize("name", ["events.db", "events.jsonl"])
def test_an_id_of_two_organisations_is_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    first = next(many_events(1))
    other = replace(first, org_id="acme", event_id=f"{first.event_id[:-1]}Z")
    store = write(tmp_path / name, [first, other])
    assert "say ORGANISATION/SESSION" in refused(capsys, "show", first.session_id, "--from", store)
    shown = json.loads(said(capsys, "show", f"acme/{first.session_id}", "--from", store, "--json"))
    assert [event["event_id"] for event in shown["events"]] == [other.event_id]


def test_damage_is_said_and_the_rest_shown(stores: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    store = stores[0]
    wanted = json.loads(said(capsys, "sessions", "--from", store, "--json"))[0]["session_id"]
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE events SET line = 'no event' WHERE seq = (SELECT min(seq) FROM events WHERE session_id = ?)",
            (wanted,),
        )
    assert main(["show", wanted, "--from", str(store)]) == 0
    assert "skipped: 1 not JSON" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["PRAGMA user_version = 9", "UPDATE folded SET seq = 3"])
def test_events_are_read_where_the_table_is_not_whole_or_of_another_version(
    stores: tuple[Path, Path], capsys: pytest.CaptureFixture[str], change: str
) -> None:
    with closing(sqlite3.connect(stores[0], isolation_level=None)) as connection:
        connection.execute(change)
        connection.execute("UPDATE session_state SET state = 'nothing that could be asked'")
    with session_store(stores[0]) as table:
        assert table is None
    by_table, by_events = (said(capsys, "sessions", "--from", store) for store in stores)
    assert by_table == by_events


def test_a_store_that_is_locked_is_said_to_be(stores: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(stores[0], isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        assert "another program has locked" in refused(capsys, "sessions", "--from", stores[0])
