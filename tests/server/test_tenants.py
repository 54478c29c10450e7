"""Organisations do not see one another: no document, no id, no count, no score, no byte of difference."""

from __future__ import annotations

import pytest
from support.api import PARIS, QUESTION, Api, bundled, running

from spanforge.reference import DataSource, User

_SAME = {"X-Request-Id": "same-request-id"}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/rag/ingest/{}"), ("DELETE", "/api/rag/ingest/{}"), ("DELETE", "/api/rag/sources/{}")],
)
def test_a_foreign_id_answers_as_one_that_does_not_exist(api: Api, method: str, path: str) -> None:
    ann, bob = api.key(), api.key("bob", "south")
    source = api.source(ann)
    job = api.ingest(ann, source, {"paris": PARIS})
    foreign = source if "sources" in path else job["jobId"]
    unknown = foreign[:-4] + "0000"
    seen = [api.client.request(method, path.format(name), headers={**bob, **_SAME}) for name in (foreign, unknown)]
    assert seen[0].status_code == 404
    assert seen[0].content == seen[1].content
    assert seen[0].headers == seen[1].headers
    assert api.query(ann).json()["answer"] == "Paris [1]"


def test_ingesting_into_a_foreign_source_answers_as_into_none(api: Api) -> None:
    ann, bob = api.key(), api.key("bob", "south")
    foreign = api.source(ann)
    seen = [api.send({**bob, **_SAME}, name, {"a": "text"}) for name in (foreign, "0" * 26)]
    assert seen[0].status_code == 404
    assert seen[0].content == seen[1].content


def test_naming_a_foreign_source_answers_as_naming_none(api: Api) -> None:
    ann, bob = api.key(), api.key("bob", "south")
    foreign = api.source(ann)
    api.ingest(ann, foreign, {"paris": PARIS})
    own = api.source(bob)
    api.ingest(bob, own, {"oslo": "The capital of Norway is Oslo."})
    for ask in (api.query, api.retrieve):
        seen = [ask({**bob, **_SAME}, dataSources=[name]) for name in (foreign, "0" * 26)]
        assert seen[0].status_code == 403
        assert seen[0].json()["code"] == "NO_ACCESSIBLE_SOURCES"
        assert seen[0].content == seen[1].content


def test_what_others_keep_changes_no_score(api: Api) -> None:
    ann, bob = api.key(), api.key("bob", "south")
    source = api.source(ann)
    api.ingest(ann, source, {"paris": PARIS, "lyon": "Lyon is a city of France on the Rhône."})
    before = api.retrieve(ann).json()
    api.ingest(bob, api.source(bob), {f"n{i}": f"The capital of France, note {i}." for i in range(20)})
    assert api.retrieve(ann).json() == before


def test_the_same_source_id_in_two_organisations_is_two_sources(api: Api) -> None:
    for org, text in (("north", PARIS), ("south", "The capital of France is Atlantis.")):
        user = User(user_id="ann", org_id=org)
        with api.service.tenants.use(org) as tenant:
            tenant.pipeline.put_source(DataSource(data_source_id="handbook", org_id=org, owner_id="ann"), user)
        api.ingest(api.key(org=org), "handbook", {"capital": text})
    north, south = api.key(org="north"), api.key(org="south")
    assert "Paris" in api.query(north).json()["answer"]
    assert "Atlantis" in api.query(south).json()["answer"]
    assert api.client.delete("/api/rag/sources/handbook", headers=south).status_code == 204
    assert "Paris" in api.query(north).json()["answer"]


def test_quotas_are_each_organisations_own(tmp_path) -> None:
    with running(tmp_path, lambda folder: bundled(folder, max_chunks=2), max_chunks_per_org=2) as api:
        ann, bob = api.key(), api.key("bob", "south")
        source = api.source(ann)
        full = api.ingest(ann, source, {name: f"Note {name} tells of barges." for name in "abc"})
        assert (full["status"], full["reason"]) == ("failed", "INDEX_FULL")
        assert api.ingest(ann, source, {"a": "One note.", "b": "Another note."})["status"] == "completed"
        refused = api.send(ann, source, {"c": "A third note."})
        assert refused.status_code == 507
        assert refused.json()["code"] == "INDEX_FULL"
        assert api.ingest(bob, api.source(bob), {"a": PARIS})["status"] == "completed"


