"""LangChain's runs: one callback handler that is told of each, and how they hang together."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from spanforge._text import first
from spanforge.integrations._langchain_reading import (
    answer_of,
    conversation_of,
    describe,
    first_of,
    hits_of,
    retriever_of,
)
from spanforge.integrations._options import is_paused
from spanforge.integrations._questions import question_of
from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import Run
from spanforge.integrations._stage import Kind, Stage, current_call, current_retrieval

__all__ = ["Handler", "begun"]

_MAX_NODES: Final = 100_000
begun: ContextVar[list[Stage] | None] = ContextVar("spanforge_begun", default=None)
"""The calls to a model that an `agenerate` has begun, one for each prompt."""
_called: ContextVar[Stage | None] = ContextVar("spanforge_called", default=None)
"""The call to a model that the code at work now may be within, which as a root tells it nothing of itself."""


class _Node(NamedTuple):
    """Where a run of LangChain's stands among ours; steps that are no stage share their parent's place."""

    run: Run
    stage: Stage | None


class Handler:
    """What LangChain calls for every run of every kind; mixed into its base class for handlers once that is loaded."""

    run_inline = True
    """In the caller's own thread, task and order."""
    raise_error = ignore_chain = ignore_retriever = ignore_llm = ignore_chat_model = False
    """As in its base class, where each is a property, and asked for at every event."""

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[Any, _Node] = {}

    # -- runs ---------------------------------------------------------------------------------------------------

    @quiet
    def on_chain_start(
        self, _serialized: Any, asked: Any, /, *, run_id: object, parent_run_id: object | None = None, **told: Any
    ) -> None:
        """A chain, a graph, one of its steps or a tool begins; `told` of a tool has `inputs` once more."""
        self._begin(run_id, parent_run_id, asked, told)

    on_tool_start = on_chain_start

    @quiet
    def on_chain_end(self, _outputs: Any, *, run_id: object, **_told: Any) -> None:
        """A chain, a graph, a step or a tool has ended."""
        self._end(run_id)

    on_tool_end = on_chain_error = on_tool_error = on_chain_end

    # -- retrievers ---------------------------------------------------------------------------------------------

    @quiet
    def on_retriever_start(self, _serialized: Any, query: Any, **told: Any) -> None:
        """A retriever is asked."""
        if (stage := self._stage("retrieval", query, told)) is None:
            return
        details = retriever_of(told) or {}
        stage.query, stage.model = question_of(query), details.get("retriever_name", "")
        stage.run.asked(stage.query, **details)

    @quiet
    def on_retriever_end(self, documents: Any, *, run_id: object, **_told: Any) -> None:
        """A retriever has answered."""
        self._end(run_id, lambda stage: stage.answered(lambda: hits_of(documents, stage.scores) or documents))

    @quiet
    def on_retriever_error(self, error: BaseException, *, run_id: object, **_told: Any) -> None:
        """A retriever has failed."""
        self._end(run_id, lambda stage: stage.fail(error))

    # -- models -------------------------------------------------------------------------------------------------

    @quiet
    def on_chat_model_start(self, serialized: Any, messages: Any, **told: Any) -> None:
        """A chat model is called."""
        self._call(serialized, messages, told)

    @quiet
    def on_llm_start(self, serialized: Any, prompts: Any, **told: Any) -> None:
        """A model that completes text is called."""
        self._call(serialized, prompts, told)

    def _call(self, serialized: Any, prompts: Any, told: dict[str, Any]) -> None:
        asked = first_of(prompts)
        if (stage := self._stage("generation", asked, told)) is None:
            return
        stage.run.called(asked)
        current_call.set(stage)
        if told.get("batch_size", 1) == 1:
            # Of several prompts, each is announced before the first: none is within another.
            _called.set(stage)
        if (calls := begun.get()) is not None:
            calls.append(stage)
        describe(stage, serialized or {}, told)

    def announce(self, run_id: object) -> None:
        """Say that the requests from now on are those of this call to a model."""
        node = self._nodes.get(getattr(run_id, "int", run_id))
        if node is not None and node.stage is not None:
            current_call.set(node.stage)
            _called.set(node.stage)

    @quiet
    def on_llm_new_token(self, token: Any, *, run_id: object, chunk: Any = None, **_told: Any) -> None:
        """A piece of an answer has come; the first piece is often empty."""
        node = self._nodes.get(getattr(run_id, "int", run_id))
        if node is None or node.stage is None:
            return
        node.stage.details["stream"] = True
        message = getattr(chunk, "message", None)
        if token or getattr(message, "content", None) or getattr(message, "tool_call_chunks", None):
            node.stage.first_token()

    @quiet
    def on_llm_end(self, response: Any, *, run_id: object, **_told: Any) -> None:
        """A model has answered."""
        self._end(run_id, lambda stage: stage.answered(lambda: answer_of(response)))

    @quiet
    def on_llm_error(self, error: BaseException, *, run_id: object, **_told: Any) -> None:
        """A model has failed."""
        self._end(run_id, lambda stage: stage.fail(error))

    # -- how they hang together ---------------------------------------------------------------------------------

    def _begin(self, run_id: object, parent_id: object, asked: Any, told: dict[str, Any]) -> _Node | None:
        """Place a run below its parent, or as the root of a run of ours. Of most, which are no stage, this is all."""
        # By the number of a UUID, whose own hash is Python's work; an application may give a run an id of any kind.
        key = getattr(run_id, "int", run_id)
        nodes = self._nodes
        node = nodes.get(getattr(parent_id, "int", parent_id))
        if node is None:
            if is_paused():
                return None
            within, call = _open_retrieval(), _open_call()
            outer = within or call
            run = self._run(key, asked, told.get("metadata")) if outer is None else outer.run
            node = _Node(run, within)
        nodes[key] = node
        node.run.nodes.add(key)
        if len(nodes) > _MAX_NODES:
            for oldest in first(nodes.__iter__, _MAX_NODES // 2):
                nodes.pop(oldest, None)
        return node

    def _run(self, root: Any, asked: Any, metadata: Any) -> Run:
        run = Run(question_of(asked), conversation_of(metadata) if metadata else None)
        run.root, run.on_end = root, self._forget
        run.watch_task()
        return run

    def _stage(self, kind: Kind, asked: Any, told: dict[str, Any]) -> Stage | None:
        run_id: object = told["run_id"]
        if is_paused() or (node := self._begin(run_id, told.get("parent_run_id"), asked, told)) is None:
            return None
        # A step within a retriever is the retriever's: what it finds is found inside.
        stage = node.run.stage(kind, node.stage or _open_retrieval())
        self._nodes[getattr(run_id, "int", run_id)] = _Node(node.run, stage)
        return stage

    def _end(self, run_id: object, settle: Callable[[Stage], None] | None = None) -> None:
        key = getattr(run_id, "int", run_id)
        node = self._nodes.pop(key, None)
        if node is None:
            return
        run, stage = node
        run.nodes.discard(key)
        try:
            if settle is not None and stage is not None:
                settle(stage)
        finally:
            if key == run.root:
                run.end()

    def current_run(self) -> Run | None:
        """Return the run that the code at work now was called from, as LangChain's own context says."""
        config = sys.modules["langchain_core.runnables.config"].var_child_runnable_config.get()
        parent = getattr((config or {}).get("callbacks"), "parent_run_id", None)
        if node := self._nodes.get(getattr(parent, "int", parent)):
            return node.run
        # Retrievers and models tell the code within nothing of themselves; where one is the root there is no other.
        within = _open_retrieval() or _open_call()
        return within.run if within else None

    def _forget(self, run: Run) -> None:
        for key in tuple(run.nodes):  # other threads begin and end steps meanwhile
            self._nodes.pop(key, None)


def _open_retrieval() -> Stage | None:
    """Return the retrieval that this is called within: a retriever may ask others, and pass no callbacks on."""
    found = current_retrieval.get()
    return found if isinstance(found, Stage) and not found.is_done else None


def _open_call() -> Stage | None:
    """Return the call to a model that this is made within; one that streams may be its consumer's doing as well."""
    found = _called.get()
    return None if found is None or found.is_done or "stream" in found.details else found
