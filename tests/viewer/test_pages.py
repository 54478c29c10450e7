"""The pages as a browser gets them: what they show, where they lead, and what they never do."""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import replace
from html import unescape
from io import BytesIO
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from support.many_sessions import fill, many_events
from support.stored import event, events
from support.viewer import Look, write

from spanforge._hashing import Hasher
from spanforge.sdk import sf_rag
from spanforge.sinks._schema import MIGRATIONS
from spanforge.sinks.memory import MemorySink
from spanforge.sinks.sqlite import SqliteSink
from spanforge.testing import capture, find_canary
from spanforge.viewer import create_viewer
from spanforge.viewer.guards import CONTENT_POLICY

_PAGES = ("/sessions", "/overview", "/delivery")
_HOSTILE = "</td><script>alert(1)</script>\u202e\u0000'\"&{{77*1234}}"


def _links(page: str) -> list[str]:
    return [unescape(href) for href in re.findall(r'class="id" href="([^"]+)"', page)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("viewer") / "events.db", 120)


@pytest.mark.parametrize("page", [*_PAGES, "/sessions/nobody", "/nowhere", "/static/viewer.js"])
def test_every_answer_forbids_what_is_not_needed(look: Look, store: Path, page: str) -> None:
    answer = look(store).get(page)
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    assert "unsafe" not in CONTENT_POLICY
    assert "http" not in CONTENT_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    # The policy would block them in a browser; here it is seen that nothing relies on them.
    assert not re.search(r"<style|style=|<script>|\son\w+=|https?://(?!127)", answer.text) or page.startswith("/static")


def test_sessions_are_listed_newest_first_and_by_pages(look: Look, store: Path) -> None:
    client = look(store)
    page = client.get("/").text
    seen = _links(page)
    while following := re.search(r'href="([^"]+)" rel="next"', page):
        page = client.get(unescape(following[1])).text
        seen += _links(page)
    ids = [e.session_id for e in many_events(120) if e.event_type == "llm.rag.query"]
    assert seen == [f"/sessions/{one}" for one in reversed(ids)]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("status=error", {"error"}),
        ("status=ok&retriever=wiki", {"ok"}),
        ("latency_min=100000", set()),
        ("grounding_max=0.6", {"ok"}),
        ("range=1h", set()),
        ("since=2026-01-01T00:05&until=2026-01-01T00:05&status=ok", {"ok"}),
    ],
)
def test_the_address_is_the_filter(look: Look, store: Path, query: str, shown: set[str]) -> None:
    page = look(store).get(f"/sessions?{query}").text
    statuses = set(re.findall(r'<span class="status (\w+)', page))
    assert statuses == shown
    assert ("No session matches" in page) == (not shown)


@pytest.mark.parametrize(
    "query",
    [
        "status=perfect",
        "grounding_min=2",
        "latency_max=nan",
        "since=soon",
        "digest=abc",
        "after=!!",
        "sort=name",
        "range=1y",
    ],
)
def test_what_cannot_be_filtered_by_is_said_and_left_out(look: Look, store: Path, query: str) -> None:
    page = look(store).get(f"/sessions?{query}").text
    assert "Left out of the filter" in page
    assert len(_links(page)) == 50


def test_a_session_has_its_stages_chunks_and_ids(look: Look, store: Path) -> None:
    client = look(store)
    page = client.get(_links(client.get("/sessions?status=ok").text)[0]).text
    assert re.findall(r'<span class="stage">(\w+)', page) == [
        "query", "retrieval", "rerank", "generation", "evaluation", "summary",
    ]  # fmt: skip
    assert page.count('<span class="yes">used</span>') == 2
    assert "3 of 4 claims supported" in page
    assert "▲" in page
    assert page.count('class="copy"') >= 7


