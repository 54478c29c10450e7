"""Wrong credentials are counted by address; whoever sends right ones, and everybody elsewhere, does not notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from support.api import LOOPBACK, Api, bearer, running

from spanforge.server.auth.credentials import place_of
from spanforge.server.middleware import throttle
from spanforge.server.middleware.throttle import Buckets

MOST = 5
WRONG = bearer("sf_0123456789abcdef_" + "A" * 43)
HERE, ELSEWHERE = "203.0.113.7", "203.0.113.8"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path / "home", wrong_credentials_per_minute=MOST) as api:
        yield api


def _statuses(api: Api, address: str, headers: dict[str, str], times: int = 1) -> list[int]:
    client = TestClient(api.app, base_url=LOOPBACK, client=(address, 1_234), raise_server_exceptions=False)
    return [client.get("/api/rag/sources", headers=headers).status_code for _ in range(times)]


def test_an_address_with_many_wrong_keys_has_to_wait_and_others_have_not(guarded: Api) -> None:
    right, fresh = guarded.key(), guarded.key("bob")
    assert _statuses(guarded, HERE, right) == [200]
    assert _statuses(guarded, HERE, WRONG, MOST + 2) == [401] * MOST + [429] * 2
    # A key nobody has seen yet is not looked at; one that was right before is, and so is every key from elsewhere.
    assert _statuses(guarded, HERE, fresh) == [429]
    assert _statuses(guarded, HERE, right, 3) == [200] * 3
    assert _statuses(guarded, ELSEWHERE, fresh) == [200]
    assert _statuses(guarded, HERE, {}) == [401]


def test_it_is_told_how_long_to_wait(guarded: Api) -> None:
    for _ in range(MOST):
        guarded.client.get("/api/rag/sources", headers=WRONG)
    refused = guarded.client.get("/api/rag/sources", headers=WRONG)
    assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
    assert 1 <= int(refused.headers["retry-after"]) <= 60 / MOST


def test_requests_without_a_credential_and_right_ones_are_not_counted(guarded: Api) -> None:
    right = guarded.key()
    assert _statuses(guarded, HERE, {}, 3 * MOST) == [401] * 3 * MOST
    assert _statuses(guarded, HERE, right, 3 * MOST) == [200] * 3 * MOST
    assert _statuses(guarded, HERE, WRONG) == [401]


def test_a_key_that_was_revoked_is_a_wrong_one(guarded: Api) -> None:
    key = guarded.key()
    assert _statuses(guarded, HERE, key) == [200]
    guarded.service.keys.revoke(key["Authorization"].split("_")[1])
    assert _statuses(guarded, HERE, key, MOST) == [401] * MOST
    assert _statuses(guarded, HERE, WRONG) == [429]


def test_signing_in_counts_with_the_rest(guarded: Api) -> None:
    def sign_in(credential: str) -> int:
        return guarded.client.post("/ui/sign-in", data={"credential": credential}, follow_redirects=False).status_code

    right = guarded.key("ann", "north", ["viewer"])["Authorization"].removeprefix("Bearer ")
    assert sign_in(right) == 303
    assert [sign_in("sf_wrong") for _ in range(MOST + 1)] == [401] * MOST + [429]
    assert sign_in(right) == 429
    assert guarded.client.get("/api/rag/sources", headers=WRONG).status_code == 429


def test_no_header_beside_the_form_lets_a_guess_through(guarded: Api) -> None:
    right = guarded.key()
    assert _statuses(guarded, HERE, right) == [200]
    client = TestClient(guarded.app, base_url=LOOPBACK, client=(HERE, 1_234), follow_redirects=False)
    guesses = [client.post("/ui/sign-in", data={"credential": "sf_no"}, headers=right) for _ in range(MOST + 1)]
    assert [guess.status_code for guess in guesses] == [401] * MOST + [429]


@pytest.mark.parametrize("method", ["HEAD", "GET", "PUT", "DELETE", "OPTIONS"])
def test_only_a_post_is_a_form(guarded: Api, method: str) -> None:
    key = guarded.key(roles=["viewer"])["Authorization"].removeprefix("Bearer ")
    client = TestClient(guarded.app, base_url=LOOPBACK, client=(HERE, 1_234), follow_redirects=False)
    said = [client.request(method, "/ui/sign-in", data={"credential": one}) for one in (key, "sf_no")]
    assert said[0].status_code == said[1].status_code != 303


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("a socket", "a socket"),
    ],
)
def test_a_place_is_an_address_or_a_household(host: str, place: str) -> None:
    assert place_of({"client": (host, 1)}) == place
    assert place_of({"client": None}) == place_of({}) == ""


@given(st.lists(st.sampled_from("abcdef"), max_size=60))
def test_buckets_never_give_more_than_they_hold_and_stay_few(taken: list[str]) -> None:
    buckets = Buckets(per_minute=0.001, burst=3)
    given_out = dict.fromkeys("abcdef", 0)
    for name in taken:
        if not buckets.wait_s(name):
            buckets.take(name)
            given_out[name] += 1
    assert all(given_out[name] == min(3, taken.count(name)) for name in given_out)


def test_buckets_are_forgotten_beyond_those_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "_REMEMBERED", 2)
    buckets = Buckets(per_minute=0.001, burst=1)
    for name in "abc":
        buckets.take(name)
    assert [bool(buckets.wait_s(name)) for name in "abc"] == [False, True, True]
