"""Many clients of several organisations at once, none of which waits for another: every answer is true all the same."""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from support.api import running
from support.besieged import Besieged, key, start

from spanforge.reference import User
from spanforge.reference.index import Selection
from spanforge.server.auth.keys import KEYS_FILE, KeyStore

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

SECONDS = 60.0
LEAST = 150
"""Answers that a server gives before it is stopped."""
ORGS = ("north", "south", "east")
NARROW = {
    "SPANFORGE_SERVER_OPEN_ORGS": "1",
    "SPANFORGE_SERVER_MAX_CONCURRENT": "16",
    "SPANFORGE_SERVER_MAX_CONCURRENT_PER_ORG": "4",
    "SPANFORGE_SERVER_MAX_JOBS_PER_ORG": "4",
    "SPANFORGE_SERVER_INGEST_WORKERS": "3",
}
"""Settings under which everybody is in everybody's way."""
_ENDED = frozenset({"completed", "failed"})
_words = itertools.count()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class _Interrupted(Exception):  # noqa: N818  no error: it ends a round of a client
    """The server went away, or the siege is over."""


class _Siege:
    """A server, those who besiege it, and what was wrong."""

    def __init__(self, home: Path, *, restarts: bool) -> None:
        self.home = home
        self.restarts = restarts
        self.faults: list[str] = []
        self.answers = 0
        self.over = False
        self.up = asyncio.Event()
        self.server: Besieged | None = None
        self._wires: list[httpx.AsyncClient] = []

    def check(self, holds: bool, text: str) -> None:
        if not holds:
            self.faults.append(text)

    async def begin(self) -> None:
        self.server = await asyncio.to_thread(start, self.home, **NARROW)
        # Given up before the server does: a request must not meet the end of an idle connection.
        limits = httpx.Limits(max_connections=None, keepalive_expiry=2)
        self._wires.append(httpx.AsyncClient(base_url=self.server.url, timeout=60, limits=limits))
        self.up.set()

    async def wire(self) -> httpx.AsyncClient:
        """Wait for the server, and return what leads to it."""
        await self.up.wait()
        return self._wires[-1]

    async def end(self, number: int) -> None:
        assert self.server is not None
        self.up.clear()
        await asyncio.to_thread(self.server.stop, number)

    async def disband(self) -> None:
        for wire in self._wires:
            await wire.aclose()

    async def round(self, client: _Client) -> None:
        """Let a client go about its work until the siege is over."""
        while not self.over:
            try:
                await client.work()
            except _Interrupted:
                await asyncio.sleep(0.05)


class _Client:
    """Someone with a credential, and something to do."""

    def __init__(self, siege: _Siege, headers: dict[str, str]) -> None:
        self.siege = siege
        self.headers = headers
        self.dice = random.Random(next(_words))  # noqa: S311  a repeatable draw, nothing secret

    async def work(self) -> None:
        raise NotImplementedError

    async def send(self, method: str, path: str, expected: set[int], **body: Any) -> httpx.Response:
        """Send a request until it is not one too many, and check its status. Reading is done again where it broke off.

        Raises:
            _Interrupted: It was not answered.
        """
        while not self.siege.over:
            wire = await self.siege.wire()
            try:
                answer = await wire.request(method, path, headers=self.headers, **body)
            except httpx.TransportError as error:
                self.siege.check(self.siege.restarts, f"{method} {path}: {type(error).__name__}")
                if method == "GET" or path.endswith("retrieve"):
                    await asyncio.sleep(0.1)
                    continue
                raise _Interrupted from None
            self.siege.answers += 1
            if answer.status_code == 429 or (self.siege.restarts and answer.status_code == 503):
                self.siege.check("retry-after" in answer.headers, f"{path}: no Retry-After")
                await asyncio.sleep(self.dice.uniform(0.02, 0.1))
                continue
            told = f"{method} {path}: {answer.status_code} {answer.text[:200]}"
            self.siege.check(answer.status_code in expected, told)
            if answer.status_code not in expected:
                raise _Interrupted
            return answer
        raise _Interrupted

    async def source(self, visibility: str = "public") -> str:
        made = await self.send("POST", "/api/rag/sources", {201}, json={"name": _word(), "visibility": visibility})
        return made.json()["id"]

    async def ingest(self, source: str, texts: dict[str, str], expected: int = 202) -> str:
        documents = [{"documentId": name, "text": text} for name, text in texts.items()]
        body = {"dataSourceId": source, "documents": documents}
        return (await self.send("POST", "/api/rag/ingest", {expected}, json=body)).json().get("jobId", "")

    async def ended(self, job: str) -> dict[str, Any]:
        """Follow a job to its end; it takes no step back, and stays as it ended."""
        seen: list[str] = []
        while not seen or seen[-1] not in _ENDED:
            state = (await self.send("GET", f"/api/rag/ingest/{job}", {200})).json()
            seen.append(state["status"])
            await asyncio.sleep(self.dice.uniform(0.01, 0.1))
        steps = ["queued", "processing", seen[-1]]
        places = [steps.index(status) for status in seen]
        self.siege.check(self.siege.restarts or places == sorted(places), f"a job went back: {seen}")
        again = (await self.send("GET", f"/api/rag/ingest/{job}", {200})).json()
        self.siege.check(again == state, f"a job that had ended changed: {state} {again}")
        return state

    async def found(self, word: str, **body: Any) -> dict[str, str]:
        """Return what is found, by document."""
        body = {"query": f"Where is the {word}?", "topK": 50, **body}
        answer = await self.send("POST", "/api/rag/retrieve", {200, 403}, json=body)
        texts: defaultdict[str, str] = defaultdict(str)
        for one in answer.json().get("documents", []):
            texts[one["documentId"]] += f"{one['text']} "
        return {name: text for name, text in texts.items() if word in text}


