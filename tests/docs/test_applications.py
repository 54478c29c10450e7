"""Each of docs/examples runs as it stands, against a local model: one session, with its retrieval and its call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.drawing_server import drawing_server

from spanforge import read_events

_EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
_QUESTION = "Which letter is about rain?"
_ASK = """
import sys
from fastapi.testclient import TestClient
from fastapi_app import app

assert TestClient(app).get("/answer", params={"question": sys.argv[1]}).text
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in _EXAMPLES.glob("*.py")))
def test_an_application_is_one_session(name: str, tmp_path: Path) -> None:
    program = ["-c", _ASK] if name == "fastapi_app" else [str(_EXAMPLES / f"{name}.py")]
    with drawing_server(seed=8) as server:
        environment = {
            **os.environ, "PYTHONPATH": str(_EXAMPLES), "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1",
            "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url, "HAYSTACK_TELEMETRY_ENABLED": "False",
            "SPANFORGE_SINKS": "jsonl:events.jsonl",
        }  # fmt: skip
        command = [sys.executable, *program, _QUESTION]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        (said,) = server.account
    events = list(read_events(tmp_path / "events.jsonl"))
    kinds = dict.fromkeys(event.event_type.rpartition(".")[2] for event in events)
    assert list(kinds) == ["query", "retrieved", "generated", "session"]
    assert len({event.session_id for event in events}) == 1
    *_, retrieved, generated, _ = events
    assert retrieved.payload["chunks"]
    assert generated.payload["response_id"] == said["response_id"]
    assert _QUESTION not in (tmp_path / "events.jsonl").read_text()
