"""The page to ask one's documents: as oneself, with passages that open, and thumbs that are recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support.api import LOOPBACK, PARIS, QUESTION, Api, running

from spanforge.sdk import configure, sf_rag
from spanforge.testing import find_canary
from spanforge.viewer.guards import CONTENT_POLICY

HIDDEN = "The vault of quillaja-7731 opens at nine."


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An API with a public source, and a personal one of Ann's."""
    home: Path = tmp_path_factory.mktemp("ask") / "home"
    with running(home) as opened:
        ann = opened.key("ann")
        opened.ingest(ann, opened.source(ann), {"france.md": PARIS})
        opened.ingest(ann, opened.source(ann, visibility="personal"), {"vault.md": HIDDEN})
        yield opened


@pytest.fixture(autouse=True)
def _traced(api: Api, spanforge_events: object) -> None:
    configure(sinks=[f"sqlite:{api.service.events}"])


def _enter(api: Api, user: str, *roles: str) -> TestClient:
    """Sign in with a browser of one's own."""
    client = TestClient(api.app, base_url=LOOPBACK)
    key = api.key(user, roles=roles)["Authorization"].removeprefix("Bearer ")
    assert client.post("/ui/sign-in", data={"credential": key}).status_code == 200
    return client


def _token(page: str) -> str:
    found = re.search(r'name="token" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def _ask(client: TestClient, question: str) -> str:
    token = _token(client.get("/ui/ask").text)
    answer = client.post("/ui/ask", data={"token": token, "question": question})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    return answer.text


def _passages(page: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'class="cite" href="([^"]+)"', page)]


def test_an_answer_leads_to_the_passages_it_cites(api: Api) -> None:
    bob = _enter(api, "bob", "reader")
    page = _ask(bob, QUESTION)
    assert "Paris" in page
    [link] = _passages(page)
    shown = bob.get(link).text
    assert "It lies on the river Seine." in shown
    assert not re.search(r"<script(?! src=)|onclick=|style=", page + shown)


def test_an_answer_stays_until_one_leaves_it(api: Api) -> None:
    admin = _enter(api, "eve", "admin")
    assert "data-live" in admin.get("/ui/sessions").text
    page = _ask(admin, QUESTION)
    assert "data-live" not in page, "a page that follows the store would be fetched anew, without its answer"
    assert 'target="_blank"' in page


def test_one_asks_as_oneself(api: Api) -> None:
    ann, bob = _enter(api, "ann", "editor"), _enter(api, "bob", "reader")
    question = "When does the vault of quillaja-7731 open?"
    [link] = _passages(_ask(ann, question))
    assert "opens at nine" in ann.get(link).text
    assert "nine" not in _ask(bob, question)
    hidden, nowhere = bob.get(link), bob.get("/ui/passages/nothing")
    assert hidden.status_code == nowhere.status_code == 404
    assert hidden.text == nowhere.text


def test_a_thumb_becomes_feedback_on_ones_own_session(api: Api) -> None:
    bob = _enter(api, "bob", "reader")
    page = _ask(bob, QUESTION)
    session = re.search(r'name="session" value="([^"]+)"', page)
    assert session is not None
    fields = {"token": _token(page), "session": session[1], "rating": "thumbs_up"}
    assert "was recorded" in bob.post("/ui/ask/feedback", data=fields).text
    sf_rag.flush()
    stored = b"".join(path.read_bytes() for path in api.home.glob("events.sqlite*"))
    assert b"thumbs_up" in stored
    assert not find_canary(QUESTION, stored)
    other = _enter(api, "cem", "reader")
    theirs = {**fields, "token": _token(other.get("/ui/ask").text)}
    assert other.post("/ui/ask/feedback", data=theirs).status_code == 404
    assert bob.post("/ui/ask/feedback", data={**fields, "token": "x"}).status_code == 403


@pytest.mark.parametrize("page", ["sessions", "overview", "delivery", "sessions/any", ""])
def test_whoever_may_only_ask_is_led_there(api: Api, page: str) -> None:
    answer = _enter(api, "bob", "reader").get(f"/ui/{page}")
    assert answer.url.path == "/ui/ask"


def test_whoever_may_only_look_does_not_ask(api: Api) -> None:
    viewer = _enter(api, "vic", "viewer")
    assert viewer.get("/ui/ask").status_code == 404
    assert 'href="/ui/ask"' not in viewer.get("/ui/sessions").text
    assert 'href="/ui/ask"' in _enter(api, "eve", "admin").get("/ui/sessions").text


def test_the_docs_need_no_other_host(api: Api) -> None:
    page = api.client.get("/docs")
    assert page.status_code == 200
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page.text)
    assert "<script" not in page.text
    assert "/api/rag/sessions/{id}/feedback" in page.text