class _Keeper(_Client):
    """Keeps documents: new, changed and unchanged ones, some jobs cancelled; and looks whether they are there."""

    def __init__(self, siege: _Siege, headers: dict[str, str], other: dict[str, str], visibility: str) -> None:
        super().__init__(siege, headers)
        self._other = _Client(siege, other)
        self._visibility = visibility
        self._source = ""
        self.kept: dict[str, str] = {}

    async def work(self) -> None:
        if not self._source:
            self._source = await self.source(self._visibility)
        old = {name: self.kept.pop(name) for name in self.dice.sample(sorted(self.kept), min(2, len(self.kept)))}
        new = {name: self.dice.choice([word, _word()]) for name, word in old.items()} | {_word(): _word()}
        filling = "Barges and boats lie at the quay. " * self.dice.choice([1, 300])
        job = await self.ingest(self._source, {name: f"The {word} is here. {filling}" for name, word in new.items()})
        cancelled = self.dice.random() < 0.25
        if cancelled:
            await asyncio.sleep(self.dice.choice([0, 0.02, 0.2]))
            await self.send("DELETE", f"/api/rag/ingest/{job}", {200})
        state = await self.ended(job)
        if state["status"] == "failed":
            self.siege.check(cancelled and state["reason"] == "CANCELLED", f"a job failed: {state}")
            return
        counts = (state["indexed"], state["total"], state["failures"], state["progress"])
        self.siege.check(counts == (len(new), len(new), [], 1.0), f"a job counted wrong: {state}")
        for name, word in new.items():
            self.siege.check(
                set(await self.found(word)) == {name}, "a document of a job that was completed is not found"
            )
            if name in old and old[name] != word:
                self.siege.check(not await self.found(old[name]), "a text is found after it was replaced")
            shown = set(await self._other.found(word)) == {name}
            self.siege.check(
                shown == (self._visibility == "public"), f"{self._visibility}, and seen by others: {shown}"
            )
        self.kept |= new
        await self._twice()

    async def _twice(self) -> None:
        """Send a document twice, the first time as one that takes long."""
        name, first, last = _word(), _word(), _word()
        jobs = [
            await self.ingest(self._source, {name: f"The {first} is here. " + "Barges lie at the quay. " * 2_000}),
            await self.ingest(self._source, {name: f"The {last} is here."}),
        ]
        for job in jobs:
            self.siege.check((await self.ended(job))["status"] == "completed", "a job was not completed")
        self.siege.check(set(await self.found(last)) == {name}, "a text is not the one that was sent last")
        self.kept[name] = last


class _Mover(_Client):
    """Makes sources, and deletes them while their jobs run."""

    async def work(self) -> None:
        source, word = await self.source(), _word()
        texts = {f"d{i}": f"The {word} is here. " + "Barges lie at the quay. " * 50 for i in range(20)}
        jobs = [await self.ingest(source, texts) for _ in range(self.dice.randint(0, 2))]
        await asyncio.sleep(self.dice.choice([0, 0.05, 0.3]))
        await self.send("DELETE", f"/api/rag/sources/{source}", {204})
        for job in jobs:
            await self.send("GET", f"/api/rag/ingest/{job}", {404})
        await self.ingest(source, texts, 404)
        for _ in range(2):
            self.siege.check(not await self.found(word), "a deleted source was seen")
            listed = (await self.send("GET", "/api/rag/sources", {200})).json()["sources"]
            self.siege.check(source not in {one["id"] for one in listed}, "a deleted source was listed")
            self.siege.check(all(one["name"] != one["id"] for one in listed), "a source was listed without its name")
            await asyncio.sleep(self.dice.random())


