"""Folders of an earlier version, or named with another key, are brought into today's form at the start."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from support.api import PARIS, running

from spanforge._hashing import Hasher
from spanforge.reference import Document, User
from spanforge.reference.ingesting import uploads
from spanforge.reference.ingesting.catalog import Catalog
from spanforge.reference.ingesting.jobs import CATALOG_FILE
from spanforge.reference.models import IngestionOutput, JobStatus
from spanforge.server.upgrading import folder_name

if TYPE_CHECKING:
    from pathlib import Path

KEYS = ("k" * 32, "l" * 32)
PLAIN = folder_name(Hasher(), "north")


def test_folders_are_named_with_the_key_and_follow_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as api:
        headers = api.key()
        source = api.source(headers, name="Notes")
        api.ingest(headers, source, {"paris": PARIS})
    assert [path.name for path in (tmp_path / "orgs").iterdir()] == [PLAIN]
    for key in KEYS:
        monkeypatch.setenv("SPANFORGE_HASH_KEY", key)
        with running(tmp_path) as api:
            (listed,) = api.client.get("/api/rag/sources", headers=headers).json()["sources"]
            assert (listed["id"], listed["name"]) == (source, "Notes")
            assert api.query(headers).json()["answer"] == "Paris [1]"
        name = folder_name(Hasher(key.encode()), "north")
        assert [path.name for path in (tmp_path / "orgs").iterdir()] == [name] != [PLAIN]


def test_names_and_open_jobs_of_an_earlier_version_are_taken_over(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        headers = api.key()
        source = api.source(headers)
    folder = tmp_path / "orgs" / PLAIN
    ann = User(user_id="ann", org_id="north")
    job = IngestionOutput(job_id="01OLD", data_source_id=source, status=JobStatus.PROCESSING, total=1)
    with closing(sqlite3.connect(folder / "jobs.sqlite")) as old:
        old.execute("CREATE TABLE names (source_id TEXT, name TEXT)")
        old.execute("CREATE TABLE jobs (job_id TEXT, body TEXT, user TEXT, cut TEXT, cancelled INTEGER)")
        old.execute("INSERT INTO names VALUES (?, 'Of old')", (source,))
        cut = json.dumps({"chunk_size": 512, "chunk_overlap": 50})
        old.execute(
            "INSERT INTO jobs VALUES ('01OLD', ?, ?, ?, 0)", (job.model_dump_json(), ann.model_dump_json(), cut)
        )
        old.commit()
    uploads.spool(folder / "uploads" / "01OLD", [Document(document_id="paris", text=PARIS)])
    with running(tmp_path) as api:
        assert api.ended(headers, "01OLD")["status"] == "completed"
        (listed,) = api.client.get("/api/rag/sources", headers=headers).json()["sources"]
        assert listed["name"] == "Of old"
    assert not (folder / "jobs.sqlite").exists()
    assert not (folder / "uploads").exists()


def test_a_catalogue_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    ended = IngestionOutput(job_id="a", data_source_id="s", status=JobStatus.COMPLETED)
    with closing(sqlite3.connect(tmp_path / CATALOG_FILE)) as old:
        old.execute("PRAGMA journal_mode=WAL")
        old.execute(
            "CREATE TABLE jobs (job_id TEXT PRIMARY KEY, org_id TEXT NOT NULL, user_id TEXT NOT NULL, request TEXT, "
            "body TEXT NOT NULL, cancelled INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID"
        )
        old.execute(
            "CREATE TABLE documents (org_id TEXT, data_source_id TEXT, document_id TEXT, fingerprint TEXT NOT NULL, "
            "chunks INTEGER NOT NULL, PRIMARY KEY (org_id, data_source_id, document_id)) WITHOUT ROWID"
        )
        for name, status in (("a", JobStatus.COMPLETED), ("b", JobStatus.QUEUED)):
            body = ended.model_copy(update={"job_id": name, "status": status}).model_dump_json()
            old.execute("INSERT INTO jobs VALUES (?, 'local', 'local', NULL, ?, 0)", (name, body))
        old.execute("PRAGMA user_version=1")
        old.commit()
    with closing(Catalog(tmp_path / CATALOG_FILE)) as catalog:
        assert [record.output.job_id for record in catalog.open_jobs()] == ["b"]
        assert catalog.organisations() == ["local"]
    assert [path.name for path in tmp_path.iterdir()] == [CATALOG_FILE]
