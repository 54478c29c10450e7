"""`spanforge report`: the overview's own figures, in a terminal, as JSON and as one page."""

from __future__ import annotations

import gzip
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support.many_sessions import fill, many_events, two_releases
from support.viewer import Look, write

from spanforge.analysis import stored_sessions
from spanforge.analysis.figures import PERCENTILES, figures
from spanforge.analysis.prices import priced, read_prices
from spanforge.cli import main
from spanforge.namespaces.stages import STAGE_WORDS
from spanforge.reader import read_events
from spanforge.sinks.sqlite import SqliteSink
from spanforge.viewer.shown import brief, dollars, duration, percent, score, stars


def _page(store: Path, *options: str) -> str:
    page = store.with_suffix(".html")
    assert main(["report", str(store), "--html", str(page), *options]) == 0
    return page.read_text(encoding="utf-8")


def _alone(page: str) -> str:
    """Return a page without what leads to a comparison."""
    return re.sub(r'<td class="beside">.*?</td>', "", page)


def _figures(page: str) -> list[str]:
    """Return what tables, tiles and charts of a page say, links aside."""
    plain = re.sub(r' href="[^"]*"', "", _alone(page))
    return re.findall(r"<(?:td|dd|rect|polyline)[^>]*>[^<]*", plain[plain.index('<dl class="tiles">') :])


@pytest.mark.parametrize("group", ["retriever", "model"])
def test_the_page_has_the_figures_of_the_viewer(tmp_path: Path, look: Look, group: str) -> None:
    store = fill(tmp_path / "events.db", 60)
    viewed = look(store).get(f"/overview?group={group}").text
    found = _figures(_page(store, "--group", group))
    assert len(found) > 100
    assert found == _figures(viewed)


