"""A model named on the command line or in a server's settings answers, behind a server that speaks its protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chat_server import ChatServer, chat_server

from spanforge.cli import main
from spanforge.reference.answering import ExtractiveAnswerer, open_answerer
from spanforge.reference.failures import GenerationFailed
from spanforge.sdk import ServerSettings
from spanforge.server.tenants import pipeline_maker
from spanforge.testing import capture

GOOD = "It leaves at 09:45 [1]."


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server(lambda _: GOOD) as started:
        yield started


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_name_answers_are_quotations() -> None:
    assert isinstance(open_answerer(), ExtractiveAnswerer)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Path]:
    """A folder with an index of one document, which is where commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ferry.md").write_text("The ferry leaves at 09:45 from pier two.")
    with capture():
        assert main(["ingest", "ferry.md"]) == 0
        capsys.readouterr()
        yield tmp_path


@pytest.mark.parametrize("model", ["llama3.2", "openai:gpt-x", "anthropic:m", "claude-x"])
@pytest.mark.usefixtures("home")
def test_ask_takes_a_model_behind_a_server_that_needs_no_key(
    model: str, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    address = server.url if model.startswith(("anthropic", "claude")) else f"{server.url}/v1"
    assert main(["ask", "When does the ferry leave?", "--model", model, "--base-url", address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] == GOOD
    assert server.requests[0]["model"] == model.rpartition(":")[2]


@pytest.mark.usefixtures("home")
def test_an_address_without_a_model_and_a_model_without_a_key_are_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["ask", "When?", "--base-url", "http://localhost:1"]) == 2
    assert main(["ask", "When?", "--model", "gpt-x"]) == 2
    errors = capsys.readouterr().err.strip().split("\n")
    assert [error.split(": ")[1] for error in errors] == ["--base-url", "--model"]


def test_a_model_without_a_key_is_a_failure_of_generation() -> None:
    with pytest.raises(GenerationFailed):
        open_answerer("gpt-x")


def test_a_server_is_told_by_its_settings(server: ChatServer, tmp_path: Path) -> None:
    settings = ServerSettings.load({"model": "llama3.2", "base_url": f"{server.url}/v1"})
    pipeline = pipeline_maker(settings)(tmp_path)
    assert pipeline.modes["answerer"] == "llama3.2"
    pipeline.close()
