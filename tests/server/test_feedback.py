"""Whose opinion of which run is taken, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.api import Api, running
from support.overhearing import overhearing

from spanforge.sdk import configure, sf_rag
from spanforge.testing import find_canary

CANARY = "mirabellenkern-41b7-haselstrauch"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An API that traces to its own store, as `spanforge serve` does."""
    home: Path = tmp_path_factory.mktemp("feedback") / "home"
    with running(home) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _traced(api: Api, spanforge_events: object) -> None:
    configure(sinks=[f"sqlite:{api.service.events}"])


@pytest.fixture
def asked(api: Api) -> str:
    """A session of Ann's."""
    api.source(api.key())
    session = api.query(api.key(), "What is there?").headers["X-Spanforge-Session"]
    sf_rag.flush()
    return session


def _rate(api: Api, headers: dict[str, str], session: str, **body: object):
    return api.client.post(f"/api/rag/sessions/{session}/feedback", json=body, headers=headers)


def test_who_asked_may_rate(api: Api, asked: str) -> None:
    with overhearing() as overheard:
        made = _rate(api, api.key(), asked, rating="thumbs_down", issues=["outdated_info"], comment=CANARY)
        overheard.assert_silent_about(CANARY)
    assert made.status_code == 201
    assert made.json()["sessionId"] == asked
    assert not find_canary(CANARY, made.content)
    sf_rag.flush()
    assert not any(find_canary(CANARY, path.read_bytes()) for path in api.home.glob("events.sqlite*"))


@pytest.mark.parametrize(
    ("who", "status"),
    [
        (("bob", "north", ["editor"]), 404),
        (("bob", "north", ["admin"]), 201),
        (("bob", "north", ["viewer"]), 403),
        (("ann", "south", ["admin"]), 404),
    ],
)
def test_others_may_not_but_for_admins(api: Api, asked: str, who: tuple[str, str, list[str]], status: int) -> None:
    assert _rate(api, api.key(*who), asked, rating="star_4").status_code == status


def test_a_session_that_is_not_there_is_as_one_of_others(api: Api) -> None:
    for session in ("01JDQ7T4M8YB3R8V5J3N2K6XWE", "'; DROP TABLE events; --", CANARY):
        answer = _rate(api, api.key(), session, rating="star_4")
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
        assert not find_canary(CANARY, answer.content)


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "rating"), ({"rating": "fine"}, "rating"), ({"rating": "star_1", "issues": ["x"]}, "issues.0")],
)
def test_what_says_nothing_is_refused(api: Api, asked: str, body: dict[str, object], field: str) -> None:
    answer = _rate(api, api.key(), asked, **body)
    assert (answer.status_code, answer.json()["fields"]) == (422, [field])
