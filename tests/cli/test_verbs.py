"""The command line, as a person or a script calls it."""

from __future__ import annotations

import json

import pytest
from support.command_line import run

from spanforge.sdk import sf_rag
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink
from spanforge.testing import capture

_KEY = "a signing key of more than thirty-two bytes"


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    sinks = [
        JsonlSink(folder / "events.jsonl", chain=True, signing_key=_KEY.encode()),
        SqliteSink(folder / "events.db"),
    ]
    with capture(sinks=sinks):
        for status in ("ok", "error"):
            session_id = sf_rag.trace_query("q", retriever_name="docs \x1b[31m[red]")
            sf_rag.trace_retrieval(session_id, [("text of a chunk", 23.7), {"id": "b", "score": 0.5}])
            sf_rag.trace_generation(
                session_id, "m", chunk_ids_used=["b"], status=status, grounding_score=0.7, latency_ms=12.5
            )
            sf_rag.end_session(session_id)
        sf_rag.flush()
    return folder


@pytest.mark.parametrize("source", ["events.jsonl", "events.db"])
def test_sessions_are_listed(stored, source):
    listed = json.loads(run("sessions", "--from", source, "--json", cwd=stored).stdout)
    assert [session["status"] for session in listed] == ["ok", "error"]
    shown = run("sessions", "--from", source, cwd=stored).stdout
    assert listed[0]["session_id"] in shown
    assert "\x1b[31m" not in shown


def test_sessions_can_be_narrowed(stored):
    listed = run("sessions", "--from", "events.jsonl", "--status", "error", "--json", cwd=stored).stdout
    assert [session["status"] for session in json.loads(listed)] == ["error"]


def test_one_session_is_shown_by_a_part_of_its_id(stored):
    [first, _] = json.loads(run("sessions", "--from", "events.db", "--json", cwd=stored).stdout)
    shown = run("show", first["session_id"][-8:], "--from", "events.db", cwd=stored)
    assert shown.returncode == 0
    assert "rag.generated" in shown.stdout
    assert "0.960 (23.7)" in shown.stdout
    told = json.loads(run("show", first["session_id"], "--from", "events.db", "--json", cwd=stored).stdout)
    assert told["summary"]["total_chunks_used"] == 1
    assert len(told["events"]) == 4


def test_duration_and_latency_are_two_figures_with_one_name_each(stored):
    [first, _] = json.loads(run("sessions", "--from", "events.db", "--json", cwd=stored).stdout)
    heading = run("sessions", "--from", "events.db", cwd=stored).stdout.splitlines()[1].split()
    assert heading[-2:] == ["duration", "latency"]
    shown = run("show", first["session_id"], "--from", "events.db", cwd=stored).stdout
    assert f"duration {first['duration_ms']:,.1f} ms  latency {first['total_latency_ms']:,.1f} ms" in shown
    summary = next(line for line in shown.splitlines() if "rag.session" in line)
    assert f" {first['total_latency_ms']:,.1f} ms " in summary
    assert f"duration {first['duration_ms']:,.1f} ms" in summary
    assert "reported" in shown


def test_the_source_may_come_from_the_settings(stored):
    listed = run("sessions", "--json", cwd=stored, SPANFORGE_SINKS="structlog, jsonl:events.jsonl")
    assert len(json.loads(listed.stdout)) == 2


def test_times_are_shown_in_utc_whatever_zone_they_were_written_in(stored, tmp_path):
    line = (stored / "events.jsonl").read_text().splitlines()[0]
    event = json.loads(line) | {"timestamp": "2026-03-01T00:30:00.5+02:00"}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n")
    for verb in (["sessions"], ["tail", "--once"]):
        assert "2026-02-28 22:30:00" in run(*verb, "--from", "events.jsonl", cwd=tmp_path).stdout
    assert "22:30:00.500" in run("show", event["session_id"], "--from", "events.jsonl", cwd=tmp_path).stdout