@pytest.mark.parametrize(
    ("source", "who", "sees"),
    [
        ({"visibility": "public"}, {}, True),
        ({"visibility": "role", "roles": ["auditor"]}, {"roles": ["reader", "auditor"]}, True),
        ({"visibility": "role", "roles": ["auditor"]}, {}, False),
        ({"visibility": "team", "teams": ["tides"]}, {"teams": ["tides"]}, True),
        ({"visibility": "team", "teams": ["tides"]}, {"teams": ["winds"]}, False),
        ({"visibility": "private", "users": ["bob"]}, {}, True),
        ({"visibility": "private", "users": ["cleo"]}, {}, False),
        ({"visibility": "personal"}, {}, False),
        ({}, {}, True),
    ],
)
def test_visibility_is_the_contracts(api: Api, source, who, sees: bool) -> None:
    ann = api.key()
    bob = api.key(
        "bob", **{"roles": ["editor"], **who, **({"roles": [*who["roles"], "editor"]} if "roles" in who else {})}
    )
    made = api.source(ann, **source)
    api.ingest(ann, made, {"paris": PARIS})
    listed = [one["id"] for one in api.client.get("/api/rag/sources", headers=bob).json()["sources"]]
    assert (made in listed) is sees
    assert (api.query(bob).status_code == 200) is sees
    # Not the owner's to change: told so where it may be seen, and nothing at all where not.
    refused = [api.client.delete(f"/api/rag/sources/{made}", headers=bob), api.send(bob, made, {"a": "text"})]
    assert {answer.status_code for answer in refused} == {403 if sees else 404}
    assert {answer.json()["code"] for answer in refused} == {"PERMISSION_DENIED" if sees else "NOT_FOUND"}


def test_a_source_is_its_creators_alone_unless_said_otherwise(api: Api) -> None:
    made = api.client.post("/api/rag/sources", json={"name": "Notes"}, headers=api.key())
    assert made.json()["visibility"] == "personal"
    assert made.json()["owner"] == "ann"


def test_others_jobs_are_not_followed(api: Api) -> None:
    ann, bob = api.key(), api.key("bob")
    job = api.ingest(ann, api.source(ann), {"paris": PARIS})
    assert api.client.get(f"/api/rag/ingest/{job['jobId']}", headers=bob).status_code == 404


def test_a_deleted_source_leaves_nothing_in_any_file(api: Api) -> None:
    ann = api.key()
    source = api.source(ann, name="Zinnober-Ablage")
    words = {"text": "Quittenmus gehört in den Keller.", "document": "zwetschge", "name": "Zinnober-Ablage"}
    job = api.ingest(ann, source, {words["document"]: words["text"]})
    kept = api.source(ann)
    api.ingest(ann, kept, {"paris": PARIS})
    assert api.client.delete(f"/api/rag/sources/{source}", headers=ann).status_code == 204
    assert api.client.get(f"/api/rag/ingest/{job['jobId']}", headers=ann).status_code == 404
    found = api.retrieve(ann, "Quittenmus im Keller").json()
    assert "Quittenmus" not in str(found)
    assert api.query(ann, QUESTION).json()["answer"] == "Paris [1]"
    files = {path: path.read_bytes() for path in api.home.rglob("*") if path.is_file()}
    for word in (b"Quittenmus", words["name"].encode(), job["jobId"].encode()):
        assert not [path for path, content in files.items() if word in content], word


def test_organisations_beyond_those_kept_open_are_opened_again(tmp_path) -> None:
    with running(tmp_path, open_orgs=1) as api:
        keys = {org: api.key(org=org) for org in ("north", "south", "east")}
        for headers in keys.values():
            api.ingest(headers, api.source(headers), {"paris": PARIS})
        for headers in [*keys.values(), *keys.values()]:
            assert api.query(headers).json()["answer"] == "Paris [1]"
