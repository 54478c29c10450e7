"""`spanforge check`: exit codes, and what CI servers read."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.many_sessions import fill, many_events

from spanforge.cli import main

_LENIENT = """
[thresholds]
grounding = 0.5
latency_s = 60
helpful_rate = false
citation_coverage = 0.5
[checks]
documents_retrieved = 0.5
context_ranked = 0.5
response_generated = 0.5
grounding_verified = 0.5
sources_attributed = 0.5
[assessments]
context_relevance = false
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fill(Path("events.db"), 30)
    Path("lenient.toml").write_text(_LENIENT)
    Path("strict.toml").write_text(f"{_LENIENT}answer_quality = false".replace("grounding = 0.5", "grounding = 1", 1))


def test_the_three_ends() -> None:
    assert main(["check", "events.db", "--policy", "lenient.toml"]) == 0
    assert main(["check", "events.db", "--policy", "strict.toml"]) == 1
    fill(Path("few.db"), 3)
    assert main(["check", "few.db", "--policy", "strict.toml"]) == 2


def test_lines_and_a_database_come_to_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    Path("events.jsonl").write_bytes(b"{broken\n".join(event.encode() + b"\n" for event in many_events(30)))
    said: list[str] = []
    for options in (["events.db"], ["--from", "events.jsonl"]):
        assert main(["check", *options, "--policy", "lenient.toml", "--json"]) == 0
        out, err = capsys.readouterr()
        said.append(out)
        assert ("skipped: 179" in err) == ("events.jsonl" in options)
    assert said[0] == said[1]
    found = json.loads(said[0])
    assert (found["verdict"], found["sessions"]) == ("pass", 30)
    assert {"group", "name", "verdict", "value", "limit", "samples", "smallest_sample"} <= found["rules"][0].keys()


def test_junit_has_a_case_for_each_rule() -> None:
    assert main(["check", "events.db", "--policy", "strict.toml", "--junit", "found.xml"]) == 1
    assert main(["check", "events.db", "--junit", "found.xml"]) == 1  # over what it wrote before
    root = ET.parse("found.xml").getroot()  # noqa: S314  our own
    cases = {case.attrib["name"]: [child.tag for child in case] for case in root.iter("testcase")}
    assert cases["documents_retrieved"] == ["failure"]
    assert cases["helpful_rate"] == ["error"]
    assert cases["answer_quality"] == ["skipped"]
    assert cases["latency_s"] == []
    counts = {tag: str(sum(tags == [tag] for tags in cases.values())) for tag in ("failure", "error", "skipped")}
    suite = root[0].attrib
    assert (suite["failures"], suite["errors"], suite["skipped"]) == tuple(counts.values())
    assert suite["tests"] == str(len(cases))


def test_annotations_name_what_does_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "events.db", "--github"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert any(line.startswith("::error title=spanforge check::documents_retrieved is 0.") for line in lines)
    assert any(line.startswith("::warning title=spanforge check::helpful_rate is - over 0 samples") for line in lines)
    main(["check", "events.db", "--policy", "lenient.toml", "--github"])
    assert "::notice title=spanforge check::pass over 30 sessions\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["events.db", "--policy", "bad.toml"], "--policy: thresholds.grounding: give a number above 0 and up to 1"),
        (["events.db", "--policy", "absent.toml"], "absent.toml"),
        (["events.db", "--junit", "events.db"], "--junit: a file that is no XML stands there"),
        (["events.db", "--junit", "lenient.toml"], "--junit: a file that is no XML stands there"),
        (["events.db", "--from", "events.db"], "--from: says what INPUT says"),
        (["events.db", "--github", "--json"], "--github: annotations are no JSON"),
        (["absent.db"], "there is nothing at this path"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    Path("bad.toml").write_text("[thresholds]\ngrounding = 80\n")
    before = Path("events.db").read_bytes(), Path("lenient.toml").read_bytes()
    assert main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert (Path("events.db").read_bytes(), Path("lenient.toml").read_bytes()) == before


def test_no_event_cannot_tell() -> None:
    Path("empty.jsonl").write_text("")
    assert main(["check", "empty.jsonl"]) == 2
