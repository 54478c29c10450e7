"""Objects of frameworks that raise whatever is asked of them: no hook raises, and each run is one whole session."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from spanforge.integrations import _clients, haystack, llama_index
from spanforge.integrations._langchain_handler import Handler
from spanforge.integrations._options import OPTIONS
from spanforge.integrations._runs import Run
from spanforge.integrations._stage import current_call
from spanforge.integrations.openai import PROVIDER
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents, capture

WORDS = "zq-secret-of-an-exception"


def _raise(*_: object, **__: object) -> Any:
    raise OSError(WORDS)


class Bomb:
    """Raises whatever it is asked."""

    __getattr__ = __bool__ = __len__ = __iter__ = __getitem__ = __str__ = __repr__ = __eq__ = __hash__ = _raise
    __contains__ = __int__ = __float__ = __call__ = __enter__ = _raise


class Mute(Bomb):
    """Does not even say what it is."""

    __getattribute__ = _raise


BOMBS = [Bomb, Mute]


@contextmanager
def traced() -> Generator[CapturedEvents]:
    with capture(strict=False) as events:
        yield events
    # Tests begin calls by hand, in their own context.
    current_call.set(None)


def check(events: CapturedEvents, *stages: str) -> None:
    """Check that there is one session, with these stages and no others."""
    deadline = time.monotonic() + 20
    while not events.of_type("llm.rag.session") and time.monotonic() < deadline:
        time.sleep(0.02)
    kinds = [event.event_type.removeprefix("llm.rag.") for event in events.all]
    assert sorted(set(kinds) - {"query"}) == sorted({*stages, "session"})
    assert len({event.session_id for event in events.all}) == kinds.count("session") == 1
    events.assert_no_text(WORDS)


def by_langchain(bomb: Any) -> None:
    handler = Handler()
    handler.on_chain_start(bomb, bomb, run_id=1, metadata={"thread_id": bomb})
    handler.on_retriever_start(bomb, bomb, run_id=2, parent_run_id=1, name=bomb, metadata=bomb)
    handler.on_retriever_end([bomb, bomb], run_id=2)
    handler.on_tool_start(bomb, bomb, run_id=3, parent_run_id=1, inputs=bomb)
    handler.on_tool_end(bomb, run_id=3)
    handler.on_chat_model_start(bomb, bomb, run_id=4, parent_run_id=1, metadata=bomb, invocation_params=bomb)
    handler.on_llm_new_token(bomb, chunk=bomb, run_id=4)
    handler.on_llm_end(bomb, run_id=4)
    handler.on_llm_start(bomb, bomb, run_id=5, parent_run_id=1, name=bomb)
    handler.on_llm_error(bomb, run_id=5)
    handler.on_chain_end(bomb, run_id=1)


def by_llama_index(bomb: Any) -> None:
    observer = llama_index.Observer(type(bomb))
    given = inspect.BoundArguments(inspect.Signature(), {"query": bomb})  # pyright: ignore[reportArgumentType]
    observer.enter("Engine.query-1", given, bomb)
    observer.enter("Retriever.retrieve-2", given, bomb, "Engine.query-1")
    observer.leave("Retriever.retrieve-2", [bomb])
    events: dict[str, dict[str, Any]] = {
        "LLMChatStartEvent": {"messages": bomb, "model_dict": bomb},
        "LLMChatInProgressEvent": {"response": bomb},
        "LLMChatEndEvent": {"response": bomb},
    }
    for name, fields in events.items():
        observer.event(type(name, (SimpleNamespace,), {})(span_id="Engine.query-1", **fields))
    observer.event(bomb)
    streamed = type("StreamingBomb", (), {"__getattribute__": _raise})()
    observer.leave("Engine.query-1", streamed)


def by_haystack(bomb: Any) -> None:
    tracer = haystack.Tracer(_Nothing(), haystack.Span)
    kinds = {"BombRetriever": "documents", "BombRanker": "documents", "BombGenerator": "replies"}
    with tracer.trace("haystack.pipeline.run", {"haystack.pipeline.input_data": {"query": bomb}}):
        for name, found in kinds.items():
            with tracer.trace("haystack.component.run", {"haystack.component.type": name}) as span:
                asked = {"query": bomb, "query_embedding": bomb, "documents": bomb, "messages": bomb}
                span.set_content_tag("haystack.component.input", asked)
                span.set_content_tag("haystack.component.output", {found: [bomb], "meta": [bomb]})


class _Nothing:
    """The tracer that was there, and its span."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_, **__: None

    @contextmanager
    def trace(self, *_: object, **__: object) -> Generator[Any]:
        yield self


def by_client(bomb: Any) -> None:
    body = {"model": "m", "messages": [bomb], "temperature": bomb}
    options = SimpleNamespace(json_data=body, method="post", url="/chat/completions")
    request = _clients._request(PROVIDER, lambda *_: bomb)
    assert request(None, None, options) is bomb


CASES: dict[str, tuple[Callable[[Any], None], tuple[str, ...]]] = {
    "langchain": (by_langchain, ("retrieved", "generated")),
    "llama_index": (by_llama_index, ("retrieved", "generated")),
    "haystack": (by_haystack, ("retrieved", "reranked", "generated")),
    "client": (by_client, ("generated",)),
}


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("name", CASES)
def test_every_hook_survives_and_every_stage_is_recorded(name: str, kind: type[Any]) -> None:
    call, stages = CASES[name]
    with traced() as events:
        call(kind())
        check(events, *stages)


@pytest.mark.parametrize("kind", BOMBS)
def test_documents_beside_one_that_raises_are_read(kind: type[Any]) -> None:
    handler = Handler()
    with traced() as events:
        handler.on_retriever_start(None, "q", run_id=1, name="r")
        good = SimpleNamespace(page_content="text", id="good", metadata={})
        handler.on_retriever_end([kind(), good], run_id=1)
        (found,) = events.of_type("llm.rag.retrieved")
        assert [chunk["chunk_id"] for chunk in found["chunks"]] == ["good"]
        assert found["total_found"] == 2


def test_a_conversation_that_cannot_be_told_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OPTIONS, "conversation", _raise)
    with traced() as events:
        run = Run("the question")
        run.called(None)
        run.stage("generation").finish()
        run.end()
        assert len(events.of_type("llm.rag.session")) == 1
    assert sf_rag.current_session_id() is None