@pytest.mark.parametrize("suffix", [".db", ".jsonl.gz", ".parquet"])
def test_a_report_is_the_same_of_every_kind_of_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    def told(store: Path) -> dict[str, Any]:
        assert main(["report", str(store), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    lines, other = write(tmp_path / "events.jsonl", two_releases(20)), tmp_path / f"other{suffix}"
    if suffix == ".db":
        write(other, two_releases(20))
    elif suffix == ".parquet":
        rows = {"line": lines.read_bytes().splitlines()}
        pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").table(rows), other)
    else:
        other.write_bytes(gzip.compress(lines.read_bytes()))
    assert told(other) == told(lines)


@pytest.mark.parametrize("suffix", [".db", ".jsonl"])
def test_what_a_report_counts_of_answers_is_what_their_events_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    store = write(tmp_path / f"events{suffix}", two_releases(60))
    assert main(["report", str(store), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    by_events = figures(stored_sessions(read_events(store)))
    cited, helpful = by_events["citation_coverage"], by_events["helpful_rate"]
    assert (told["cited"] / told["answers"], told["answers"]) == (cited.value, cited.samples)
    assert (told["helpful"] / told["judged"], told["judged"]) == (helpful.value, helpful.samples)
    assert 0 < told["cited"] < told["answers"] > told["judged"] > told["helpful"] > 0


def _rows(page: str, name: str) -> list[list[str]]:
    """Return what the rows of a panel's table say."""
    panel = _alone(page[page.index(f'aria-labelledby="{name}"') :])
    body = panel[panel.index("<tbody>") : panel.index("</tbody>")]
    cells = (
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)
    )
    return [[unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in row] for row in cells]


@pytest.mark.parametrize("sessions", [150, pytest.param(50_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_page_json_and_viewer_have_the_same_numbers(
    tmp_path: Path, look: Look, capsys: pytest.CaptureFixture[str], sessions: int
) -> None:
    """Of two releases of this many sessions each."""
    store = write(tmp_path / "events.db", two_releases(sessions))
    assert main(["report", str(store), "--json", "--group", "release"]) == 0
    told = json.loads(capsys.readouterr().out)
    pages = [_page(store, "--group", "release"), look(store).get("/overview?group=release").text]
    assert told["sessions"] == 2 * sessions
    assert [stage["stage"] for stage in told["latency"]] == [*STAGE_WORDS, "all stages"]
    unknown = told["generating"] - told["priced"]
    helpful = percent(told["helpful"], told["judged"])
    for page in pages:
        tiles = [unescape(re.sub(r"<[^>]*>", "", tile)) for tile in re.findall(r"<dd[^>]*>(.*?)</dd>", page)]
        assert tiles == [
            percent(told["error"], told["sessions"]), f"{told['error']:,} of {told['sessions']:,}",
            percent(told["empty"], told["retrieving"]), f"{told['empty']:,} sessions found nothing",
            percent(told["cited"], told["answers"]), f"{told['cited']:,} of {told['answers']:,}",
            percent(told["reordered"], told["reranked"]), f"{told['reordered']:,} of {told['reranked']:,} sessions",
            score(told["grounding_mean"]), f"{sum(told['grounding']):,} measured",
            brief(told["input"] + told["output"]), f"{brief(told['input'])} in, {brief(told['output'])} out",
            dollars(told["cost"]),
            f"{dollars(told['cost'] / told['priced'])} in each of {told['priced']:,}; {unknown:,} unknown",
            f"{stars(told['rating'])} of 5",
            f"{told['rated']:,} rated, {helpful} of ratings helpful",
            percent(told["escalated"], told["sessions"]), f"{told['escalated']:,} asked for a person",
        ]  # fmt: skip
        times = [[row[0], *row[2:]] for row in _rows(page, "latency")]
        assert times == [[one["stage"], *(duration(one[name]) for name in PERCENTILES)] for one in told["latency"]]
        assert [row[2] for row in _rows(page, "grounding")] == [f"{count:,}" for count in told["grounding"][::-1]]
        assert _rows(page, "sources") == [
            [one["source"], "", f"{one['chunks']:,}", f"{one['sessions']:,}"] for one in told["sources"]
        ]
        groups = [[row[0], row[1], *row[4:]] for row in _rows(page, "groups")]
        assert groups == [
            [
                one["name"], f"{one['sessions']:,}", duration(one["latency"]), score(one["grounding"]),
                f"{one['tokens']:,.0f}", dollars(one["cost"]), stars(one["rating"]), f"{one['escalated']:,}",
            ]
            for one in told["groups"]
        ]  # fmt: skip
        volume = [[int(cell.replace(",", "")) for cell in row[1:]] for row in _rows(page, "volume")]
        assert volume == [[one[name] for name in ("ok", "partial", "error", "tokens")] for one in told["volume"]]


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = _page(fill(tmp_path / "events.db", 20))
    assert not re.search(r"\b(?:href|src|action)=|url\(|@import|<script|<form", page)
    assert "default-src 'none'" in page


def test_json_says_the_same_of_a_database_and_of_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "events.jsonl"
    lines.write_bytes(b"".join(event.encode() + b"\n" for event in many_events(30)))
    said: list[dict[str, Any]] = []
    for store in (fill(tmp_path / "events.db", 30), lines):
        assert main(["report", str(store), "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert said[0]["sessions"] == 30
    assert said[0]["complete"] is True


def test_prices_are_for_what_does_not_say_its_cost_and_leave_the_store_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, prices = write(tmp_path / "events.db", two_releases(40)), tmp_path / "prices.toml"
    prices.write_text("[models.model-a]\ninput = 2\noutput = 1000\n")

    def told(*options: str) -> dict[str, Any]:
        assert main(["report", str(store), "--group", "model", "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    before = told()
    found = told("--prices", str(prices))
    assert (before["generating"], before["priced"], before["cost"]) == (80, 40, pytest.approx(40 * 0.02))
    expected = [priced(one, read_prices(prices)).summary for one in stored_sessions(read_events(store))]
    costs = [one.total_cost_usd for one in expected if one.total_cost_usd is not None]
    assert 40 < len(costs) < 80
    assert (found["generating"], found["priced"], found["cost"]) == (80, len(costs), pytest.approx(sum(costs)))
    assert [one["cost"] for one in found["volume"]] != [one["cost"] for one in before["volume"]]
    assert told() == before
    assert told("--prices", "genai-prices") == before
    assert main(["report", str(store), "--prices", str(prices)]) == 0
    assert f"{len(costs)} of 80 sessions that asked a model; {80 - len(costs)} unknown" in capsys.readouterr().out
    assert main(["report", str(store), "--compare", "release=2", "--prices", str(prices), "--json"]) == 0
    samples = {one["name"]: one["samples"] for one in json.loads(capsys.readouterr().out)["figures"]}
    assert samples["cost a session"] == len(costs) - 40


def test_damage_is_counted_and_the_rest_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "events.jsonl"
    lines.write_bytes(b"{broken\n".join(event.encode() + b"\n" for event in many_events(5)))
    assert main(["report", str(lines)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("5 sessions")
    assert "Left out as damaged: 29 x" in said


def test_a_file_that_is_empty_has_no_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events.jsonl").touch()
    assert main(["report", str(tmp_path / "events.jsonl")]) == 0
    assert capsys.readouterr().out.startswith("0 sessions")


def test_a_filter_narrows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = fill(tmp_path / "events.db", 30)
    assert main(["report", str(store), "--retriever", "wiki", "--json"]) == 0
    narrowed = json.loads(capsys.readouterr().out)
    assert 0 < narrowed["sessions"] < 30
    assert [group["name"] for group in narrowed["groups"]] == ["wiki"]


def test_no_session_is_said_and_not_drawn(tmp_path: Path) -> None:
    store = fill(tmp_path / "events.db", 3)
    assert "No sessions to count" in _page(store, "--retriever", "none of them")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["events.db", "--since", "yesterday"], "--since: give a date"),
        (["missing.jsonl"], "missing.jsonl"),
        (["events.db", "--from", "events.db"], "--from: says what INPUT says"),
        (["events.db", "--html", "./events.db"], "--html: the events stand there"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = fill(tmp_path / "events.db", 3).read_bytes()
    assert main(["report", *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert (tmp_path / "events.db").read_bytes() == before


def test_a_store_that_is_not_added_up_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = SqliteSink(tmp_path / "events.db")
    sink.write(list(many_events(4_000)))
    sink.close()
    assert main(["report", str(tmp_path / "events.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["complete"] is False
    assert main(["report", str(tmp_path / "events.db")]) == 0
    assert "of 24,000 events are added up so far" in capsys.readouterr().out
