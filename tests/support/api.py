"""The HTTP API in a folder, with keys, and the few things that most tests of it do."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.testclient import TestClient

from spanforge.reference import Pipeline, User
from spanforge.reference.embedding import open_embedder
from spanforge.sdk import ServerSettings
from spanforge.server import create_app

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from pathlib import Path

    from fastapi import FastAPI
    from httpx import Response

PARIS = "# France\n\nThe capital of France is Paris. It lies on the river Seine.\n"
QUESTION = "What is the capital of France?"
LOOPBACK = "http://127.0.0.1"


@cache
def embedder() -> Any:
    """The bundled embedding model, loaded once for all tests."""
    return open_embedder("wordllama")


def bundled(folder: Path, **options: Any) -> Pipeline:
    return Pipeline(folder, embedder=embedder(), **options)


class Api:
    """A running API and its client."""

    def __init__(self, app: FastAPI, client: TestClient, home: Path) -> None:
        self.app = app
        self.client = client
        self.home = home
        self.service = app.state.service

    def key(
        self, user: str = "ann", org: str = "north", roles: Iterable[str] = ("editor",), teams: Iterable[str] = ()
    ) -> dict[str, str]:
        """Make a key and return the header that carries it."""
        who = User(user_id=user, org_id=org, roles=frozenset(roles), teams=frozenset(teams))
        return bearer(self.service.keys.add(who))

    def source(self, headers: Mapping[str, str], **body: Any) -> str:
        """Create a source, public unless said otherwise, and return its id."""
        made = self.client.post(
            "/api/rag/sources", json={"name": "Notes", "visibility": "public", **body}, headers=headers
        )
        assert made.status_code == 201, made.text
        return made.json()["id"]

    def send(self, headers: Mapping[str, str], source: str, texts: Mapping[str, str], **body: Any) -> Response:
        documents = [{"documentId": name, "text": text} for name, text in texts.items()]
        return self.client.post(
            "/api/rag/ingest", json={"dataSourceId": source, "documents": documents, **body}, headers=headers
        )

    def ingest(self, headers: Mapping[str, str], source: str, texts: Mapping[str, str]) -> dict[str, Any]:
        """Ingest documents and return the job when it has ended."""
        sent = self.send(headers, source, texts)
        assert sent.status_code == 202, sent.text
        return self.ended(headers, sent.json()["jobId"])

    def ended(self, headers: Mapping[str, str], job_id: str) -> dict[str, Any]:
        """Wait for the end of a job."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            job = self.client.get(f"/api/rag/ingest/{job_id}", headers=headers).json()
            if job["status"] in {"completed", "failed"}:
                return job
            time.sleep(0.02)
        raise AssertionError("the job did not end")

    def query(self, headers: Mapping[str, str], query: str = QUESTION, **body: Any) -> Response:
        return self.client.post("/api/rag/query", json={"query": query, **body}, headers=headers)

    def retrieve(self, headers: Mapping[str, str], query: str = QUESTION, **body: Any) -> Response:
        return self.client.post("/api/rag/retrieve", json={"query": query, **body}, headers=headers)


def bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}


@contextmanager
def running(home: Path, make: Callable[[Path], Pipeline] = bundled, **settings: Any) -> Generator[Api]:
    """Run the API over a folder for the length of a block; on the same folder again, it is a restart."""
    app = create_app(
        ServerSettings.load({"home": home, "burst": 10_000, "wrong_credentials_per_minute": 10_000, **settings}), make
    )
    with TestClient(app, base_url=LOOPBACK, raise_server_exceptions=False) as client:
        yield Api(app, client, home)
