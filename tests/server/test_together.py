"""A request that comes between two steps of another: each is answered as if they had taken turns."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from support.api import PARIS, Api, bundled, embedder, running

from spanforge.reference import Pipeline
from spanforge.reference.ingesting.catalog import Catalog
from spanforge.reference.ingesting.jobs import MAX_ATTEMPTS
from spanforge.server.auth.keys import KEYS_FILE
from spanforge.server.middleware.requests import Requests

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 0.5
"""How long what must not happen is waited for."""


class Held:
    """The bundled embedder, which holds up the job that comes first."""

    def __init__(self) -> None:
        self._inner = embedder()
        self.reached = threading.Event()
        self.gate = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def embed(self, texts: list[str]) -> Any:
        if not self.reached.is_set():
            self.reached.set()
            assert self.gate.wait(60)
        return self._inner.embed(texts)

    def pipeline(self, folder: Path) -> Pipeline:
        return Pipeline(folder, embedder=self)


def test_jobs_of_one_source_are_done_as_they_were_sent_and_hold_up_no_other(tmp_path: Path) -> None:
    held = Held()
    with running(tmp_path, held.pipeline, ingest_workers=3) as api:
        headers = api.key()
        source, other = api.source(headers), api.source(headers)
        first = api.send(headers, source, {"paris": PARIS}).json()["jobId"]
        assert held.reached.wait(30)
        later = api.send(headers, source, {"paris": PARIS.replace("Seine", "Oise")}).json()["jobId"]
        assert api.ingest(headers, other, {"rome": "The capital of Italy is Rome."})["status"] == "completed"
        threading.Timer(PATIENCE_S, held.gate.set).start()
        assert [api.ended(headers, job)["status"] for job in (first, later)] == ["completed", "completed"]
        found = api.retrieve(headers, dataSources=[source]).json()["documents"]
        assert ["Oise" in one["text"] for one in found] == [True]


def test_stopping_a_server_is_no_attempt_of_its_jobs(tmp_path: Path) -> None:
    for number in range(MAX_ATTEMPTS + 1):
        held = Held()
        with running(tmp_path, held.pipeline) as api:
            if not number:
                headers = api.key()
                texts = {f"d{i}": f"Note {i} of the harbour." for i in range(MAX_ATTEMPTS + 2)}
                job = api.send(headers, api.source(headers), texts).json()["jobId"]
            assert held.reached.wait(30)
            api.service.jobs._queue.stop()
            held.gate.set()
    with running(tmp_path) as api:
        ended = api.ended(headers, job)
        assert (ended["status"], ended["reason"], ended["indexed"]) == ("completed", None, len(texts))


def test_a_job_cancelled_as_it_is_taken_up_does_not_begin_after_it_ended(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = api.key()
    source = api.source(headers)
    look, update = Catalog.job, Catalog.update_job
    written: list[str] = []
    cancelling: list[threading.Thread] = []

    def note_update(self: Catalog, output: Any) -> None:
        written.append(output.status.value)
        update(self, output)

    def look_then_cancel(self: Catalog, job_id: str) -> Any:
        row = look(self, job_id)
        if not cancelling and threading.current_thread().name.startswith("spanforge-ingest"):
            path = f"/api/rag/ingest/{job_id}"
            cancelling.append(threading.Thread(target=lambda: api.client.delete(path, headers=headers)))
            cancelling[0].start()
            cancelling[0].join(PATIENCE_S)
        return row

    monkeypatch.setattr(Catalog, "update_job", note_update)
    monkeypatch.setattr(Catalog, "job", look_then_cancel)
    job = api.send(headers, source, {"paris": PARIS}).json()["jobId"]
    ended = api.ended(headers, job)
    cancelling[0].join(30)
    api.service.jobs.close()  # waits for the job
    assert (ended["status"], ended["reason"]) == ("failed", "CANCELLED")
    assert "processing" not in written[written.index("failed") :]


def test_whoever_writes_keys_holds_up_nobody_who_has_one(api: Api) -> None:
    headers = api.key()
    with closing(sqlite3.connect(api.home / KEYS_FILE, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        answered: list[int] = []
        asking = threading.Thread(
            target=lambda: answered.append(api.client.get("/api/rag/sources", headers=headers).status_code)
        )
        asking.start()
        asking.join(5)
        writer.execute("ROLLBACK")
        in_time = list(answered)
        asking.join(30)
    assert in_time == [200]


async def test_a_request_that_a_stopping_server_gives_up_is_told_so() -> None:
    working = asyncio.Event()
    sent: list[Any] = []

    async def app(*_: object) -> None:
        working.set()
        await asyncio.Event().wait()

    async def receive() -> Any:
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    request = asyncio.create_task(Requests(app)(scope, receive, send))
    await working.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    start, body = sent
    assert (start["status"], json.loads(body["body"])["code"]) == (503, "OVERLOADED")
    assert dict(start["headers"])[b"retry-after"] == b"5"


def test_what_a_question_needs_is_loaded_before_one_comes(tmp_path: Path) -> None:
    made: list[Path] = []
    loaded = threading.Event()

    def make(folder: Path) -> Pipeline:
        made.append(folder)
        pipeline = bundled(folder)
        loaded.set()
        return pipeline

    with running(tmp_path, make) as api:
        assert loaded.wait(30)
        for _ in range(2):
            assert api.client.get("/openapi.json").status_code == 200
        assert len(made) == 1
        assert not any(folder.is_relative_to(tmp_path) for folder in made)
    assert not made[0].exists()
