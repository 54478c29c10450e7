"""Two organisations do anything in any order: neither ever meets a document, id, name or count of the other."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.api import Api, running

ORGS = ("north", "south")
_UNKNOWN = "0" * 26
_SAME = {"X-Request-Id": "same-request-id"}
_orgs = st.sampled_from(ORGS)
_users = st.sampled_from(["ann", "bob"])


class Walls(RuleBasedStateMachine):
    """Each organisation has an owner, ann, and a colleague, bob; the model knows what each may see."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        home = Path(self._stack.enter_context(TemporaryDirectory()))
        self._api: Api = self._stack.enter_context(running(home))
        self._keys = {(org, user): self._api.key(user, org) for org in ORGS for user in ("ann", "bob")}
        self._public: dict[str, dict[str, bool]] = {org: {} for org in ORGS}
        self._jobs: dict[str, list[str]] = {org: [] for org in ORGS}
        self._texts: dict[str, dict[str, str]] = {org: {} for org in ORGS}

    def teardown(self) -> None:
        self._stack.close()

    def _visible(self, org: str, user: str) -> set[str]:
        return {name for name, is_public in self._public[org].items() if is_public or user == "ann"}

    @rule(org=_orgs, is_public=st.booleans())
    def create(self, org: str, is_public: bool) -> None:
        visibility = "public" if is_public else "personal"
        made = self._api.source(self._keys[org, "ann"], visibility=visibility, name=f"Notes of {org}")
        self._public[org][made] = is_public

    @precondition(lambda self: any(self._public.values()))
    @rule(data=st.data())
    def ingest(self, data: st.DataObject) -> None:
        org = data.draw(st.sampled_from([org for org in ORGS if self._public[org]]))
        source = data.draw(st.sampled_from(sorted(self._public[org])))
        text = f"The capital of France, says {org}, is kept in {source}."
        job = self._api.ingest(self._keys[org, "ann"], source, {f"{org}-note": text})
        assert job["status"] == "completed"
        self._jobs[org].append(job["jobId"])
        self._texts[org][source] = text

    @precondition(lambda self: any(self._public.values()))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        org = data.draw(st.sampled_from([org for org in ORGS if self._public[org]]))
        source = data.draw(st.sampled_from(sorted(self._public[org])))
        gone = self._api.client.delete(f"/api/rag/sources/{source}", headers=self._keys[org, "ann"])
        assert gone.status_code == 204
        del self._public[org][source]
        self._texts[org].pop(source, None)

    @rule(org=_orgs, user=_users)
    def revoke(self, org: str, user: str) -> None:
        key = self._keys[org, user]
        assert self._api.service.keys.revoke(key["Authorization"].split("_")[1])
        assert self._api.client.get("/api/rag/sources", headers=key).status_code == 401
        self._keys[org, user] = self._api.key(user, org)

    @rule(org=_orgs, user=_users)
    def search(self, org: str, user: str) -> None:
        found = self._api.retrieve(self._keys[org, user])
        visible = self._visible(org, user)
        if not visible:
            assert found.json()["code"] == "NO_ACCESSIBLE_SOURCES"
            return
        expected = {text for source, text in self._texts[org].items() if source in visible}
        assert {one["text"] for one in found.json()["documents"]} == expected
        assert found.json()["totalFound"] == len(expected)
        answer = self._api.query(self._keys[org, user]).text
        for other in ORGS:
            for source, text in self._texts[other].items():
                if source not in visible:
                    assert source not in answer
                    assert text not in answer

    @rule(org=_orgs, user=_users, data=st.data())
    def foreign_ids_are_unknown_ids(self, org: str, user: str, data: st.DataObject) -> None:
        other = ORGS[1 - ORGS.index(org)]
        calls = [("DELETE", f"/api/rag/sources/{name}") for name in sorted(self._public[other])]
        calls += [(method, f"/api/rag/ingest/{job}") for method in ("GET", "DELETE") for job in self._jobs[other]]
        if not calls:
            return
        method, path = data.draw(st.sampled_from(calls))
        headers = {**self._keys[org, user], **_SAME}
        foreign, unknown = (
            self._api.client.request(method, one, headers=headers)
            for one in (path, f"{path.rpartition('/')[0]}/{_UNKNOWN}")
        )
        assert foreign.status_code == 404
        assert (foreign.content, foreign.headers) == (unknown.content, unknown.headers)

    @invariant()
    def lists_are_the_models(self) -> None:
        for (org, user), headers in self._keys.items():
            listed = self._api.client.get("/api/rag/sources", headers=headers).json()["sources"]
            assert {one["id"] for one in listed} == self._visible(org, user)
            assert {one["name"] for one in listed} <= {f"Notes of {org}"}


TestWalls = Walls.TestCase
TestWalls.settings = settings(max_examples=12, stateful_step_count=15)
