"""What leads from a figure to its sessions, from a session to others, and out of the pages."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from support.many_sessions import fill
from support.stored import event
from support.viewer import Look, write

from spanforge.namespaces.event import Event

QUERY, RETRIEVED, GENERATED = "llm.rag.query", "llm.rag.retrieved", "llm.rag.generated"
SUMMARY, FEEDBACK, ESCALATED = "llm.rag.session", "llm.feedback.submitted", "llm.rag.escalated"
CHUNK = {"chunk_id": "c1", "score": 0.5, "source": "a.md"}


def _session(number: int, name: str, *stages: tuple[str, dict[str, Any]], **tags: str) -> list[Event]:
    told = [(QUERY, {"query_hash": f"{number:064x}"}), *stages]
    made = [
        event(number * 100 + place, session_id=name, event_type=kind, **payload)
        for place, (kind, payload) in enumerate(told)
    ]
    return [replace(one, tags=tags, payload=_bare(one)) for one in made]


def _bare(one: Event, of_query: Iterable[str] = ("query_hash",)) -> dict[str, Any]:
    kept = {*of_query} if one.event_type == QUERY else set[str]()
    return {name: value for name, value in one.payload.items() if name not in {"number", "query_hash"} - kept}


def _rated(rating: str, value: float) -> tuple[str, dict[str, Any]]:
    return FEEDBACK, {"feedback_id": "f", "trace_id": "", "rating": rating, "value": value}


STORED = [
    *_session(1, "found", (RETRIEVED, {"chunks": [CHUNK]}), release="1.0"),
    *_session(2, "empty", (RETRIEVED, {"chunks": []}), release="2.0"),
    *_session(3, "away", (RETRIEVED, {"chunks": [], "status": "error", "error_message": "StoreAway"}), release="2.0"),
    *_session(4, "slow", (GENERATED, {"model": "m", "status": "timeout", "error_message": "TooSlow"})),
    *_session(5, "liked", _rated("thumbs_up", 1.0), (SUMMARY, {"conversation_id": "found"})),
    *_session(6, "disliked", _rated("thumbs_down", 0.0), (SUMMARY, {"conversation_id": "found"})),
    *_session(7, "asked", (ESCALATED, {"rule": "low-grounding", "trigger": "grounding", "level": 1})),
]


@pytest.fixture
def client(look: Look, tmp_path: Path) -> TestClient:
    return look(write(tmp_path / "events.db", STORED))


def _found(page: str) -> list[str]:
    return [unescape(name) for name in re.findall(r'class="id" href="/sessions/([^"?]+)"', page)]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("mark=empty", {"empty"}),
        ("mark=escalated", {"asked"}),
        ("mark=rated", {"liked", "disliked"}),
        ("mark=rated%20low", {"disliked"}),
        ("error=StoreAway", {"away"}),
        ("error=TooSlow", {"slow"}),
        ("tag=release%3D2.0", {"empty", "away"}),
        ("tag=release%3D2.0&mark=empty", {"empty"}),
        ("conversation=found", {"found", "liked", "disliked"}),
        ("mark=nonsense", {"found", "empty", "away", "slow", "liked", "disliked", "asked"}),
    ],
)
def test_sessions_are_picked_out(client: TestClient, query: str, names: set[str]) -> None:
    assert set(_found(client.get(f"/sessions?{query}").text)) == names


def test_every_figure_leads_to_its_sessions(client: TestClient) -> None:
    page = client.get("/overview?group=release").text
    links = [unescape(link) for link in re.findall(r'href="(/sessions\?[^"]+)"', page)]
    counts = {link: len(_found(client.get(link).text)) for link in links}
    assert counts["/sessions?mark=empty&group=release"] == 1
    assert counts["/sessions?tag=release%3D2.0&group=release"] == 2
    assert counts["/sessions?error=StoreAway&group=release"] == 1


_PART_OF = {"retriever": "wiki", "pipeline": "chat", "namespace": "kb", "actor": "ann", "model": "m", "release": "1"}


@pytest.mark.parametrize("kind", _PART_OF)
def test_sessions_are_told_apart_by_what_they_name(look: Look, tmp_path: Path, kind: str) -> None:
    asked = {"query_hash": "", "retriever_name": "wiki", "pipeline_name": "chat", "namespace": "kb"}
    mine = [event(1, session_id="mine", **asked), event(2, session_id="mine", event_type=GENERATED, model="m")]
    mine = [replace(one, payload=_bare(one, asked), actor_id="ann", tags={"release": "1"}) for one in mine]
    client = look(write(tmp_path / "events.db", [*mine, event(3, session_id="other")]))
    page = client.get(f"/overview?group={kind}").text
    name = _PART_OF[kind]
    panel = page[page.index('id="groups"') :]
    assert re.search(rf"<bdi>{name}</bdi></a></th>\s*<td class=\"num\"><a [^>]+>1</a></td>", panel)
    [link] = re.findall(rf'href="([^"]+)"><bdi>{name}</bdi>', panel)
    assert _found(client.get(unescape(link)).text) == ["mine"]
    assert _found(client.get("/sessions", params={"without": f"{kind}={name}"}).text) == ["other"]


@pytest.mark.parametrize("far", ["9999-12-31T23:59:59Z", "1970-01-01T00:00:01Z", "nonsense"])
def test_a_clock_that_is_far_off_leaves_the_others_their_room(look: Look, tmp_path: Path, far: str) -> None:
    near = [replace(one, session_id=f"s{number}") for number, one in enumerate([STORED[0]] * 9)]
    client = look(write(tmp_path / "events.db", [*near, replace(STORED[0], session_id="far", timestamp=far)]))
    page = client.get("/overview").text
    columns = re.findall(r'<a tabindex="-1" href="([^"]+)"><rect class="ok"', page)
    assert len(_found(client.get(unescape(columns[0])).text)) == 9
    assert len(columns) == 1
    assert "1 began at other times" in page


@pytest.mark.parametrize("at", ["nonsense", "0001-01-01T00:00:00+14:00"])
def test_sessions_of_no_time_are_counted(look: Look, tmp_path: Path, at: str) -> None:
    client = look(write(tmp_path / "events.db", [replace(one, timestamp=at) for one in STORED]))
    page = client.get("/overview?group=release").text
    assert "7 sessions" in page
    assert "None of them says at a time that can be read" in page
    assert set(_found(client.get("/sessions/found").text)) == {"found", "liked", "disliked"}


def test_events_that_are_not_what_they_say_make_no_page_and_no_link(look: Look, tmp_path: Path) -> None:
    unsound = [replace(event(n, session_id="s"), event_type=RETRIEVED, payload={"chunks": "no"}) for n in (1, 2)]
    newer = replace(event(3, session_id="s"), event_type="x.newer", payload={})
    client = look(write(tmp_path / "events.db", [*unsound, newer, replace(unsound[0], session_id="nobody")]))
    assert client.get("/sessions/s").status_code == 200
    assert set(_found_by_name(client.get("/tail").text)) == {"s"}


def test_long_names_are_no_choices(look: Look, tmp_path: Path) -> None:
    name = "x" * 50_000
    client = look(write(tmp_path / "events.db", _session(1, "s", (GENERATED, {"model": name}), release=name)))
    assert [len(client.get(page).text) < 50_000 for page in ("/sessions", "/overview")] == [True, True]


def test_a_session_is_in_one_column_and_the_address_of_a_column_has_its_sessions(look: Look, tmp_path: Path) -> None:
    client = look(fill(tmp_path / "events.db", 40))
    columns = re.findall(r'<a tabindex="-1" href="([^"]+)"><rect', client.get("/overview").text)
    found = [name for link in columns for name in _found(client.get(unescape(link)).text)]
    assert len(found) == len(set(found)) == 40


def test_what_is_worth_a_look_says_why(client: TestClient) -> None:
    page = client.get("/overview").text
    worth = page[page.index('id="worst"') :]
    assert {"StoreAway", "TooSlow"} <= set(re.findall(r"<bdi>(\w+)</bdi></a></th><td", worth))
    assert re.search(r"disliked</bdi>.*?rated 1\.0 of 5", worth, re.DOTALL)


def test_a_failed_retrieval_is_no_empty_one(client: TestClient) -> None:
    assert "1 sessions found nothing" in client.get("/overview").text


def test_a_session_leads_to_those_around_it(client: TestClient) -> None:
    page = client.get("/sessions/away").text
    assert re.search(r'href="/sessions/empty" rel="prev"', page)
    assert re.search(r'href="/sessions/slow" rel="next"', page)
    assert 'rel="prev"' not in client.get("/sessions/found").text
    assert 'rel="next"' not in client.get("/sessions/asked").text


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [("found", "empty", ["lost"]), ("empty", "found", ["gained"]), ("found", "found", ["kept"])],
)
def test_two_sessions_are_put_side_by_side(client: TestClient, first: str, second: str, words: list[str]) -> None:
    page = client.get(f"/sessions/{first}/compare", params={"with": second}).text
    assert _found(page) == [first, second]
    assert re.findall(r'class="tag \w*">(\w+)<', page) == words
    assert ("Both asked the same" in page) == (first == second)


def test_what_is_compared_is_there(client: TestClient) -> None:
    assert 'action="/sessions/found/compare"' in client.get("/sessions/found").text
    for other in ("nobody", ""):
        assert client.get("/sessions/found/compare", params={"with": other}).status_code == 404


def test_a_session_leads_to_the_last_of_the_same_question(look: Look, tmp_path: Path) -> None:
    again = [replace(one, event_id=one.event_id[:-1] + "Z", session_id="again") for one in STORED[:2]]
    client = look(write(tmp_path / "events.db", [*STORED, *again]))
    assert "/sessions/found/compare?with=again" in client.get("/sessions/again").text
    assert "of the same question" not in client.get("/sessions/empty").text


def test_columns_are_chosen_and_stay_in_the_address(client: TestClient) -> None:
    page = client.get("/sessions?columns=model tags&mark=rated").text
    assert re.findall(r'data-label="(\w+)"', page) == ["Started", "Session", "Status", "Model", "Tags"] * 2
    assert "columns=model+tags+feedback" in page, "one more"
    assert 'columns=model"' in page, "one less"
    tagged = client.get("/sessions?columns=model tags&tag=release=1.0").text
    assert '<bdi class="tag">release=1.0</bdi>' in tagged
    assert "<bdi>m</bdi>" in client.get("/sessions?columns=model&error=TooSlow").text
    assert "Left out of the filter" in client.get("/sessions?columns=mood").text


def test_the_latest_events_are_those_one_may_see(look: Look, tmp_path: Path, guest_of: Callable[[str], Any]) -> None:
    path = write(tmp_path / "events.db", [*STORED, replace(STORED[0], event_id="0" * 26, org_id="acme")])
    page = look(path).get("/tail").text
    times = re.findall(r'<time datetime="([^"]+)"', page)
    assert len(times) == len(STORED) + 1
    assert times == sorted(times, reverse=True)
    mine = look(path, sign_in=guest_of("acme"))
    mine.post("/sign-in", data={"credential": "any"})
    assert _found_by_name(mine.get("/tail").text) == ["found"]
    assert mine.get("/sessions/found/compare", params={"with": "empty"}).status_code == 404


def test_the_latest_events_stand_in_the_order_of_time(look: Look, tmp_path: Path) -> None:
    times = {
        "third": "2026-01-01T00:00:00.5Z", "second": "2026-01-01T00:00:00.75+00:00", "fourth": "2026-01-01T00:00:00Z",
        "first": "2025-12-31T23:00:01-01:00", "fifth": "2026-01-01T01:59:00+02:00", "ahead": "9999-12-31T23:59:59Z",
        "untimed": "nonsense",
    }  # fmt: skip
    events = [replace(event(n), session_id=name, timestamp=at) for n, (name, at) in enumerate(times.items())]
    page = look(write(tmp_path / "events.db", events)).get("/tail").text
    assert _found_by_name(page)[:5] == ["first", "second", "third", "fourth", "fifth"]
    assert "2025-12-31 23:59:00" in page


def _found_by_name(page: str) -> list[str]:
    return re.findall(r'class="id" href="[^"]+"><bdi>(\w+)<', page)


@pytest.mark.parametrize("name", ["found", "liked", "disliked"])
def test_a_turn_leads_to_the_others(client: TestClient, name: str) -> None:
    assert _found(client.get(f"/sessions/{name}").text) == ["found", "liked", "disliked"]


def test_what_was_not_kept_is_not_said_to_have_not_been(look: Look, tmp_path: Path) -> None:
    summary = event(1, session_id="s", event_type=SUMMARY, generation_count=2)
    sampled = look(write(tmp_path / "a.db", [replace(summary, payload=_bare(summary))]))
    page = sampled.get("/sessions/s").text
    assert "Not kept" in page
    assert "No answer was generated" not in page
    assert "No answer was generated" in look(write(tmp_path / "b.db", STORED)).get("/sessions/found").text


def test_an_export_that_fails_leads_back(client: TestClient) -> None:
    answer = client.get("/sessions/found/export/transparency")
    assert answer.status_code == 409
    assert 'href="/sessions/found"' in answer.text


def test_the_list_is_taken_away_as_it_is_filtered(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get("/sessions.csv?tag=release%3D2.0").text)))
    assert {row["session_id"] for row in rows} == {"empty", "away"}
    told = client.get("/sessions.json?sort=started&order=asc").json()
    assert [one["session_id"] for one in told][:2] == ["found", "empty"]
    assert told[0]["started"].endswith("Z")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@a", "\t=1"])
def test_no_value_is_a_formula(look: Look, tmp_path: Path, name: str) -> None:
    client = look(write(tmp_path / "events.db", [event(1, session_id=name)]))
    [row] = csv.DictReader(io.StringIO(client.get("/sessions.csv").text))
    assert row["session_id"] == f"'{name}"


def test_lists_of_others_stay_theirs(look: Look, tmp_path: Path, guest_of: Callable[[str], Any]) -> None:
    mine = replace(event(1, session_id="mine"), org_id="acme")
    theirs = replace(event(2, session_id="theirs", event_type=SUMMARY, conversation_id="mine"), org_id="globex")
    client = look(write(tmp_path / "events.db", [mine, theirs]), sign_in=guest_of("acme"))
    assert client.post("/sign-in", data={"credential": "k"}).status_code == 200
    for path in ("/sessions.csv", "/sessions.json", "/sessions?conversation=mine", "/sessions/mine", "/overview"):
        assert "theirs" not in client.get(path).text


def test_whatever_a_session_page_leads_to_is_there(look: Look, tmp_path: Path) -> None:
    orgs = ["", "acme", "globex"]
    client = look(write(tmp_path / "events.db", [replace(one, org_id=orgs[n % 3]) for n, one in enumerate(STORED)]))
    seen, ahead = set[str](), ["/sessions"]
    while ahead:
        address = ahead.pop()
        if address not in seen:
            seen.add(address)
            page = client.get(address)
            assert page.status_code == 200, address
            ahead += [
                unescape(link) for link in re.findall(r'href="(/sessions/[^"]+)"', page.text) if "export" not in link
            ]
    assert sum("/compare?" in address for address in seen) > 2


def test_what_nobody_timed_took_no_time_that_is_shown(look: Look, tmp_path: Path) -> None:
    timed = _session(1, "timed", (RETRIEVED, {"chunks": [CHUNK], "latency_ms": 7.0}))
    free_text = (FEEDBACK, {"feedback_id": "f", "trace_id": "", "rating": "free_text"})
    client = look(write(tmp_path / "events.db", timed + _session(2, "untimed", free_text)))
    pages = [client.get(page).text for page in ("/overview", "/sessions/timed", "/sessions/timed/compare?with=untimed")]
    assert [page.count(">0 µs") for page in pages] == [0, 0, 0]
    assert all("7.0 ms" in page for page in pages)
    assert "0 rated" in pages[0]
