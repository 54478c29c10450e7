"""Sources as others see them, what stands in them, and with whom they are shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.api import PARIS, Api

if TYPE_CHECKING:
    from pathlib import Path


def test_with_whom_a_source_is_shared_is_told_to_those_who_may_change_it(api: Api) -> None:
    ann, bob = api.key("ann"), api.key("bob", teams=["tides"])
    api.source(ann, visibility="team", teams=["tides", "winds"], users=["cleo"])
    (mine,) = api.client.get("/api/rag/sources", headers=ann).json()["sources"]
    (theirs,) = api.client.get("/api/rag/sources", headers=bob).json()["sources"]
    assert (mine["teams"], mine["users"]) == (["tides", "winds"], ["cleo"])
    assert not theirs.keys() & {"teams", "users", "roles"}


def test_documents_are_listed_and_deleted_one_by_one(api: Api) -> None:
    ann, bob = api.key("ann"), api.key("bob")
    source = api.source(ann)
    api.ingest(ann, source, {"paris/a": PARIS, "b": "The capital of Italy is Rome."})
    path = f"/api/rag/sources/{source}/documents"
    assert [one["documentId"] for one in api.client.get(path, headers=bob).json()["documents"]] == ["b", "paris/a"]
    assert api.client.delete(path, params={"documentId": "paris/a"}, headers=bob).status_code == 403
    assert api.client.delete(path, params={"documentId": "no"}, headers=ann).status_code == 404
    assert api.client.delete(path, params={"documentId": "paris/a"}, headers=ann).status_code == 204
    assert [one["documentId"] for one in api.client.get(path, headers=ann).json()["documents"]] == ["b"]
    assert [one["documentId"] for one in api.retrieve(ann, "capital").json()["documents"]] == ["b"]


def test_owner_and_admin_share_a_source_and_nobody_else(api: Api) -> None:
    ann, bob, chief = api.key("ann"), api.key("bob"), api.key("chief", roles=["admin"])
    source = api.source(ann, visibility="personal")
    path = f"/api/rag/sources/{source}"
    assert api.client.patch(path, json={"visibility": "public"}, headers=bob).status_code == 404
    assert api.client.patch(path, json={"visibility": "public"}, headers=chief).json()["owner"] == "ann"
    assert api.client.patch(path, json={"visibility": "personal"}, headers=bob).status_code == 403
    assert [one["id"] for one in api.client.get("/api/rag/sources", headers=bob).json()["sources"]] == [source]
    assert api.client.patch(path, json={}, headers=ann).json()["visibility"] == "personal"
    assert api.client.patch("/api/rag/sources/none", json={}, headers=chief).status_code == 404


def test_two_documents_of_one_name_are_refused_by_name(api: Api) -> None:
    headers = api.key()
    source = api.source(headers)
    files = [("files", (name, b"The sluice.")) for name in ("a/x.md", "b/x.md", "a/x.md")]
    refused = api.client.post("/api/rag/ingest", data={"dataSourceId": source}, files=files, headers=headers)
    assert (refused.status_code, refused.json()["fields"]) == (422, ["files.2"])
    sent = api.client.post("/api/rag/ingest", data={"dataSourceId": source}, files=files[:2], headers=headers)
    assert api.ended(headers, sent.json()["jobId"])["total"] == 2
    texts = [{"documentId": "same", "text": text} for text in ("one", "two")]
    refused = api.client.post("/api/rag/ingest", json={"dataSourceId": source, "documents": texts}, headers=headers)
    assert (refused.status_code, refused.json()["fields"]) == (422, ["documents.1.documentId"])


def test_a_bad_upload_is_named(api: Api, tmp_path: Path) -> None:
    headers = api.key()
    source = api.source(headers)
    files = [("files", ("good.md", b"The sluice.")), ("files", ("bad.bin", bytes(range(32)) * 9))]
    refused = api.client.post("/api/rag/ingest", data={"dataSourceId": source}, files=files, headers=headers)
    assert (refused.status_code, refused.json()["fields"]) == (415, ["files.1"])