def test_tail_prints_what_is_there(stored):
    lines = run("tail", "--once", "--json", "--from", "events.jsonl", cwd=stored).stdout.splitlines()
    assert len(lines) == 8
    assert all(json.loads(line)["schema_version"] == "2.0" for line in lines)


def test_verify_finds_a_change(stored, tmp_path):
    (tmp_path / "key").write_text(_KEY + "\n")
    whole = run("verify", str(stored / "events.jsonl"), "--key-file", "key", cwd=tmp_path)
    assert whole.returncode == 0
    assert "8 events" in whole.stdout
    lines = (stored / "events.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:2] + lines[3:]))
    changed = run("verify", "cut.jsonl", "--json", cwd=tmp_path, SPANFORGE_SIGNING_KEY=_KEY)
    assert changed.returncode == 1
    assert json.loads(changed.stdout)["first_break"]["line"] == 3
    last = json.loads(lines[-1])["event_id"]
    (tmp_path / "tail.jsonl").write_bytes(b"".join(lines[:-1]))
    assert run("verify", "tail.jsonl", "--key-file", "key", cwd=tmp_path).returncode == 0
    assert run("verify", "tail.jsonl", "--key-file", "key", "--expect-last", last, cwd=tmp_path).returncode == 1


def test_doctor_hides_secrets_and_asks_the_sinks(tmp_path):
    healthy = run("doctor", "--json", cwd=tmp_path, SPANFORGE_SINKS="jsonl:e.jsonl", SPANFORGE_SIGNING_KEY=_KEY)
    assert healthy.returncode == 0
    assert _KEY not in healthy.stdout + healthy.stderr
    report = json.loads(healthy.stdout)
    assert report["settings"]["signing_key"] == "set, hidden"
    assert report["sinks"] == {"jsonl:e.jsonl": "ok"}
    (tmp_path / "file").write_text("")
    broken = run("doctor", "--json", cwd=tmp_path, SPANFORGE_SINKS="jsonl:file/e.jsonl")
    assert broken.returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions"],
        ["sessions", "--from", "nowhere.jsonl"],
        ["sessions", "--limit", "-1"],
        ["show", "nobody", "--from", "nowhere.jsonl"],
        ["show"],
        ["verify", "nowhere.jsonl"],
        ["verify", "nowhere.jsonl", "--key-file", "nowhere"],
        ["demo", "--docs", "nowhere", "--ask", "?"],
        ["nonsense"],
    ],
)
def test_wrong_calls_end_with_2_and_a_sentence(tmp_path, arguments):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_bad_settings_are_named_without_their_value(tmp_path):
    done = run("doctor", cwd=tmp_path, SPANFORGE_SAMPLE_RATE="much")
    assert done.returncode == 2
    assert "sample_rate" in done.stderr
    assert "much" not in done.stderr


def test_demo_answers_and_accounts_for_every_event(tmp_path):
    told = json.loads(run("demo", "--json", cwd=tmp_path).stdout)
    [capital, steps, row, unsure] = told["answers"]
    assert capital["answer"] == "Paris [1]"
    assert capital["grounding_score"] == 1.0
    assert "1. Ask your team lead for approval.\n2. Reserve" in steps["answer"]
    assert row["answer"] == "City: Lisbon; Allowance: 42 euros; Hotel limit: 120 euros [1]"
    assert unsure["answer"].startswith("Not sure; the closest passages say:")
    assert [answer["status"] for answer in told["answers"]] == ["grounded", "grounded", "grounded", "uncertain"]
    for ledger in told["ledger"].values():
        assert ledger["accepted"] == ledger["delivered"] > 0
    assert all((tmp_path / path).stat().st_size for path in told["files"].values())


def test_demo_asks_documents_of_ones_own(tmp_path):
    (tmp_path / "notes.md").write_text("# Depot\n\nThe depot in Lund opens at six in the morning.\n")
    shown = run("demo", "--docs", "notes.md", "--ask", "When does the depot in Lund open?", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "[1] " in shown.stdout
    assert "notes.md" in shown.stdout
    assert "ledger" in shown.stdout
