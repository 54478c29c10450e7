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
        "import spanforge.sdk.audit",
        "from spanforge.sdk.audit import SFAuditClient",
        "import spanforge.export.otlp",
        "from spanforge import Tracer",
        "from spanforge.namespaces import consent",
        "from spanforge.integrations.openai import patch",
    ],
)
def test_what_is_gone_says_so_in_one_sentence_that_helps_without_the_docs(statement: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^spanforge\.[\w.]+ is not part of spanforge 2: .*'spanforge<2'$"):
        exec(statement)  # noqa: S102  the words of a real import statement are what is tried


def test_what_others_lack_is_said_in_pythons_words() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'spanforge\.reference\.nothing'$"):
        importlib.import_module("spanforge.reference.nothing")
    assert importlib.util.find_spec("spanforge_something_else") is None


def test_a_door_that_is_loaded_anew_explains_no_more_than_before() -> None:
    before = list(sys.meta_path)
    importlib.reload(spanforge)
    assert sys.meta_path == before


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
