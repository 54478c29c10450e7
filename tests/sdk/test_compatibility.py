"""Code written for the earlier package keeps working: names, signatures, positions."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys

import pytest

import spanforge
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import RAGStatusInfo, SFClientConfig, SFRAGClient, configure, sf_feedback, sf_rag
from spanforge.sdk._base import SFServiceClient

KEYWORD = inspect.Parameter.KEYWORD_ONLY
SIGNATURES = {
    "trace_query": (["query"], {
        "session_id": None, "top_k": 5, "retriever_name": "", "embedding_model": "", "namespace": "", "latency_ms": 0.0,
        "filters": None,
    }),
    "trace_retrieval": (["session_id", "chunks"], {
        "total_found": None, "latency_ms": 0.0, "query_hash": "", "status": "ok", "error_message": None,
    }),
    "trace_generation": (["session_id", "model"], {
        "span_name": "rag-generation", "chunk_ids_used": None, "context_tokens": 0, "prompt_tokens": 0,
        "output_tokens": 0, "latency_ms": 0.0, "status": "ok", "grounding_score": None, "error_message": None,
    }),
    "end_session": (["session_id"], {}),
    "get_session": (["session_id"], {}),
    "get_status": ([], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_calls_take_what_they_took(name: str) -> None:
    positional, keywords = SIGNATURES[name]
    parameters = dict(inspect.signature(getattr(sf_rag, name)).parameters)
    assert list(parameters)[: len(positional)] == positional
    for keyword, default in keywords.items():
        assert parameters[keyword].kind is KEYWORD
        assert parameters[keyword].default == default


def test_the_calls_of_a_run_by_position(client: SFRAGClient) -> None:
    session_id = client.trace_query("q")
    client.trace_retrieval(session_id, [])
    client.trace_generation(session_id, "m")
    assert isinstance(client.get_session(session_id), RAGSessionPayload)
    assert isinstance(client.end_session(session_id), RAGSessionPayload)
    assert isinstance(client.get_status(), RAGStatusInfo)
    assert isinstance(client, SFServiceClient)


@pytest.mark.parametrize(
    "statement",
    [
        "from spanforge.sdk import sf_audit",
        "from spanforge import Tracer",
        "from spanforge import redact",
        "from spanforge.namespaces import consent",
    ],
)
def test_what_is_gone_says_so_in_one_sentence_that_helps_without_the_docs(statement: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^spanforge\.[\w.]+ is not part of spanforge 2: .*'spanforge<2'$"):
        exec(statement)  # noqa: S102  the words of a real import statement are what is tried


def test_what_is_gone_is_an_attribute_like_any_other_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^spanforge\.redact is not part of spanforge 2"):
        _ = spanforge.redact  # type: ignore[attr-defined]
    assert not hasattr(spanforge, "redact")


@pytest.mark.parametrize("name", ["spanforge.plugins", "spanforge.sdk.audit", "spanforge.reference.nothing"])
def test_modules_that_are_not_there_are_looked_for_as_any_other(name: str) -> None:
    assert importlib.util.find_spec(name) is None
    with pytest.raises(ModuleNotFoundError, match=f"^No module named '{name}'$"):
        importlib.import_module(name)


def test_the_earlier_path_of_the_metrics_has_the_same_ones() -> None:
    earlier, now = (importlib.import_module(name) for name in ("spanforge.sdk.metrics", "spanforge.metrics"))
    assert {name: getattr(earlier, name) for name in earlier.__all__} == {
        name: getattr(now, name) for name in earlier.__all__
    }


def test_importing_leaves_the_import_system_as_it_was() -> None:
    before = list(sys.meta_path), list(sys.path_hooks)
    importlib.reload(spanforge)
    assert (sys.meta_path, sys.path_hooks) == before
    assert not [finder for finder in sys.meta_path if "spanforge" in str(finder)]


@pytest.mark.parametrize("statement", ["from spanforge import read_evnts", "from spanforge.sdk import sf_rags"])
def test_a_misspelt_name_advises_no_older_version(statement: str) -> None:
    with pytest.raises(ImportError, match=r"^cannot import name") as caught:
        exec(statement)  # noqa: S102  the words of a real import statement are what is tried
    assert "spanforge<2" not in str(caught.value)


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = spanforge.sdk.no_such_name  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = spanforge.no_such_name


def test_the_door_leads_to_the_one_client() -> None:
    assert spanforge.sf_rag is sf_rag
    assert spanforge.sf_feedback is sf_feedback
    assert spanforge.configure is configure
    assert spanforge.read_events
    configure(sinks="memory", delivery="sync", sandbox=True)
    try:
        sf_rag.end_session(sf_rag.trace_query("q"))
        assert spanforge.flush(1) == 0
        assert spanforge.get_status().sinks["memory"].delivered == 2
        assert spanforge.shutdown(1) == 0
    finally:
        configure(SFClientConfig(), sandbox=True)


def test_before_the_first_call_there_is_nothing_to_wait_for() -> None:
    client = SFRAGClient(SFClientConfig())
    assert client.flush() == client.shutdown() == 0


async def test_nor_is_there_for_aflush() -> None:
    assert await SFRAGClient(SFClientConfig()).aflush() == 0


def test_a_binding_shows_nothing_of_what_it_holds() -> None:
    assert " at 0x" in repr(sf_rag.bind())
