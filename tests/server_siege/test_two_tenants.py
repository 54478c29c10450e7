"""Two organisations do anything in any order: nobody ever meets a document, id, name or count hidden from them.

Every source has a word of its own that stands in its name and its texts. Every answer that anybody gets is looked
through for the words, ids and documents of all sources hidden from them, and for jobs that are not theirs; at the end,
the log, the events and the figures for every word there was.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.api import QUESTION, Api, running
from support.overhearing import overhearing

from spanforge.reference import DataSource
from spanforge.reference.models import Visibility

if TYPE_CHECKING:
    from collections.abc import Callable

    from httpx import Response

Who = tuple[str, str]
Call = tuple[str, str, dict[str, Any] | None]

ORGS = ("north", "south")
USERS = ("ann", "bob", "cleo")
_UNKNOWN = "0" * 26
_SAME = {"X-Request-Id": "same-request-id"}
_UNEQUAL = {"sessionId", "latenciesMs"}
"""What two answers to one question may differ in: whose run it was, and how long it took."""
_people = st.tuples(st.sampled_from(ORGS), st.sampled_from(USERS))
_roles = st.sampled_from([frozenset(some) for some in ((), ("auditor",), ("pilot",), ("auditor", "pilot"))])
_teams = st.sampled_from([frozenset(some) for some in ((), ("tides",), ("winds",), ("tides", "winds"))])


@dataclass(frozen=True)
class Person:
    """Someone as their key says."""

    org: str
    name: str
    roles: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Shared:
    """With whom a source is shared."""

    visibility: str
    roles: frozenset[str]
    teams: frozenset[str]
    users: frozenset[str]

    def reaches(self, person: Person) -> bool:
        """The contract's table, written once more."""
        return {
            "public": True,
            "role": bool(person.roles & self.roles),
            "team": bool(person.teams & self.teams),
            "private": person.name in self.users,
            "personal": False,
        }[self.visibility]


_sharing = st.builds(
    Shared,
    st.sampled_from([one.value for one in Visibility]),
    _roles.filter(bool),
    _teams.filter(bool),
    st.sampled_from([frozenset({name}) for name in USERS]),
)


@dataclass
class Kept:
    """A source as the model knows it."""

    org: str
    owner: str
    word: str
    shared: Shared
    texts: dict[str, str] = field(default_factory=dict)
    gone: bool = False

    def seen_by(self, person: Person) -> bool:
        if self.gone or person.org != self.org:
            return False
        return person.name == self.owner or self.shared.reaches(person)


