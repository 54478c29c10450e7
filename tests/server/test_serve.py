"""`spanforge serve` and `spanforge keys`, and what a running server says of itself."""

from __future__ import annotations

import json
import logging
import re
import shlex
import signal
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from support import serving as server
from support.api import LOOPBACK, Api, bearer, bundled, running

from spanforge.cli import main
from spanforge.reference import Pipeline
from spanforge.server.logs import Lines


@pytest.mark.slow
def test_the_demo_answers_with_the_key_it_prints() -> None:
    process = server.start("--demo")
    try:
        found = server.told(process, "try")
        key = found["key"].split()[0]
        program, *_, url, _, authorization, _, _, _, body = shlex.split(found["try"])
        assert (program, url, authorization) == ("curl", f"{found['API']}/query", f"Authorization: Bearer {key}")
        assert json.loads(body)["query"]
        with httpx.Client(base_url=found["API"].removesuffix("/api/rag"), headers=bearer(key), timeout=60) as client:
            body = client.post("/api/rag/query", json={"query": "What is the capital of France?"}).json()
            assert body["answer"] == "Paris [1]"
            assert body["citationsUsed"][0]["source"] == "france.md"
            (source,) = client.get("/api/rag/sources").json()["sources"]
            assert source["name"] == "Bundled corpus"
            assert client.get("/ui/", follow_redirects=False).status_code == 303
            entered = client.post("/ui/sign-in", data={"credential": key}, headers={"Origin": str(client.base_url)})
            assert entered.status_code in {200, 303}
    finally:
        process.send_signal(signal.SIGTERM)
        said, log = process.communicate(timeout=60)
    assert process.returncode == 0
    ledger = re.search(r"sqlite:events\.sqlite +(\d+) +(\d+) +0 +0 +0", said)
    assert ledger is not None, said
    assert ledger[1] == ledger[2]
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"request", "Application shutdown complete."} <= {line["event"] for line in lines}
    assert "capital" not in log


def test_where_others_can_reach_it_there_must_be_a_key(tmp_path, capsys) -> None:
    assert main(["serve", "--host", "0.0.0.0", "--home", str(tmp_path)]) == 2  # noqa: S104  refused
    assert "spanforge keys add" in capsys.readouterr().err


def test_wrong_settings_are_named(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("SPANFORGE_SERVER_BURST", "many")
    assert main(["serve", "--home", str(tmp_path)]) == 2
    assert "burst" in capsys.readouterr().err
    monkeypatch.delenv("SPANFORGE_SERVER_BURST")
    monkeypatch.setenv("SPANFORGE_SERVER_BRUST", "1")
    assert main(["keys", "list"]) == 2
    assert "SPANFORGE_SERVER_BRUST" in capsys.readouterr().err


def test_keys_are_made_listed_and_revoked(tmp_path, capsys) -> None:
    home = ["--home", str(tmp_path)]
    assert main(["keys", "list", *home]) == 2
    assert "spanforge keys add" in capsys.readouterr().err
    made = ["keys", "add", "--org", "north", "--user", "ann", "--role", "editor", "--team", "tides", "--json", *home]
    assert main(made) == 0
    key = json.loads(capsys.readouterr().out)["key"]
    assert main(["keys", "list", "--json", *home]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["organisation"], listed["user"], listed["roles"], listed["teams"]) == (
        "north",
        "ann",
        "editor",
        "tides",
    )
    assert listed["revoked"] == ""
    assert listed["key"] in key
    assert key.split("_", 2)[2] not in str(listed)
    assert main(["keys", "revoke", key, *home]) == 0
    assert main(["keys", "revoke", listed["key"], *home]) == 2
    assert main(["keys", "list", *home]) == 0
    assert listed["key"] in capsys.readouterr().out


@pytest.mark.parametrize("more", [["--org", "", "--user", "ann"], ["--org", "a", "--user", "b", "--role", ""]])
def test_keys_without_an_owner_are_not_made(tmp_path, capsys, more) -> None:
    assert main(["keys", "add", *more, "--home", str(tmp_path)]) == 2


def test_a_key_that_may_nothing_is_pointed_out(tmp_path, capsys) -> None:
    assert main(["keys", "add", "--org", "a", "--user", "b", "--role", "auditor", "--home", str(tmp_path)]) == 0
    assert "it may do nothing yet" in " ".join(capsys.readouterr().out.split())


def test_a_server_is_ready_once_its_models_are_loaded(tmp_path) -> None:
    loaded = threading.Event()

    def make(folder: Path) -> Pipeline:
        loaded.wait(30)
        return bundled(folder)

    with running(tmp_path, make) as api:
        loading = api.client.get("/readyz")
        assert (loading.status_code, loading.headers["retry-after"]) == (503, "1")
        assert api.client.get("/healthz").status_code == 200
        loaded.set()
        _ready(api)


def _ready(api: Api) -> None:
    deadline = time.monotonic() + 30
    while (answer := api.client.get("/readyz")).status_code != 200 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert answer.json() == {"status": "ok"}


def test_health_readiness_and_metrics(api: Api) -> None:
    assert api.client.get("/healthz").json() == {"status": "ok"}
    _ready(api)
    figures = api.client.get("/metrics", headers=api.key(roles=["metrics"]))
    assert figures.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "spanforge_events_delivered_total" in figures.text
    assert api.client.get("/metrics", headers=api.key(roles=["admin"])).status_code == 403
    api.service.jobs.close()
    stopping = api.client.get("/readyz")
    assert (stopping.status_code, stopping.headers["retry-after"]) == (503, "5")
    assert api.client.get("/healthz").status_code == 200


def test_answers_are_not_kept_or_guessed_at(api: Api) -> None:
    for path in ("/healthz", "/api/rag/sources", "/nowhere"):
        answer = api.client.get(path)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("given", "taken"), [("req-12345678", True), ("a b c d e f g", False), ("x" * 65, False), ("é" * 9, False)]
)
def test_ids_of_requests_are_taken_when_they_are_plain(api: Api, given: str, taken: bool) -> None:
    answer = api.client.get("/nowhere", headers={"X-Request-Id": given.encode()})
    assert (answer.headers["x-request-id"] == given) is taken
    assert answer.json()["instance"] == f"urn:spanforge:request:{answer.headers['x-request-id']}"


@pytest.mark.parametrize(("role", "enters"), [("viewer", True), ("admin", True), ("editor", False), ("metrics", False)])
def test_the_pages_take_the_same_credentials(api: Api, role: str, enters: bool) -> None:
    key = api.key(roles=[role])["Authorization"].removeprefix("Bearer ")
    assert api.client.get("/ui", follow_redirects=False).headers["location"] == "./ui/"
    assert api.client.get("/ui/", follow_redirects=False).headers["location"].startswith("/ui/sign-in")
    api.client.post("/ui/sign-in", data={"credential": key}, headers={"Origin": LOOPBACK})
    assert (api.client.get("/ui/sessions", follow_redirects=False).status_code == 200) is enters


def test_of_an_error_the_log_has_class_and_place_alone() -> None:
    canary = "quittengelee-8f2c"
    try:
        int(canary)
    except ValueError:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, __file__, 1, "Exception", (), sys.exc_info())
    line = Lines().format(record)
    assert re.fullmatch(r"ValueError at test_serve\.py:\d+", json.loads(line)["error"])
    assert canary not in line
