"""Arize Phoenix reads our spans as OpenInference: kinds, documents, scores, sessions, errors, and its own page."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from support.golden import CHUNKS, VARIANTS
from support.isolated import Isolated, isolated, receiver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

URL = "http://127.0.0.1:16006"
WHOLE = VARIANTS["evaluation"]()[0].trace_id


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("phoenix")
    environment = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": "16006",
        "PHOENIX_GRPC_PORT": "14317",
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    with isolated([receiver("phoenix"), "serve"], f"{URL}/healthz", folder / "log", environment) as server:
        sent = server.ask("send", URL, "http/protobuf", "{}", "evaluation", "error", "timeout")
        assert sent == {"settled": [True] * 3, "lost": {}}
        sent = server.ask("send", "http://127.0.0.1:14317", "grpc", "{}", "rerank", "evaluation")
        assert sent == {"settled": [True] * 2, "lost": {}}
        yield server


def spans(server: Isolated, trace_id: str, expected: int) -> dict[str, Any]:
    """Return the spans of a trace by name, once Phoenix, which stores in the background, has them."""
    for _ in range(60):
        found = server.ask("get", f"{URL}/v1/projects/default/spans?limit=200")["data"]
        of_trace = [span for span in found if span["context"]["trace_id"] == trace_id]
        if len(of_trace) >= expected:
            break
        time.sleep(0.5)
    assert len(of_trace) == expected
    return {span["name"]: span for span in of_trace}


def test_the_tree_has_seven_spans_of_their_kinds_and_sending_twice_made_no_second(phoenix: Isolated):
    tree = spans(phoenix, WHOLE, 7)
    assert {name: span["span_kind"] for name, span in tree.items()} == {
        "rag.pipeline knowledge-base": "CHAIN",
        "rag.query knowledge-base": "CHAIN",
        "embeddings text-embedding-3-small": "EMBEDDING",
        "rag.retrieve pinecone": "RETRIEVER",
        "rag.rerank cross-encoder/ms-marco": "RERANKER",
        "chat gpt-4o": "LLM",
        "rag.evaluate knowledge-base": "EVALUATOR",
    }
    root = tree["rag.pipeline knowledge-base"]
    assert root["parent_id"] is None
    assert tree["chat gpt-4o"]["parent_id"] == root["context"]["span_id"]
    # As OpenTelemetry asks of instrumentation: unset where nothing failed.
    assert {span["status_code"] for span in tree.values()} == {"UNSET"}


def test_documents_and_scores_are_in_order(phoenix: Isolated):
    retrieval = spans(phoenix, WHOLE, 7)["rag.retrieve pinecone"]["attributes"]
    for number, chunk in enumerate(CHUNKS):
        assert retrieval[f"retrieval.documents.{number}.document.id"] == chunk.chunk_id
        assert retrieval[f"retrieval.documents.{number}.document.score"] == chunk.score
    assert "llm.model_name" not in retrieval


def test_the_rerank_and_the_model_are_read(phoenix: Isolated):
    tree = spans(phoenix, WHOLE, 7)
    rerank = tree["rag.rerank cross-encoder/ms-marco"]["attributes"]
    assert rerank["reranker.output_documents.0.document.id"] == "chunk-2"
    chat = tree["chat gpt-4o"]["attributes"]
    assert (chat["llm.model_name"], chat["llm.token_count.total"]) == ("gpt-4o", 3300)


def test_errors_are_errors(phoenix: Isolated):
    failed = spans(phoenix, VARIANTS["error"]()[0].trace_id, 4)
    assert failed["chat gpt-4o"]["status_code"] == "ERROR"
    assert failed["chat gpt-4o"]["status_message"] == "RateLimitError"
    assert failed["rag.pipeline unknown"]["status_code"] == "ERROR"
    late = spans(phoenix, VARIANTS["timeout"]()[0].trace_id, 4)
    assert late["rag.retrieve pinecone"]["status_code"] == "ERROR"


def test_sessions_are_listed_with_their_tokens(phoenix: Isolated):
    spans(phoenix, WHOLE, 7)
    listed = phoenix.ask("get", f"{URL}/v1/projects/default/sessions")["data"]
    by_id = {session["session_id"]: session for session in listed}
    assert by_id["01KDVD6H000000000000000000"]["token_count_total"] == 3300
    assert "golden-rerank" in by_id


def test_the_page_of_the_trace_shows_the_tree(phoenix: Isolated, tmp_path: Path):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed; .ci/run installs it")
    spans(phoenix, WHOLE, 7)
    projects = json.dumps({"query": "{ projects { edges { node { id name } } } }"})
    answer = phoenix.ask("post", f"{URL}/graphql", projects)
    project = answer["data"]["projects"]["edges"][0]["node"]["id"]
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    flags += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1500,1000", "--virtual-time-budget=30000"]
    page = f"{URL}/projects/{project}/traces/{WHOLE}"
    shown = phoenix.run(browser, *flags, "--dump-dom", page, timeout=180)
    for name in ("rag.pipeline knowledge-base", "rag.retrieve pinecone", "chat gpt-4o", "rag.evaluate knowledge-base"):
        assert name in shown
    picture = tmp_path / "trace.png"
    phoenix.run(browser, *flags, f"--screenshot={picture}", page, timeout=180)
    assert picture.read_bytes().startswith(b"\x89PNG")
