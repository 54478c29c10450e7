"""Jobs: followed, cancelled at any moment, taken up after a restart and a kill, ended when their source is deleted."""

from __future__ import annotations

import signal
import stat
import threading
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import serving as server
from support.api import PARIS, Api, bearer, bundled, embedder, running

from spanforge.exceptions import ConfigError
from spanforge.reference import Document, Pipeline, User
from spanforge.reference.index import Selection
from spanforge.reference.ingesting import ingestor as ingestion
from spanforge.reference.ingesting import uploads
from spanforge.reference.ingesting.catalog import Catalog, JobRecord
from spanforge.reference.ingesting.jobs import CATALOG_FILE, MAX_ATTEMPTS
from spanforge.reference.models import IngestionOutput, JobStatus
from spanforge.server.auth.keys import KeyStore

NOTES = {
    f"note{i:03}": f"# Note {i}\n\nNote number {i} tells of barge {i}.\n\nIt is {i} metres long.\n" for i in range(60)
}


class _Gated:
    """An embedder that waits before the documents after the first ones, so that a job can be met at work."""

    def __init__(self, inner, passes: int) -> None:
        self._inner = inner
        self._passes = passes
        self.gate = threading.Event()
        self.reached = threading.Event()

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    def embed(self, texts):
        if self._passes <= 0:
            self.reached.set()
            assert self.gate.wait(60)
        self._passes -= 1
        return self._inner.embed(texts)


@pytest.fixture
def gated(monkeypatch):
    monkeypatch.setattr(ingestion, "BATCH_DOCUMENTS", 4)
    slow = _Gated(embedder(), passes=10)
    yield slow, lambda folder: Pipeline(folder, embedder=slow)
    slow.gate.set()


def _whole(api: Api, org: str, source: str) -> set[str]:
    """Check that what is searchable of a source are whole documents, and return their ids."""
    with api.service.tenants.use(org) as tenant:
        records = tenant.pipeline.catalog.documents(org, source)
        for record in records:
            one = Selection(org, (source,), document_ids=(record.document_id,))
            assert tenant.pipeline.index.count(one) == record.chunks
        assert tenant.pipeline.index.count(Selection(org, (source,))) == sum(record.chunks for record in records)
        return {record.document_id for record in records}


def test_a_job_is_cancelled_at_work(tmp_path, gated) -> None:
    slow, make = gated
    with running(tmp_path, make) as api:
        headers = api.key()
        source = api.source(headers)
        job = api.send(headers, source, NOTES).json()["jobId"]
        assert slow.reached.wait(30)
        seen = api.client.get(f"/api/rag/ingest/{job}", headers=headers).json()
        assert seen["status"] == "processing"
        assert 0 <= seen["progress"] < 1
        assert api.client.delete(f"/api/rag/ingest/{job}", headers=headers).status_code == 200
        kept = _whole(api, "north", source)
        slow.gate.set()
        ended = api.ended(headers, job)
        assert (ended["status"], ended["reason"]) == ("failed", "CANCELLED")
        # From the moment of the cancellation on nothing was written.
        assert _whole(api, "north", source) == kept
        assert len(kept) < len(NOTES)
    assert not list(tmp_path.glob("orgs/*/index/uploads/*"))


def test_a_job_that_waits_is_cancelled_at_once(tmp_path, gated) -> None:
    slow, make = gated
    with running(tmp_path, make, ingest_workers=1) as api:
        headers = api.key()
        source = api.source(headers)
        first = api.send(headers, source, NOTES).json()["jobId"]
        assert slow.reached.wait(30)
        second = api.send(headers, source, {"paris": PARIS}).json()["jobId"]
        cancelled = api.client.delete(f"/api/rag/ingest/{second}", headers=headers).json()
        assert (cancelled["status"], cancelled["reason"]) == ("failed", "CANCELLED")
        slow.gate.set()
        assert api.ended(headers, first)["status"] == "completed"
        assert api.ended(headers, second)["reason"] == "CANCELLED"
        assert "paris" not in _whole(api, "north", source)


def test_a_job_that_has_ended_stays_as_it_is(api: Api) -> None:
    headers = api.key()
    job = api.ingest(headers, api.source(headers), {"paris": PARIS})
    again = [api.client.delete(f"/api/rag/ingest/{job['jobId']}", headers=headers).json() for _ in range(2)]
    assert again == [job, job]


def test_deleting_a_source_ends_its_jobs_and_leaves_nothing(tmp_path, gated) -> None:
    slow, make = gated
    with running(tmp_path, make) as api:
        headers = api.key()
        source = api.source(headers)
        job = api.send(headers, source, NOTES).json()["jobId"]
        assert slow.reached.wait(30)
        assert api.client.delete(f"/api/rag/sources/{source}", headers=headers).status_code == 204
        slow.gate.set()
        assert api.client.get(f"/api/rag/ingest/{job}", headers=headers).status_code == 404
        api.service.jobs.close()  # waits for the job
        with api.service.tenants.use("north") as tenant:
            assert tenant.pipeline.index.count(Selection("north")) == 0
        assert not list(api.home.glob("orgs/*/index/uploads/*"))