class _Asker(_Client):
    """Asks, and does not always listen to the end."""

    async def work(self) -> None:
        question = {"query": f"Where is the {_word()}, and what of barges and boats?"}
        await self.send("POST", "/api/rag/query", {200, 403}, json=question)
        wire = await self.siege.wire()
        body = {**question, "stream": True}
        try:
            async with wire.stream("POST", "/api/rag/query", json=body, headers=self.headers) as answer:
                self.siege.check(answer.status_code in {200, 403, 429} or self.siege.restarts, f"{answer.status_code}")
                if answer.status_code == 200 and self.dice.random() < 0.5:
                    lines = [line async for line in answer.aiter_lines() if line]
                    self.siege.check(
                        self.siege.restarts or "event: result" in lines, f"an answer ended with {lines[-2:]}"
                    )
        except httpx.TransportError as error:
            self.siege.check(self.siege.restarts, f"a stream broke: {type(error).__name__}")


class _Operator(_Client):
    """Looks at what the server says of itself, and makes keys and revokes them."""

    async def work(self) -> None:
        for path in ("/metrics", "/openapi.json", "/docs", "/healthz"):
            await self.send("GET", path, {200})
        await self.send("GET", "/readyz", {200, 503})  # while it loads, after a restart
        await self.send("GET", "/ui/", {303})
        carol = _Client(self.siege, await asyncio.to_thread(key, self.siege.home, "carol", ORGS[0]))
        await carol.send("GET", "/api/rag/sources", {200})
        await asyncio.to_thread(_revoke, self.siege.home, carol.headers)
        await carol.send("GET", "/api/rag/sources", {401})


def _word() -> str:
    return f"zq{next(_words)}x"


def _revoke(home: Path, headers: dict[str, str]) -> None:
    keys = KeyStore(home / KEYS_FILE)
    try:
        assert keys.revoke(headers["Authorization"].split("_")[1])
    finally:
        keys.close()


async def _besiege(siege: _Siege) -> list[_Keeper]:
    """Send everybody, and call them off after a while."""
    keepers: list[_Keeper] = []
    clients: list[_Client] = [_Operator(siege, key(siege.home, "met", ORGS[0], ("metrics",)))]
    for org in ORGS:
        ann, bob = key(siege.home, "ann", org), key(siege.home, "bob", org)
        keepers += [_Keeper(siege, ann, bob, "public"), _Keeper(siege, ann, bob, "personal")]
        clients += [_Mover(siege, ann), _Asker(siege, bob), _Asker(siege, ann)]
    rounds: list[Coroutine[Any, Any, None]] = [siege.round(client) for client in (*keepers, *clients)]
    await siege.begin()
    tasks = [asyncio.create_task(one) for one in rounds]
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        least, until = siege.answers + LEAST, time.monotonic() + SECONDS / 3
        while time.monotonic() < until or siege.answers < least:
            if any(task.done() for task in tasks):
                break
            await asyncio.sleep(0.1)
        if siege.restarts:
            await siege.end(number)
            await siege.begin()
    siege.over = True
    await asyncio.gather(*tasks)
    await siege.end(signal.SIGTERM)
    await siege.disband()
    return keepers


def _assert_whole(home: Path) -> None:
    """What is in each index is what the catalogue says, and no place or job is left."""
    with running(home) as api:
        for org in ORGS:
            with api.service.tenants.use(org) as tenant:
                deadline = time.monotonic() + 60
                while tenant.pipeline.catalog.count_open() and time.monotonic() < deadline:
                    time.sleep(0.1)
                assert tenant.pipeline.catalog.count_open() == 0
                catalog, index = tenant.pipeline.catalog, tenant.pipeline.index
                total = 0
                for source in tenant.pipeline.sources(User(user_id="ann", org_id=org)):
                    for record in catalog.documents(org, source.data_source_id):
                        one = Selection(org, (source.data_source_id,), document_ids=(record.document_id,))
                        assert index.count(one) == record.chunks
                        total += record.chunks
                assert index.count(Selection(org)) == total > 0
        assert list(home.glob("orgs/*/index/uploads/*")) == []


@pytest.mark.parametrize("restarts", [False, True], ids=["steady", "stopped and killed"])
async def test_many_at_once(tmp_path: Path, *, restarts: bool) -> None:
    siege = _Siege(tmp_path / "home", restarts=restarts)
    keepers = await _besiege(siege)
    assert siege.server is not None
    errors = [line for line in siege.server.log.splitlines() if '"level": "error"' in line]
    print(f"\n{siege.answers} answers, {sum(len(one.kept) for one in keepers)} documents kept")  # noqa: T201  the figures
    assert not siege.faults, siege.faults[:20]
    assert restarts or errors == []
    assert siege.answers > 3 * LEAST
    assert any(keeper.kept for keeper in keepers)
    await asyncio.to_thread(_assert_whole, siege.home)