def test_exports_are_what_the_standards_say(look: Look, store: Path) -> None:
    client = look(store)
    link = _links(client.get("/sessions?status=ok").text)[0]
    ocsf = client.get(f"{link}/export/ocsf")
    assert [json.loads(line)["class_uid"] for line in ocsf.text.splitlines()] == [6005, 6003]
    assert ocsf.headers["content-disposition"].startswith('attachment; filename="')
    assert len(client.get(f"{link}/export/otlp").json()["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 6
    refused = client.get(f"{link}/export/transparency")
    assert refused.status_code == 409
    assert "retrieval_strategy=" in unescape(refused.text), "the record is refused, and it is said what is missing"
    assert client.get(f"{link}/export/pdf").status_code == 404


def test_a_bundle_can_be_taken_away(look: Look, tmp_path: Path) -> None:
    with capture(sinks=[SqliteSink(tmp_path / "events.db")]):
        session_id = sf_rag.trace_query("q")
        sf_rag.trace_retrieval(
            session_id,
            [{"id": "a", "score": 0.5}],
            latency_ms=3,
            retrieval_strategy="single_pass",
            ranking_method="cosine",
        )
        sf_rag.end_session(session_id)
        sf_rag.flush()
    client = look(tmp_path / "events.db")
    bundle = client.get(f"/sessions/{session_id}/export/tez")
    assert "tez.md" in zipfile.ZipFile(BytesIO(bundle.content)).namelist()
    assert client.get(f"/sessions/{session_id}/export/transparency").json()["chunks_retrieved"] == 1


@pytest.mark.parametrize("key", [None, "a key of more than thirty-two bytes, for tests"])
def test_a_question_is_found_by_its_digest_and_never_shown(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, key: str | None
) -> None:
    question = "Wie hoch ist der Fernsehturm, and who may climb it? ✓"
    settings = {"hash_key": key} if key else {}
    with capture(sinks=[SqliteSink(tmp_path / "events.db")], **settings):
        session_id = sf_rag.trace_query(question)
        sf_rag.trace_query("another one")
        sf_rag.flush()
    if key:
        monkeypatch.setenv("SPANFORGE_HASH_KEY", key)
    caplog.set_level(0)
    client = look(tmp_path / "events.db")
    answer = client.post("/search", data={"query": question})
    assert _links(answer.text) == [f"/sessions/{session_id}"]
    assert [step.status_code for step in answer.history] == [303]
    assert str(answer.url).endswith(f"digest={Hasher(key.encode() if key else None).digest(question)}")
    for place in (answer.text, str(answer.url), str(answer.history[0].headers), caplog.text):
        assert not find_canary(question, place)
    assert "The question has to be the same" in client.post("/search", data={"query": question.lower()}).text


@pytest.mark.parametrize("suffix", [".db", ".jsonl"])
def test_hostile_values_are_shown_as_they_are(look: Look, tmp_path: Path, suffix: str) -> None:
    long = "x" * 10_000
    ids = [_HOSTILE, long, "../..", "a/b?c#d", "\ud800", ".", " "]
    stored = [
        item
        for number, name in enumerate(ids)
        for item in (
            event(number * 3, session_id=name, retriever_name=name.replace("\ud800", "?"), org_id=""),
            event(
                number * 3 + 1, session_id=name, event_type="llm.rag.retrieved",
                chunks=[{"chunk_id": name, "score": 0.1, "source": name}], status="error", error_message=name,
            ),
            event(
                number * 3 + 2, session_id=name, event_type="llm.rag.generated", model=name, status="error",
                error_message=name,
            ),
        )
    ]  # fmt: skip
    stored = [
        replace(item, payload={k: v for k, v in item.payload.items() if k not in {"number", "org_id"}})
        for item in stored
    ]
    client = look(write(tmp_path / f"events{suffix}", stored))
    listed = client.get("/sessions").text
    links = _links(listed)
    assert len(links) == len(ids) - 1, "all but the one that no payload takes"
    assert "3 damaged" in listed
    assert len(set(links)) == len(links)
    pages = [listed, *(client.get(link) for link in links), client.get("/overview"), client.get("/delivery")]
    for page in pages[1:]:
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "\u202e" not in re.sub(r'="[^"]*"', "", page.text), "in what forms send back, and nowhere in the text"
        assert "95018" not in page.text, "no template runs in a value"
    for link in links:
        for form in ("ocsf", "otlp"):
            answer = client.get(f"{link}/export/{form}")
            assert answer.status_code == 200
            assert re.fullmatch(r'attachment; filename="[a-z0-9.-]+"', answer.headers["content-disposition"])


@pytest.mark.parametrize("page", _PAGES)
def test_a_store_that_is_not_there_yet_is_waited_for(look: Look, tmp_path: Path, page: str) -> None:
    client = look(tmp_path / "later.db", read=False)
    assert client.get(page).status_code == 200
    assert "Nothing has been stored yet" in client.get("/sessions").text
    fill(tmp_path / "later.db", 2)
    client.app.state.shell.store.catch_up()
    assert len(_links(client.get("/sessions").text)) == 2


def test_damage_is_counted_and_the_rest_shown(look: Look, tmp_path: Path) -> None:
    lines = [e.encode() for e in many_events(2)]
    unsound = replace(next(many_events(1)), event_id="0" * 26, payload={"session_id": "s", "query_hash": 7})
    lines[1:1] = [b"not JSON", b'{"half": ', b"\xff\xfe", unsound.encode()]
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    client = look(tmp_path / "events.jsonl")
    page = client.get("/sessions").text
    assert "4 damaged entries left out" in page
    assert len(_links(page)) == 2
    assert "not JSON" in client.get("/delivery").text


@pytest.mark.parametrize(
    "content", [b"SQLite format 3\0 and then nothing of the kind" * 40, b"\x1f\x8b\x08 cut", b"\0" * 900 + b"\n"]
)
def test_a_file_of_something_else_is_said_to_be_damaged(look: Look, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "events.db").write_bytes(content)
    client = look(tmp_path / "events.db")
    for page in _PAGES:
        answer = client.get(page)
        assert answer.status_code == 200
        assert "damaged" in answer.text


def test_a_store_that_is_damaged_is_one_sentence(look: Look, tmp_path: Path) -> None:
    path = fill(tmp_path / "events.db", 20)
    with closing(sqlite3.connect(path)) as connection:
        [(size,)] = connection.execute("PRAGMA page_size").fetchall()
        roots = connection.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 0").fetchall()
    data = bytearray(path.read_bytes())
    for (page,) in roots:  # all but what says which tables there are
        data[(page - 1) * size : page * size] = b"\x7f" * size
    path.write_bytes(data)
    client = look(path, read=False)
    for page in _PAGES:
        answer = client.get(page)
        assert answer.status_code == 503
        assert answer.text.startswith("The store cannot be read now (SQLITE_CORRUPT)")


def test_a_store_that_somebody_locks_is_said_to_be_locked(look: Look, tmp_path: Path) -> None:
    path = fill(tmp_path / "events.db", 3)
    client = look(path, read=False)
    assert len(_links(client.get("/sessions").text)) == 3
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        answer = client.get("/sessions")
    assert (answer.status_code, answer.text[:31]) == (503, "The store cannot be read now (S")
    assert "SQLITE_BUSY" in answer.text
    assert len(_links(client.get("/sessions").text)) == 3


def test_a_last_line_without_an_end_is_said_to_be_there(look: Look, tmp_path: Path) -> None:
    path = write(tmp_path / "events.jsonl", many_events(1))
    with path.open("ab") as file:
        file.write(b'{"half": ')
    page = look(path).get("/delivery").text
    assert "9 bytes" in page
    assert "damaged" not in page.lower().partition("what the store tells")[0]


def test_events_that_are_gone_are_said_to_be(look: Look, tmp_path: Path) -> None:
    path = fill(tmp_path / "events.db", 2)
    client = look(path)
    [second, first] = _links(client.get("/sessions").text)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM events WHERE seq <= 2")
        assert "2 of its events are gone from the store" in client.get(first).text
        connection.execute("DELETE FROM events WHERE seq > 6")
    assert client.get(second).status_code == 404
    assert _links(client.get("/sessions").text) == [first]


def test_a_store_of_an_older_shape_is_shown_and_left_as_it_is(look: Look, tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in (*MIGRATIONS[0], "PRAGMA user_version = 1"):
            connection.execute(statement)
        connection.executemany(
            "INSERT INTO events (event_id, event_type, timestamp, session_id, line) VALUES (?, ?, ?, ?, ?)",
            [(e.event_id, e.event_type, e.timestamp, e.session_id, e.encode().decode()) for e in many_events(2)],
        )
    client = look(path)
    links = _links(client.get("/sessions").text)
    assert len(links) == 2
    assert "6005" in client.get(f"{links[0]}/export/ocsf").text
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    write(path, events(1, session_id="written-later"))
    assert "written-later" in client.get("/sessions").text, "a writer has brought it to today's shape"


def test_live_figures_follow_the_store(look: Look, tmp_path: Path) -> None:
    client = look(fill(tmp_path / "events.db", 1), read=False)
    while not (before := client.get("/live").json())["complete"]:
        pass
    assert client.get("/live").json() == before
    write(tmp_path / "events.db", events(3, session_id="new"))
    while client.get("/live").json()["stamp"] == before["stamp"]:
        pass
    assert "new" in client.get("/sessions").text


def test_a_rotated_file_goes_on_as_the_same_store(look: Look, tmp_path: Path) -> None:
    path = write(tmp_path / "events.jsonl", many_events(1))
    client = look(path)
    path.rename(tmp_path / "events.jsonl.1")
    write(path, list(many_events(2))[6:])
    client.app.state.shell.store.catch_up()
    links = _links(client.get("/sessions").text)
    assert len(links) == 2
    assert all(client.get(link).status_code == 200 for link in links)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "10.0.0.1:80"])
def test_only_this_machine_is_answered(look: Look, store: Path, host: str) -> None:
    assert look(store).get("/sessions", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8765", "[::1]:80"])
def test_this_machine_has_several_names(look: Look, store: Path, host: str) -> None:
    assert look(store).get("/sessions", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_forms_of_other_sites_are_refused(look: Look, store: Path, headers: dict[str, str]) -> None:
    assert look(store).post("/search", data={"query": "q"}, headers=headers).status_code == 403


def test_forms_have_a_limit(look: Look, store: Path) -> None:
    client = look(store)
    assert client.post("/search", data={"query": "q" * 70_000}).status_code == 413
    assert client.post("/search", content=b"\xff").status_code == 400
    assert client.get("/search").status_code == 405


def test_pages_work_below_a_path(look: Look, store: Path) -> None:
    inner = create_viewer(store)
    inner.state.shell.store.catch_up()
    client = TestClient(Starlette(routes=[Mount("/deep/ui", inner)]), base_url="http://127.0.0.1")
    page = client.get("/deep/ui/").text
    links = re.findall(r'(?:href|src|action|data-live)="([^"#]+)"', page)
    assert len(links) > 60
    assert all(link.startswith("/deep/ui/") for link in links)
    assert all(client.get(unescape(link)).status_code == 200 for link in links if "search" not in link)
    inner.state.close()


def test_ledgers_are_those_of_this_process(look: Look, store: Path) -> None:
    sink = MemorySink()
    with capture(sinks=[sink]):
        sf_rag.trace_query("q")
        sf_rag.flush()
        page = look(store).get("/delivery").text
    assert f"<bdi>{sink.name}</bdi>" in page
    assert "accepted = delivered + failed + dropped + pending" in page


def test_a_long_session_is_cut_and_says_so(look: Look, tmp_path: Path) -> None:
    client = look(
        write(
            tmp_path / "events.db", [replace(e, payload={"session_id": "s1", "query_hash": ""}) for e in events(2_100)]
        )
    )
    page = client.get("/sessions/s1").text
    assert "100 more are stored" in page
    assert page.count('class="stage"') == 2_000