def test_a_restart_takes_the_job_up_again(tmp_path, gated) -> None:
    slow, make = gated
    with running(tmp_path, make) as api:
        headers = api.key()
        source = api.source(headers)
        job = api.send(headers, source, NOTES).json()["jobId"]
        assert slow.reached.wait(30)
        threading.Timer(0.2, slow.gate.set).start()
    with running(tmp_path, bundled) as api:
        ended = api.ended(headers, job)
        assert (ended["status"], ended["indexed"]) == ("completed", len(NOTES))
        assert _whole(api, "north", source) == set(NOTES)


def test_a_job_that_always_takes_the_process_down_is_given_up(tmp_path) -> None:
    with running(tmp_path) as api:
        headers = api.key()
        source = api.source(headers)
    (folder,) = tmp_path.glob("orgs/*")
    document = Document(document_id="a", text=PARIS)
    settings = {"chunk_size": 512, "chunk_overlap": 50, "upload": True}
    with closing(Catalog(folder / "index" / CATALOG_FILE)) as catalog:
        for job, attempts in (("01UNLUCKY", MAX_ATTEMPTS), ("01LUCKY", MAX_ATTEMPTS - 1)):
            uploads.spool(folder / "index" / "uploads" / job, [document])
            queued = IngestionOutput(job_id=job, data_source_id=source, status=JobStatus.PROCESSING, total=1)
            catalog.put_job(JobRecord(queued, "north", "ann", settings))
            catalog.count_attempt(job, attempts)
    with running(tmp_path) as api:
        unlucky = api.ended(headers, "01UNLUCKY")
        assert (unlucky["status"], unlucky["reason"]) == ("failed", "INTERRUPTED")
        assert api.ended(headers, "01LUCKY")["status"] == "completed"


def test_uploads_that_never_became_a_job_are_deleted(tmp_path) -> None:
    with running(tmp_path) as api:
        headers = api.key()
        api.source(headers)
        api.ingest(headers, api.source(headers), {"paris": PARIS})
    (folder,) = tmp_path.glob("orgs/*/index/uploads")
    uploads.spool(folder / "01ABANDONED", [Document(document_id="a", text=PARIS)])
    with running(tmp_path):
        assert list(folder.iterdir()) == []


def test_uploads_are_the_owners_alone(tmp_path) -> None:
    folder = tmp_path / "job"
    uploads.spool(
        folder, [Document(document_id="a", text=PARIS), Document(document_id="b", content=b"x", name="b.txt")]
    )
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@settings(max_examples=30)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "document_id": _texts.filter(bool),
                "text": _texts.filter(bool),
                "name": _texts,
                "quality": st.none() | st.floats(0, 1),
                "timestamp": st.none() | st.datetimes(timezones=st.none() | st.timezones()),
                "metadata": st.dictionaries(_texts, _texts | st.integers() | st.none(), max_size=3),
            }
        ).map(lambda fields: Document(**fields)),
        max_size=5,
        unique_by=lambda document: document.document_id,
    )
)
def test_what_is_spooled_comes_back_as_it_was(tmp_path_factory, documents: list[Document]) -> None:
    folder = tmp_path_factory.mktemp("spool") / "job"
    assert uploads.spool(folder, documents) == len(documents)
    for before, after in zip(documents, uploads.spooled(folder), strict=True):
        loaded = after.load()
        assert loaded.model_dump(exclude={"timestamp"}) == before.model_dump(exclude={"timestamp"})
        assert (loaded.timestamp is None) is (before.timestamp is None)


def test_a_second_server_does_not_take_the_same_folder(tmp_path) -> None:
    with running(tmp_path), pytest.raises(ConfigError, match="another server"), running(tmp_path):
        pass


@pytest.mark.slow
def test_a_killed_server_comes_back_and_finishes(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.sqlite")
    headers = bearer(keys.add(User(user_id="ann", org_id="north", roles=frozenset({"editor"}))))
    keys.close()
    process = server.start("--home", str(tmp_path))
    try:
        port = server.port_of(server.told(process, "folder"))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            source = client.post("/api/rag/sources", json={"name": "Notes"}).json()["id"]
            many = {f"{name}-{i}": text * 20 for i in range(4) for name, text in NOTES.items()}
            documents = [{"documentId": name, "text": text} for name, text in many.items()]
            sent = client.post("/api/rag/ingest", json={"dataSourceId": source, "documents": documents})
            assert sent.status_code == 202, sent.text
            job = sent.json()["jobId"]
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    with running(tmp_path) as api:
        ended = api.ended(headers, job)
        assert (ended["status"], ended["indexed"]) == ("completed", len(many))
        assert _whole(api, "north", source) == set(many)


def test_a_job_cancelled_behind_its_last_document_says_what_it_wrote(api: Api, monkeypatch) -> None:
    headers = api.key()
    source = api.source(headers)
    with api.service.tenants.use("north") as tenant:
        put = tenant.pipeline.catalog.put_documents

        def put_then_cancel(*what: object) -> None:
            put(*what)
            for record in tenant.pipeline.catalog.open_jobs():
                tenant.pipeline.catalog.cancel_job(record.output.job_id)

        monkeypatch.setattr(tenant.pipeline.catalog, "put_documents", put_then_cancel)
        job = api.ingest(headers, source, {"paris": PARIS})
    assert (job["status"], job["reason"], job["indexed"]) == ("failed", "CANCELLED", 1)
    assert [one["documentId"] for one in api.retrieve(headers).json()["documents"]] == ["paris"]
