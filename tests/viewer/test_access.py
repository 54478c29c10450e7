"""Signing in, and what one organisation can learn of another: nothing."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from support.many_sessions import many_events
from support.stored import event
from support.viewer import Look, write

from spanforge.sdk import sf_rag
from spanforge.sinks.memory import MemorySink
from spanforge.testing import capture
from spanforge.viewer import create_viewer
from spanforge.viewer.visits import COOKIE, Guest, Visits

_PAGES = ("/sessions", "/overview", "/delivery", "/sessions?retriever=docs", "/live")


class Keys:
    """The credentials of a server: good for an organisation, until revoked."""

    def __init__(self) -> None:
        self.known = {"key-of-acme": "acme", "key-of-globex": "globex", "key-of-nobody": "nobody"}

    async def __call__(self, credential: str) -> Guest | None:
        org = self.known.get(credential)
        return None if org is None else Guest(org)


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A store of two organisations; both have a session called `common`."""
    path = write(tmp_path / "events.db", many_events(7, org="globex", first=50))
    write(path, many_events(3, org="acme"))
    both = [
        _with_org(event(10_000 + number, session_id="common", retriever_name=f"of-{org}"), org)
        for number, org in enumerate(("acme", "globex"))
    ]
    return write(path, [*both, _with_org(event(20_000, session_id="only-globex", retriever_name="secret"), "globex")])


def _with_org(item, org):
    from dataclasses import replace

    payload = {name: value for name, value in item.payload.items() if name != "number"}
    return replace(item, org_id=org, payload=payload)


def _enter(client: TestClient, key: str) -> TestClient:
    assert client.post("/sign-in", data={"credential": key}).status_code == 200
    return client


def _links(page: str) -> list[str]:
    return [unescape(href) for href in re.findall(r'class="id" href="([^"]+)"', page)]


@pytest.mark.parametrize("page", [*_PAGES, "/sessions/common", "/sessions/common/export/ocsf", "/nowhere"])
def test_nobody_sees_anything_without_signing_in(look: Look, shared: Path, keys: Keys, page: str) -> None:
    answer = look(shared, sign_in=keys).get(page, follow_redirects=False)
    assert answer.status_code == (401 if page == "/live" else 303)
    assert "common" not in answer.text
    for other in ("/search", "/sign-out"):
        assert look(shared, sign_in=keys).post(other, data={"query": "q"}).status_code == 401


def test_the_sign_in_page_says_nothing_of_the_store(look: Look, shared: Path, keys: Keys) -> None:
    page = look(shared, sign_in=keys).get("/sessions").text
    assert "API key" in page
    for word in ("events.db", "acme", "globex", "damaged", "Reading"):
        assert word not in page


def test_a_wrong_key_is_refused_and_not_repeated(look: Look, shared: Path, keys: Keys) -> None:
    client = look(shared, sign_in=keys)
    answer = client.post("/sign-in", data={"credential": "a-wrong-key"})
    assert answer.status_code == 401
    assert "a-wrong-key" not in answer.text
    assert not client.cookies


