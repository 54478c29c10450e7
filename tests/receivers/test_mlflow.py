"""An MLflow tracking server reads our spans: kinds, tokens, session, state."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.golden import VARIANTS
from support.isolated import Isolated, isolated, receiver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

URL = "http://127.0.0.1:15000"


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("mlflow")
    command = [receiver("mlflow"), "server", "--host", "127.0.0.1", "--port", "15000", "--workers", "1"]
    command += [
        "--backend-store-uri",
        f"sqlite:///{folder}/store.db",
        "--artifacts-destination",
        str(folder / "artifacts"),
    ]
    environment = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    with isolated(command, f"{URL}/health", folder / "log", environment) as server:
        headers = json.dumps({"x-mlflow-experiment-id": "0"})
        sent = server.ask("send", URL, "http/protobuf", headers, "evaluation", "error")
        assert sent == {"settled": [True] * 2, "lost": {}}
        yield server


def trace(server: Isolated, variant: str) -> Any:
    trace_id = VARIANTS[variant]()[0].trace_id
    return server.ask("get", f"{URL}/api/3.0/mlflow/traces/get?trace_id=tr-{trace_id}")["trace"]


def attributes(span: Any) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in span["attributes"]}


def test_every_span_has_its_kind(mlflow: Isolated):
    found = {s["name"]: attributes(s)["mlflow.spanType"] for s in trace(mlflow, "evaluation")["spans"]}
    assert found == {
        "rag.pipeline knowledge-base": "CHAIN",
        "rag.query knowledge-base": "CHAIN",
        "embeddings text-embedding-3-small": "EMBEDDING",
        "rag.retrieve pinecone": "RETRIEVER",
        "rag.rerank cross-encoder/ms-marco": "RERANKER",
        "chat gpt-4o": "LLM",
        "rag.evaluate knowledge-base": "EVALUATOR",
    }


def test_session_tokens_and_state_are_the_traces(mlflow: Isolated):
    info = trace(mlflow, "evaluation")["trace_info"]
    metadata = info["trace_metadata"]
    assert (info["state"], info["execution_duration"]) == ("OK", "1.045s")
    assert metadata["mlflow.trace.session"] == "01KDVD6H000000000000000000"
    assert json.loads(metadata["mlflow.trace.tokenUsage"])["total_tokens"] == 3300


def test_an_error_is_the_traces_state(mlflow: Isolated):
    assert trace(mlflow, "error")["trace_info"]["state"] == "ERROR"
