"""The server killed in the middle of an ingestion comes back with the job ended clearly and nothing by halves."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from support.api import running
from support.besieged import ended, key, start

from spanforge.reference.index import Selection

MANY = 240
NOTES = {f"note{i:03}": f"# Note {i}\n\nNote {i} tells of barge {i}.\n\n" * 10 for i in range(MANY)}


def _killed(home: Path, after_s: float) -> None:
    """Kill a server some time after it took a job; start it anew; check what became of the job."""
    headers = key(home, "ann", "north")
    server = start(home)
    try:
        with server.client(headers) as client:
            source = client.post("/api/rag/sources", json={"name": "Notes"}).json()["id"]
            documents = [{"documentId": name, "text": text} for name, text in NOTES.items()]
            sent = client.post("/api/rag/ingest", json={"dataSourceId": source, "documents": documents})
            assert sent.status_code == 202, sent.text
            job = sent.json()["jobId"]
            time.sleep(after_s)
    finally:
        server.stop(signal.SIGKILL)
    again = start(home)
    try:
        with again.client(headers) as client:
            state = ended(client, job)
    finally:
        again.stop()
    assert (state["status"], state["reason"], state["failures"]) == ("completed", None, [])
    assert not list(home.glob("orgs/*/index/uploads/*"))
    _assert_whole(home, source)


def _assert_whole(home: Path, source: str) -> None:
    """Every document is there with as many passages as the catalogue says, and none besides."""
    with running(home) as api, api.service.tenants.use("north") as tenant:
        records = tenant.pipeline.catalog.documents("north", source)
        assert {record.document_id for record in records} == set(NOTES)
        index = tenant.pipeline.index
        for record in records:
            assert index.count(Selection("north", (source,), document_ids=(record.document_id,))) == record.chunks
        assert index.count(Selection("north")) == sum(record.chunks for record in records)


@pytest.mark.slow
def test_one_kill(tmp_path: Path) -> None:
    _killed(tmp_path / "home", 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("tenths", range(12))
def test_kills_at_many_moments(tmp_path: Path, tenths: int) -> None:
    _killed(tmp_path / "home", tenths / 10)