def test_the_cookie_keeps_to_itself(look: Look, shared: Path, keys: Keys) -> None:
    answer = look(shared, sign_in=keys).post("/sign-in", data={"credential": "key-of-acme"}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert "key-of-acme" not in cookie


def test_signing_in_leads_to_where_one_was_going(look: Look, shared: Path, keys: Keys) -> None:
    client = look(shared, sign_in=keys)
    action = unescape(re.search(r'action="([^"]+)"', client.get("/sessions?status=ok").text)[1])
    assert str(client.post(action, data={"credential": "key-of-acme"}).url).endswith("/sessions?status=ok")


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_signing_in_leads_nowhere_else(look: Look, shared: Path, keys: Keys, target: str) -> None:
    client = look(shared, sign_in=keys)
    answer = client.post(
        "/sign-in", params={"next": target}, data={"credential": "key-of-acme"}, follow_redirects=False
    )
    assert answer.headers["location"] == "/sessions"


def test_an_organisation_sees_its_own(look: Look, shared: Path, keys: Keys) -> None:
    acme, globex = (_enter(look(shared, sign_in=keys), f"key-of-{org}") for org in ("acme", "globex"))
    assert len(_links(acme.get("/sessions").text)) == 4
    assert len(_links(globex.get("/sessions").text)) == 9
    assert "of-acme" in acme.get("/sessions/common").text
    assert "of-globex" in globex.get("/sessions/common").text


@pytest.mark.parametrize("query", ["", "?org=globex", "?retriever=secret", "?sort=latency&order=asc", "?id=only"])
def test_no_page_shows_anything_of_another(look: Look, shared: Path, keys: Keys, query: str) -> None:
    acme = _enter(look(shared, sign_in=keys), "key-of-acme")
    for page in ("/sessions", "/overview", "/delivery"):
        text = acme.get(page + query).text
        assert "globex" not in text.replace("org=globex", "")
        assert "only-globex" not in text
        assert "of-globex" not in text
        assert text.count("secret") == (query == "?retriever=secret") * text.count("secret")


def test_what_one_sees_does_not_depend_on_others(look: Look, shared: Path, keys: Keys, tmp_path: Path) -> None:
    alone = write(tmp_path / "alone.db", many_events(3, org="acme"))
    write(alone, [_with_org(event(10_000, session_id="common", retriever_name="of-acme"), "acme")])
    clients = [_enter(look(store, sign_in=keys), "key-of-acme") for store in (shared, alone)]
    for page in (*_PAGES, "/sessions/common", "/sessions/nobody", "/sessions?id=common"):
        first, second = (re.sub(r'name="token" value="[^"]+"', "", client.get(page).text) for client in clients)
        assert first == second, page


@pytest.mark.parametrize("below", ["", "/export/ocsf", "/export/tez", "?org=globex", "/export/otlp?org=globex"])
def test_a_session_of_another_is_one_that_does_not_exist(look: Look, shared: Path, keys: Keys, below: str) -> None:
    globex = _enter(look(shared, sign_in=keys), "key-of-globex")
    acme = _enter(look(shared, sign_in=keys), "key-of-acme")
    assert globex.get("/sessions/only-globex").status_code == 200
    there, nowhere = acme.get(f"/sessions/only-globex{below}"), acme.get(f"/sessions/none-at-all{below}")
    tokens = re.compile(r'name="token" value="[^"]+"')
    assert there.status_code == nowhere.status_code == 404
    assert there.text == nowhere.text or tokens.sub("", there.text) == tokens.sub("", nowhere.text)


def test_a_key_of_another_session_opens_nothing(look: Look, shared: Path, keys: Keys) -> None:
    every = look(shared)
    refs = set(re.findall(r"~[\w-]+", every.get("/sessions").text))
    acme = _enter(look(shared, sign_in=keys), "key-of-acme")
    from spanforge.viewer.queries import ref_of

    assert acme.get(f"/sessions/{ref_of('acme', 'common')}").status_code == 200
    for ref in {*refs, ref_of("globex", "common")}:
        assert acme.get(f"/sessions/{ref}").status_code == 404


def test_ledgers_of_all_are_not_shown_to_one(look: Look, shared: Path, keys: Keys) -> None:
    with capture(sinks=[MemorySink()]):
        sf_rag.end_session(sf_rag.trace_query("q"))
        sf_rag.flush()
        page = _enter(look(shared, sign_in=keys), "key-of-acme").get("/delivery").text
    assert "count the events of every organisation together" in page
    assert "Accepted" not in page


def test_a_revoked_key_ends_the_visit_at_once(look: Look, shared: Path, keys: Keys) -> None:
    client = _enter(look(shared, sign_in=keys), "key-of-acme")
    del keys.known["key-of-acme"]
    assert client.get("/sessions", follow_redirects=False).status_code == 303


def test_forms_need_the_token_of_the_visit(look: Look, shared: Path, keys: Keys) -> None:
    client = _enter(look(shared, sign_in=keys), "key-of-acme")
    token = re.search(r'name="token" value="([^"]+)"', client.get("/sessions").text)[1]
    assert client.post("/search", data={"query": "q"}).status_code == 403
    assert client.post("/search", data={"query": "q", "token": token}).status_code == 200
    assert client.post("/sign-out").status_code == 403
    assert client.post("/sign-out", data={"token": token}).status_code == 200
    assert client.get("/live").status_code == 401


async def test_whoever_signs_in_again_and_again_signs_out_nobody_else(keys: Keys) -> None:
    visits = Visits(keys, most=3)
    other = await visits.begin("key-of-globex")
    for _ in range(5):
        assert await visits.begin("key-of-acme")
    assert len(visits) == 3
    assert await visits.find(other) is not None


async def test_visits_are_bounded_and_expire(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    visits = Visits(keys, most=3)
    tokens = [await visits.begin("key-of-acme") for _ in range(5)]
    assert len(visits) == 3
    assert [await visits.find(token) is not None for token in tokens] == [False, False, True, True, True]
    now = [0.0]
    monkeypatch.setattr("spanforge._clock.monotonic", lambda: now[0])
    fresh = await visits.begin("key-of-acme")
    for _ in range(13):
        now[0] += 3_500
        seen = await visits.find(fresh)
    assert seen is None, "at most twelve hours, however busy"
    assert await visits.find(None) is None
    assert "key-of" not in repr(await visits.find(await visits.begin("key-of-acme")))


def test_the_cookie_belongs_to_the_path_below_which_it_was_given(shared: Path, keys: Keys) -> None:
    inner = create_viewer(shared, sign_in=keys)
    client = TestClient(Starlette(routes=[Mount("/ui", inner)]), base_url="https://rag.example")
    assert str(client.get("/ui/overview").url).endswith("/ui/sign-in?next=%2Foverview")
    answer = client.post("/ui/sign-in", data={"credential": "key-of-acme"}, follow_redirects=False)
    assert "path=/ui" in answer.headers["set-cookie"].lower()
    assert "secure" in answer.headers["set-cookie"].lower()
    assert client.cookies.get(COOKIE)
    assert client.get("/ui/sessions").status_code == 200
    inner.state.close()
