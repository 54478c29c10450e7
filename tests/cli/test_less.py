"""Verbs that are asked for a part: the last events, the sessions that pass a filter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.many_sessions import fill, many_events

from spanforge.cli import main

EVENTS = list(many_events(40))
WANTED = {event.session_id for event in EVENTS if event.payload.get("retriever_name") == "wiki"}


@pytest.fixture(params=["events.jsonl", "events.db"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / request.param
    if path.suffix == ".db":
        fill(path, 40)
    else:
        path.write_bytes(b"".join(event.encode() + b"\n" for event in EVENTS))
    return str(path)


def _ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out.splitlines()


def test_the_last_events_are_printed(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = _ran(capsys, "tail", "--once", "--json", "-n", "3", "--from", source)
    assert [json.loads(line)["event_id"] for line in lines] == [event.event_id for event in EVENTS[-3:]]


def test_an_export_can_be_narrowed(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    everything = _ran(capsys, "export", "ocsf", "--from", source)
    lines = _ran(capsys, "export", "ocsf", "--retriever", "wiki", "--from", source)
    assert 0 < len(lines) < len(everything)
    assert set(lines) <= set(everything)
    assert all(any(one in line for one in WANTED) for line in lines)


def test_an_export_takes_names_or_filters(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "ocsf", EVENTS[0].session_id, "--status", "ok", "--from", source]) == 2
    assert "name sessions or narrow all of them" in capsys.readouterr().err


def test_as_many_sessions_as_asked_for_and_the_count_of_all(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    [heading, *_] = _ran(capsys, "sessions", "--limit", "2", "--from", source)
    assert heading.startswith("40 sessions, the latest 2")
