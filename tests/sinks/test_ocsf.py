from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from support.golden import VARIANTS
from support.ocsf_schema import errors

from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.sinks._append import AppendFile
from spanforge.sinks.ocsf import OcsfSink


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_event_is_a_valid_line_and_the_file_is_the_owners(tmp_path: Path):
    sink = OcsfSink(tmp_path / "ocsf.jsonl")
    for variant in VARIANTS.values():
        sink.write(variant())
    sink.close()
    sink.close()
    found = lines(tmp_path / "ocsf.jsonl")
    assert {event["class_uid"] for event in found} == {6005, 6003, 2004}
    assert [errors(event) for event in found if errors(event)] == []
    assert stat.S_IMODE((tmp_path / "ocsf.jsonl").stat().st_mode) == 0o600
    assert sink.name == "ocsf:ocsf.jsonl"


def test_a_session_without_any_of_them_makes_no_file(tmp_path: Path):
    OcsfSink(tmp_path / "none").write(VARIANTS["plain"]()[:1])
    assert not (tmp_path / "none").exists()


def test_the_other_numbering_is_another_name(tmp_path: Path):
    sink = OcsfSink(tmp_path / "a.jsonl", flavour="ocsf-aitf")
    sink.write(VARIANTS["plain"]())
    sink.after_fork()
    assert lines(tmp_path / "a.jsonl")[0]["class_uid"] == 7004
    with pytest.raises(ConfigError, match="flavour"):
        OcsfSink(tmp_path / "a", flavour="other")


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path):
    sink = OcsfSink(tmp_path / "a.jsonl")
    sink.write(VARIANTS["plain"]())
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")
    sink.write(VARIANTS["plain"]())
    sink.close()
    assert len(lines(tmp_path / "a.jsonl")) == 2


def test_an_id_of_another_organisation_or_session_is_another_line(tmp_path: Path):
    events = VARIANTS["plain"]()
    theirs = [replace(event, org_id="globex") for event in events]
    others = [replace(event, session_id="other") for event in events]
    for name, batch in (("one", events), ("all", [*events, *theirs, *others, *events])):
        OcsfSink(tmp_path / name).write(batch)
    assert len(lines(tmp_path / "all")) == 3 * len(lines(tmp_path / "one"))


def test_a_full_disk_is_said_and_a_short_write_counts_what_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(SinkWriteError) as caught:
        OcsfSink("/dev/full").write(VARIANTS["plain"]())
    assert (caught.value.reason, caught.value.delivered) == ("ENOSPC", 1)
    assert caught.value.__context__ is None
    monkeypatch.setattr(AppendFile, "append", lambda _file, lines: len(lines) - 1)
    events = [*VARIANTS["plain"](), *VARIANTS["rerank"]()]
    with pytest.raises(SinkWriteError) as caught:
        OcsfSink(tmp_path / "short").write(events)
    assert events[caught.value.delivered].session_id == "golden-rerank"
