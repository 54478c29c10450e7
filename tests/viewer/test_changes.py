"""`spanforge report --compare`: two inputs, two periods, or two values of what sessions share, one beside the other."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support.many_sessions import fill, many_events, two_releases
from support.viewer import Look, write

from spanforge.cli import main
from spanforge.namespaces.event import Event
from spanforge.viewer.shown import change, figure

_ALIKE = "no difference that this many sessions could show"
Said = Callable[..., dict[str, Any]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def of(*arguments: str) -> dict[str, Any]:
        assert main(["report", *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return of


def _by_name(compared: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in compared["figures"]}


def test_what_changed_is_said_and_what_did_not_is_not(tmp_path: Path, said: Said) -> None:
    store = write(tmp_path / "events.db", two_releases(120))
    compared = said(str(store), "--tag", "release=2", "--compare", "release=1")
    assert (compared["sessions"], compared["baseline_sessions"], compared["on_both_sides"]) == (120, 120, 0)
    found = {one["name"]: one["verdict"] for one in compared["figures"] if one["verdict"] != _ALIKE}
    assert found == {
        "latency p50, generation": "higher",
        "latency p95, generation": "higher",
        "latency p50, all stages": "higher",
        "latency p95, all stages": "higher",
        "mean grounding": "lower",
        "citation coverage": "lower",
        "cost a session": "not measured on both sides",
        "helpful ratings": "lower",
        "sessions escalated": "higher",
    }
    for one in compared["figures"]:
        if one["difference"] is not None:
            assert one["difference"] == pytest.approx(one["value"] - one["baseline"])
            # Where so few sessions bound nothing, there is no number.
            low, high = (
                -math.inf if one["low"] is None else one["low"],
                math.inf if one["high"] is None else one["high"],
            )
            assert (low <= 0 <= high) == (one["verdict"] == _ALIKE)


def test_each_side_has_the_figures_of_its_own_report(tmp_path: Path, said: Said) -> None:
    store = write(tmp_path / "events.db", two_releases(60))
    compared = _by_name(said(str(store), "--tag", "release=2", "--compare", "release=1"))
    for side, tag in (("value", "release=2"), ("baseline", "release=1")):
        report = said(str(store), "--tag", tag)
        for stage in report["latency"]:
            for name in ("p50", "p95"):
                taken = compared[f"latency {name}, {stage['stage']}"]
                assert round(taken[side] * 1000) == stage[name]
        expected = {
            "sessions in error": report["error"] / report["sessions"],
            "mean grounding": report["grounding_mean"],
            "empty retrievals": report["empty"] / report["retrieving"],
            "tokens a session": (report["input"] + report["output"]) / report["sessions"],
            "sessions escalated": report["escalated"] / report["sessions"],
        }
        assert {name: compared[name][side] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("suffix", [".db", ".jsonl"])
def test_two_inputs_two_periods_and_two_values_are_told_alike(tmp_path: Path, said: Said, suffix: str) -> None:
    old, new = list(many_events(40)), list(many_events(40, first=40))
    both = write(tmp_path / f"both{suffix}", [*old, *new])
    apart = [write(tmp_path / f"{name}{suffix}", events) for name, events in (("old", old), ("new", new))]
    by_input = said(str(apart[1]), "--compare", str(apart[0]))
    # Session 40 begins 280 seconds after the first, in the fifth minute, which the period ends before.
    first = write(tmp_path / f"first{suffix}", old[: 35 * 6])
    rest = write(tmp_path / f"rest{suffix}", [*old[35 * 6 :], *new])
    by_period = said(str(both), "--compare", "2026-01-01..2026-01-01T00:04")
    assert by_input["sessions"] == by_input["baseline_sessions"] == 40
    assert by_period["baseline_sessions"] == 35
    assert by_period["figures"] == said(str(rest), "--compare", str(first))["figures"]
    by_model = said(str(both), "--model", "model-a", "--compare", "model=model-b")
    assert by_model["figures"] == said(str(both), "--compare", "model=model-b")["figures"]


def test_sessions_on_both_sides_are_left_out_and_counted(tmp_path: Path, said: Said) -> None:
    events = list(many_events(30))
    store, other = write(tmp_path / "a.db", events[: 20 * 6]), write(tmp_path / "b.db", events[10 * 6 :])
    compared = said(str(store), "--compare", str(other))
    assert (compared["sessions"], compared["baseline_sessions"], compared["on_both_sides"]) == (10, 10, 10)


def test_a_rerank_that_keeps_the_first_chunk_first_changes_nothing(tmp_path: Path, said: Said) -> None:
    def kept(event: Event) -> Event:
        chunks = event.payload.get("chunks")
        return replace(event, payload={**event.payload, "chunks": chunks[::-1][-1:]}) if chunks else event

    reordered = write(tmp_path / "a.db", many_events(30))
    same = write(
        tmp_path / "b.db",
        (kept(one) if one.event_type == "llm.rag.retrieved" else one for one in many_events(30, first=30)),
    )
    told = _by_name(said(str(reordered), "--compare", str(same)))["top chunk changed by rerank"]
    assert (told["baseline"], told["value"], told["verdict"]) == (1.0, 1.0, _ALIKE)


def test_terminal_and_page_say_what_json_says(tmp_path: Path, said: Said, capsys: pytest.CaptureFixture[str]) -> None:
    store, page = write(tmp_path / "events.db", two_releases(40)), tmp_path / "page.html"
    asked = [str(store), "--tag", "release=2", "--compare", "release=1"]
    compared = said(*asked)
    assert main(["report", *asked]) == 0
    terminal = capsys.readouterr().out
    assert main(["report", *asked, "--html", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in html
    assert " href=" not in html
    for one in compared["figures"]:
        written = [figure(one[name], one["unit"]) for name in ("baseline", "value")]
        written += [change(one["difference"], one["unit"]), one["name"], one["verdict"]]
        written.append(f"{change(one['low'], one['unit'])} to {change(one['high'], one['unit'])}")
        assert not [text for text in written if text not in html]
        # What is too long for the terminal's width goes on in the next line.
        assert not [text for text in written if text not in " ".join(terminal.split())]


_REFUSED = {
    "events.db": "that is INPUT itself",
    "copy.db": "0 sessions in the baseline and 0 beside it, where each needs two or more; 20 are on both sides",
    "2020-01-01..2020-02-01": "what INPUT has began from 2026-01-01 00:00:00 to 2026-01-01 00:02:13",
    "2026-01-01..": "20 sessions in the baseline and 0 beside it",
    "2026-02-01..2026-01-01": "the period ends before it begins",
    "2026-01-01..2026-01-01": "the period ends before it begins, or at once",
    "2026-13-01..2026-14-01": "name another input, a period such as",
    "retriever=": "name another input",
    "retriever=nobody": "0 sessions in the baseline",
    "one.db": "1 sessions in the baseline",
    "nowhere.db": "nothing is stored at nowhere.db",
    "s3://bucket/events.jsonl": "fetch the file first",
    "": "it is empty",
}


def test_what_cannot_be_compared_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "events.db", 20)
    fill(tmp_path / "copy.db", 20)
    write(tmp_path / "one.db", many_events(1, first=99))
    for baseline, sentence in _REFUSED.items():
        assert main(["report", "events.db", "--compare", baseline]) == 2
        told = capsys.readouterr().err
        assert told.startswith("spanforge: --compare: ")
        assert sentence in told
        assert told.count("\n") == 1


def test_one_tag_narrows_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(fill(tmp_path / "events.db", 3))
    assert main(["report", store, "--tag", "env=live", "--compare", "release=1"]) == 2
    assert "--compare: the filter names another tag" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "none.db"), "--compare", "release=1"]) == 2
    assert "INPUT: nothing is stored there" in capsys.readouterr().err


def _count(page: str) -> int:
    [told] = re.findall(r'<p class="sub">([\d,]+) session', page)
    return int(told.replace(",", ""))


def test_figures_beside_others_lead_to_the_sessions_of_their_side(look: Look, tmp_path: Path) -> None:
    client = look(write(tmp_path / "events.db", two_releases(60)))
    page = client.get("/overview?against=release%3D1").text
    panel = page[page.index('aria-labelledby="compared"') : page.index('<dl class="tiles">')]
    assert "<strong>higher</strong>" in panel
    assert "no difference that this many sessions could show" in panel
    rows = re.findall(r'<th role="rowheader" scope="row">([^<]+)<.*?href="([^"]+)".*?href="([^"]+)"', panel)
    led = {name: [_count(client.get(unescape(link)).text) for link in links] for name, *links in rows}
    assert led["mean grounding"] == [60, 60]
    assert led["sessions escalated"][0] == 0
    assert led["sessions escalated"][1] > 20
    assert 'href="/overview?group=release&amp;against=release%3D2"' in client.get("/overview?group=release").text


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("against=before", "choose a range of time"),
        ("against=release%3D1&tag=env%3Dlive", "names another tag"),
        ("against=2026-02-01..2026-01-01", "ends before it begins"),
        ("against=nonsense", "Left out of the filter"),
        ("against=retriever%3Dnobody", "0 sessions in the baseline and 3 beside it"),
        ("model=model-a&against=model%3Dmodel-a", "are on both sides and count on neither"),
    ],
)
def test_what_nothing_can_be_put_beside_is_said(look: Look, tmp_path: Path, address: str, sentence: str) -> None:
    page = look(fill(tmp_path / "events.db", 3)).get(f"/overview?{address}").text
    assert sentence in page
    assert 'aria-labelledby="compared"' not in page


def test_without_the_extra_the_overview_says_so(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "spanforge.viewer.changes", "spanforge.analysis.comparing", "spanforge.analysis.intervals"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "numpy", None)
    page = look(fill(tmp_path / "events.db", 3)).get("/overview?against=model%3Dmodel-a").text
    assert "spanforge[analysis]" in page
    assert "Sessions over time" in page
