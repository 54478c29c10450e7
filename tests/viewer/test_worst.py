"""`spanforge feedback worst`: what a human should read, and what it has in common."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from support.many_sessions import fill, many_events, two_releases
from support.sessions import stores
from support.viewer import write

from spanforge.analysis import stored_sessions
from spanforge.cli import main
from spanforge.namespaces.event import Event
from spanforge.viewer.filters import Filter
from spanforge.viewer.store import ViewedStore
from spanforge.viewer.worst import worst_rows


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Any:
    def of(store: Path, *options: str) -> dict[str, Any]:
        assert main(["feedback", "worst", str(store), *options, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return of


@given(events=stores())
def test_they_are_those_that_the_fold_says(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> None:
    expected = {
        (one.org_id, one.session_id)
        for one in stored_sessions(events)
        if (one.fold.rating is not None and one.fold.rating < 0.75)
        or (one.summary.avg_grounding_score is not None and one.summary.avg_grounding_score < 0.5)
        or one.fold.escalations
    }
    viewed = ViewedStore(write(tmp_path_factory.mktemp("store") / "events.db", events))
    with viewed.reading() as connection:
        rows = worst_rows(connection, None, Filter(), 1_000)
    viewed.close()
    assert {(row.org, row.session_id) for row in rows} == expected
    assert all(row.reasons for row in rows)
    count = [sum("error" not in reason for reason in row.reasons) for row in rows]
    assert count == sorted(count, reverse=True), "those with the most reasons stand first"


def test_what_they_share_is_what_makes_them_worse(tmp_path: Path, said: Any) -> None:
    made = said(write(tmp_path / "events.db", two_releases(100)), "--limit", "5")
    [release] = [one for one in made["shared"] if one["kind"] == "tag"]
    assert release["name"] == "release=2"
    assert release["lift"] == pytest.approx((release["worst"] / made["found"]) / (release["sessions"] / 200))
    assert release["lift"] > 1.2
    assert len(made["worst"]) == 5
    assert made["found"] < made["sessions"] == 200
    assert {"escalated"} <= {reason for row in made["worst"] for reason in row["reasons"]}


def test_one_bad_source_is_found_among_many(tmp_path: Path, said: Any) -> None:
    def grounded_by_source(events: list[Event]) -> list[Event]:
        retrieved = next(one for one in events if one.event_type == "llm.rag.retrieved")
        bad = any(chunk["source"] == "guide-7.md" for chunk in retrieved.payload["chunks"])
        score = {"grounding_score": 0.2 if bad else 0.9}
        kind = "llm.rag.generated"
        return [replace(one, payload={**one.payload, **score}) if one.event_type == kind else one for one in events]

    events = list(many_events(300))
    runs = [grounded_by_source(events[at : at + 6]) for at in range(0, len(events), 6)]
    made = said(write(tmp_path / "events.db", [one for run in runs for one in run]))
    assert [(one["kind"], one["name"]) for one in made["shared"]] == [("source", "guide-7.md")]
    assert made["shared"][0]["worst"] == made["found"]


def test_the_terminal_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = write(tmp_path / "events.jsonl", two_releases(100))
    assert main(["feedback", "worst", str(store), "--limit", "3"]) == 0
    told = capsys.readouterr().out
    assert "sessions are worth a look" in told
    assert "escalated" in told
    assert "release=2" in told


def test_where_nothing_is_wrong_nothing_is_shared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.jsonl").touch()
    assert main(["feedback", "worst", str(tmp_path / "empty.jsonl")]) == 0
    assert " ".join(capsys.readouterr().out.split()).startswith("0 of 0 sessions are worth a look")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.jsonl"], "INPUT: nothing is stored there: nowhere.jsonl"),
        (["events.db", "--from", "events.db"], "--from: says what INPUT says"),
        (["s3://bucket/events.jsonl"], "--from: figures are of what is on this machine"),
        (["events.db", "--limit", "0"], "--limit"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "events.db", 3)
    assert main(["feedback", "worst", *arguments]) == 2
    assert sentence in capsys.readouterr().err