class Walls(RuleBasedStateMachine):
    """Three people in each of two organisations, by the same names; the model knows what each may see."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        home = Path(self._stack.enter_context(TemporaryDirectory()))
        self._overheard = self._stack.enter_context(overhearing())
        self._api: Api = self._stack.enter_context(running(home))
        self._people = {(org, name): Person(org, name) for org in ORGS for name in USERS}
        self._keys = {who: self._key(person) for who, person in self._people.items()}
        self._metrics = self._api.key("ops", "ops", ["metrics"])
        self._sources: dict[str, Kept] = {}
        self._jobs: dict[str, tuple[Who, str]] = {}
        self._number = 0

    def teardown(self) -> None:
        try:
            words = [kept.word for kept in self._sources.values()]
            figures = self._api.client.get("/metrics", headers=self._metrics).text
            assert not [one for one in (*words, *self._sources, *self._jobs) if one in figures]
            if self._sources:
                self._overheard.assert_silent_about(*words, QUESTION)
        finally:
            self._stack.close()

    # --- what everything goes through ---

    def _key(self, person: Person) -> dict[str, str]:
        return self._api.key(person.name, person.org, ["editor", *person.roles], person.teams)

    def _ask(self, who: Who, method: str, path: str, body: dict[str, Any] | None = None) -> Response:
        answer = self._api.client.request(method, f"/api/rag{path}", json=body, headers={**self._keys[who], **_SAME})
        assert answer.status_code < 500
        said = answer.text + str(answer.headers)
        for name, kept in self._sources.items():
            if not kept.seen_by(self._people[who]):
                assert not [one for one in (name, kept.word, *kept.texts) if one in said]
        for job in self._jobs:
            assert self._may_follow(who, job) or job not in said
        return answer

    def _alike(self, who: Who, hidden: str, call: Callable[[str], Call]) -> Response:
        """Ask for a hidden id and for one that never was: the answers are the same to the last byte."""
        there, nowhere = (self._ask(who, *call(name)) for name in (hidden, _UNKNOWN))
        assert there.status_code == nowhere.status_code
        assert _comparable(there) == _comparable(nowhere)
        assert _head(there) == _head(nowhere)
        return there

    def _may_follow(self, who: Who, job: str) -> bool:
        """A job is its starter's alone, and goes with its source."""
        starter, source = self._jobs[job]
        return starter == who and not self._sources[source].gone

    def _visible(self, who: Who) -> set[str]:
        return {name for name, kept in self._sources.items() if kept.seen_by(self._people[who])}

    def _drawn_source(self, data: st.DataObject) -> tuple[str, Kept]:
        there = [name for name, kept in self._sources.items() if not kept.gone]
        name = data.draw(st.sampled_from(there))
        return name, self._sources[name]

    # --- what people do ---

    @initialize(shared=st.tuples(_sharing, _sharing))
    def begin(self, shared: tuple[Shared, Shared]) -> None:
        """Something to hide in each organisation, so that every later step has something to find."""
        for org in ORGS:
            for name, one in zip(USERS, shared, strict=False):
                self._ingested(self._created((org, name), one), cancelled=False)

    @rule(who=_people, shared=_sharing)
    def create(self, who: Who, shared: Shared) -> None:
        self._created(who, shared)

    def _created(self, who: Who, shared: Shared) -> str:
        self._number += 1
        word = f"quitte{self._number:03}zwetschge{who[0]}"
        body = {"name": f"Notes {word}", "visibility": shared.visibility}
        body |= {"roles": sorted(shared.roles), "teams": sorted(shared.teams), "users": sorted(shared.users)}
        made = self._ask(who, "POST", "/sources", body)
        assert made.status_code == 201, made.text
        source = made.json()["id"]
        self._sources[source] = Kept(who[0], who[1], word, shared)
        return source

    @precondition(lambda self: any(not kept.gone for kept in self._sources.values()))
    @rule(data=st.data(), shared=_sharing)
    def share_otherwise(self, data: st.DataObject, shared: Shared) -> None:
        name, kept = self._drawn_source(data)
        source = DataSource(
            data_source_id=name,
            org_id=kept.org,
            owner_id=kept.owner,
            name=f"Notes {kept.word}",
            visibility=Visibility(shared.visibility),
            roles=shared.roles,
            teams=shared.teams,
            user_ids=shared.users,
        )
        # The contract has no route for it: it is done by whoever runs the server, in its process.
        with self._api.service.tenants.use(kept.org) as tenant:
            tenant.pipeline.catalog.put_source(source)
        kept.shared = shared

    @rule(who=_people, roles=_roles, teams=_teams)
    def change_job(self, who: Who, roles: frozenset[str], teams: frozenset[str]) -> None:
        old = self._keys[who]
        assert self._api.service.keys.revoke(old["Authorization"].split("_")[1])
        assert self._api.client.get("/api/rag/sources", headers=old).status_code == 401
        self._people[who] = Person(*who, roles, teams)
        self._keys[who] = self._key(self._people[who])

    @precondition(lambda self: any(not kept.gone for kept in self._sources.values()))
    @rule(data=st.data(), cancelled=st.booleans())
    def ingest(self, data: st.DataObject, cancelled: bool) -> None:
        self._ingested(self._drawn_source(data)[0], cancelled=cancelled)

    def _ingested(self, name: str, *, cancelled: bool) -> None:
        kept = self._sources[name]
        who = kept.org, kept.owner
        self._number += 1
        # Ids of documents stand in the events, as sources of what was found; names and texts never do.
        document = f"box-{self._number:03}-{kept.org}"
        text = f"The capital of France, says {kept.word}, is kept in {document}."
        body = {"dataSourceId": name, "documents": [{"documentId": document, "text": text}]}
        sent = self._ask(who, "POST", "/ingest", body)
        assert sent.status_code == 202, sent.text
        job = sent.json()["jobId"]
        self._jobs[job] = who, name
        if cancelled:
            assert self._ask(who, "DELETE", f"/ingest/{job}").status_code == 200
        state = self._api.ended(self._keys[who], job)
        assert state["status"] == "completed" or (cancelled and state["reason"] == "CANCELLED")
        if state["indexed"]:
            kept.texts[document] = text

    @precondition(lambda self: any(not kept.gone for kept in self._sources.values()))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name, kept = self._drawn_source(data)
        assert self._ask((kept.org, kept.owner), "DELETE", f"/sources/{name}").status_code == 204
        kept.gone = True

    @rule(who=_people)
    def search(self, who: Who) -> None:
        visible = self._visible(who)
        found = self._ask(who, "POST", "/retrieve", {"query": QUESTION, "topK": 50}).json()
        if not visible:
            assert found["code"] == "NO_ACCESSIBLE_SOURCES"
            return
        expected = {text for name in visible for text in self._sources[name].texts.values()}
        assert {one["text"] for one in found["documents"]} == expected
        assert found["totalFound"] == len(expected)
        self._ask(who, "POST", "/query", {"query": QUESTION})
        self._ask(who, "POST", "/query", {"query": QUESTION, "stream": True})

    @rule(who=_people, data=st.data())
    def hidden_sources_are_unknown_sources(self, who: Who, data: st.DataObject) -> None:
        hidden = [name for name in self._sources if name not in self._visible(who)]
        note, seen = {"documentId": "a", "text": "A note."}, sorted(self._visible(who))
        # One of the own organisation and one of the other: what keeps them apart is not the same.
        for near in (True, False):
            names = [name for name in hidden if (self._sources[name].org == who[0]) is near]
            if not names:
                continue
            name = data.draw(st.sampled_from(names))
            deleted = self._alike(who, name, lambda one: ("DELETE", f"/sources/{one}", None))
            sent = self._alike(who, name, lambda one: ("POST", "/ingest", {"dataSourceId": one, "documents": [note]}))
            assert deleted.status_code == sent.status_code == 404
            alone = self._alike(who, name, lambda one: ("POST", "/retrieve", {"query": QUESTION, "dataSources": [one]}))
            assert (alone.status_code, alone.json()["code"]) == (403, "NO_ACCESSIBLE_SOURCES")
            for path in ("/retrieve", "/query"):
                self._alike(
                    who, name, lambda one, p=path: ("POST", p, {"query": QUESTION, "dataSources": [one, *seen]})
                )

    @rule(who=_people)
    def only_own_jobs_are_known(self, who: Who) -> None:
        for job in self._jobs:
            for method in ("GET", "DELETE"):
                if self._may_follow(who, job):
                    assert self._ask(who, method, f"/ingest/{job}").status_code == 200
                else:
                    answer = self._alike(who, job, lambda one, m=method: (m, f"/ingest/{one}", None))
                    assert answer.status_code == 404

    @invariant()
    def lists_are_the_models(self) -> None:
        for who in self._keys:
            listed = self._ask(who, "GET", "/sources").json()["sources"]
            visible = self._visible(who)
            assert {one["id"] for one in listed} == visible
            assert {one["name"] for one in listed} == {f"Notes {self._sources[name].word}" for name in visible}


def _comparable(answer: Response) -> object:
    if answer.status_code != 200:
        return answer.content
    return {key: value for key, value in answer.json().items() if key not in _UNEQUAL}


def _head(answer: Response) -> dict[str, str]:
    unequal = {"x-spanforge-session", "content-length"} if answer.status_code == 200 else set[str]()
    return {name: value for name, value in answer.headers.items() if name not in unequal}


TestWalls = Walls.TestCase
TestWalls.settings = settings(max_examples=2, stateful_step_count=20)


@pytest.mark.slow
@pytest.mark.timeout(600)
class TestManyWalls(Walls.TestCase):
    """The same, at length."""

    settings = settings(max_examples=8, stateful_step_count=20)
