"""LangChain and LangGraph: one callback handler on every run, by the hook that the framework has for it."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final, NamedTuple

from spanforge._text import first
from spanforge.integrations._hooks import Hook, Undo, let_go, replaced
from spanforge.integrations._options import is_paused
from spanforge.integrations._questions import question_of
from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import Run, found_by
from spanforge.integrations._stage import Kind, Stage, current_call, current_retrieval
from spanforge.integrations._vector_stores import wrap_searches

__all__ = ["DISTRIBUTION", "HOOKS", "OLDEST"]

DISTRIBUTION: Final = "langchain-core"
OLDEST: Final = (0, 3)
_MAX_NODES: Final = 100_000
_CONVERSATIONS: Final = ("thread_id", "session_id", "conversation_id")
_KEYWORDS: Final = "search_kwargs"
_COUNTS: Final = ("k", "top_k", "top_n")
_asking: ContextVar[tuple[Any, dict[str, Any]] | None] = ContextVar("spanforge_asking", default=None)
"""The retriever that is asked, which its callbacks do not say, and what it is given."""

_called: ContextVar[Stage | None] = ContextVar("spanforge_called", default=None)
"""The call to a model that the code at work now may be within, which as a root tells it nothing of itself."""

_begun: ContextVar[list[Stage] | None] = ContextVar("spanforge_begun", default=None)
"""The calls to a model that an `agenerate` has begun, one for each prompt."""


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
        details = _retriever(told) or {}
        stage.query, stage.model = question_of(query), details.get("retriever_name", "")
        stage.run.asked(stage.query, **details)

    @quiet
    def on_retriever_end(self, documents: Any, *, run_id: object, **_told: Any) -> None:
        """A retriever has answered."""
        self._end(run_id, lambda stage: stage.answered(lambda: _hits_of(documents, stage.scores) or documents))

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
        asked = _first(prompts)
        if (stage := self._stage("generation", asked, told)) is None:
            return
        stage.run.called(asked)
        _say_called(stage)
        if (begun := _begun.get()) is not None:
            begun.append(stage)
        _describe(stage, serialized or {}, told)

    def announce(self, run_id: object) -> None:
        """Say that the requests from now on are those of this call to a model."""
        node = self._nodes.get(getattr(run_id, "int", run_id))
        if node is not None and node.stage is not None:
            _say_called(node.stage)

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
        self._end(run_id, lambda stage: stage.answered(lambda: _answer(response)))

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
        run = Run(question_of(asked), _conversation(metadata) if metadata else None)
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


def _say_called(stage: Stage) -> None:
    current_call.set(stage)
    _called.set(stage)


def _open_call() -> Stage | None:
    """Return the call to a model that this is made within; one that streams may be its consumer's doing as well."""
    found = _called.get()
    return None if found is None or found.is_done or "stream" in found.details else found


@quiet
def _conversation(metadata: Any) -> Any:
    return next((found for name in _CONVERSATIONS if (found := metadata.get(name))), None)


@quiet
def _first(asked: Any) -> Any:
    return asked[0] if asked else None


@quiet
def _retriever(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a retriever, as keywords of `trace_query`."""
    metadata = told.get("metadata") or {}
    return {
        "retriever_name": told.get("name") or metadata.get("ls_retriever_name") or "",
        "embedding_provider": metadata.get("ls_embedding_provider"),
        "top_k": _top_k(),
    }


@quiet
def _describe(stage: Stage, serialized: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Add what is said of a model before it answers."""
    metadata, parameters = told.get("metadata") or {}, told.get("invocation_params") or {}
    model = metadata.get("ls_model_name") or parameters.get("model") or parameters.get("model_name")
    model = model or told.get("name") or serialized.get("name")
    stage.model = model if isinstance(model, str) else ""
    stage.details |= {
        "span_name": told.get("name") or "rag-generation",
        "provider": metadata.get("ls_provider"),
        "temperature": metadata.get("ls_temperature"),
    }


@quiet
def _hits_of(documents: Any, scores: Mapping[int, tuple[Any, Any]]) -> list[dict[str, Any]]:
    """Return documents as dicts, which cost less to read than to ask each for every name that there might be."""
    hits: list[dict[str, Any]] = [
        {"id": one.id, "content": one.page_content, "metadata": one.metadata} for one in documents
    ]
    for one, hit in zip(documents, hits, strict=True) if scores else ():
        if id(one) in scores:
            hit["score"] = scores[id(one)][1]
    return hits


def _answer(response: Any) -> dict[str, Any]:
    """Return what an answer says of itself."""
    generation = response.generations[0][0] if response.generations and response.generations[0] else None
    message = getattr(generation, "message", None)
    said: Mapping[str, Any] = {
        **(response.llm_output or {}),
        **(getattr(generation, "generation_info", None) or {}),
        **(getattr(message, "response_metadata", None) or {}),
    }
    own_id = getattr(message, "id", None)
    is_made_up = isinstance(own_id, str) and own_id.startswith(("run-", "lc_run-", "lc_"))
    usage = getattr(message, "usage_metadata", None)
    details = {
        "response_model": said.get("model_name") or said.get("model"),
        "finish_reason": said.get("finish_reason") or said.get("stop_reason") or said.get("done_reason"),
    }
    if (usage or {}).get("total_cost") == 0:
        # Out of LangChain's own cache, which marks it so: its tokens and its id are those of the call that filled it.
        return {**details, "cost_usd": 0.0}
    return {
        **details,
        "response_id": said.get("id") or (None if is_made_up else own_id),
        **_tokens(usage, said.get("token_usage") or {}),
    }


def _tokens(usage: Mapping[str, Any] | None, older: Mapping[str, Any]) -> dict[str, Any]:
    if usage is None:
        return {"prompt_tokens": older.get("prompt_tokens"), "output_tokens": older.get("completion_tokens")}
    given, taken = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "cached_tokens": given.get("cache_read"),
        "cache_write_tokens": given.get("cache_creation"),
        "reasoning_tokens": taken.get("reasoning"),
    }


def _register(module: ModuleType) -> Undo:
    from langchain_core.callbacks.base import BaseCallbackHandler  # noqa: PLC0415  only where it is loaded anyway

    handler = type("SpanforgeHandler", (Handler, BaseCallbackHandler), {})()
    hook = (ContextVar("spanforge_langchain", default=handler), True, None, None)
    module._configure_hooks.append(hook)  # noqa: SLF001  what `register_configure_hook` does, which cannot be undone
    forget = found_by(handler.current_run)

    def undo() -> None:
        module._configure_hooks.remove(hook)  # noqa: SLF001
        forget()

    return undo


@quiet
def _top_k() -> int | None:
    """Return how many documents the retriever was asked for, as far as it says."""
    retriever, given = _asking.get() or (None, {})
    own = {name: getattr(retriever, name) for name in _possible_counts(type(retriever))}
    places: tuple[Mapping[str, Any], ...] = (given, own.pop(_KEYWORDS, None) or {}, own)
    found = (place.get(name) for place in places if place for name in _COUNTS)
    return next((value for value in found if isinstance(value, int)), None)


@functools.lru_cache(maxsize=256)
def _possible_counts(kind: Any) -> tuple[str, ...]:
    """Return what retrievers of a class may say of it: that it says nothing takes a model of pydantic long to say."""
    known = getattr(kind, "model_fields", {})
    return tuple(name for name in (_KEYWORDS, *_COUNTS) if name in known or hasattr(kind, name))


def _watched(original: Any) -> Any:
    """Wrap a coroutine function whose cancelling LangChain tells nobody of."""

    @functools.wraps(original)
    async def call(*args: Any, **kwargs: Any) -> Any:
        begun: list[Stage] = []
        token = _begun.set(begun)
        try:
            return await original(*args, **kwargs)
        except asyncio.CancelledError:
            _cancelled(begun)
            raise
        finally:
            _begun.reset(token)

    return call


def _asked(original: Any) -> Any:
    """Wrap a retriever's `invoke`."""

    @functools.wraps(original)
    def invoke(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = _asking.set((self, kwargs))
        try:
            return original(self, *args, **kwargs)
        finally:
            _asking.reset(token)

    return invoke


def _asked_async(original: Any) -> Any:
    """Wrap a retriever's `ainvoke`."""

    @functools.wraps(original)
    async def ainvoke(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = _asking.set((self, kwargs))
        try:
            return await original(self, *args, **kwargs)
        except asyncio.CancelledError:
            _cancelled([current_retrieval.get()])
            raise
        finally:
            _asking.reset(token)

    return ainvoke


def _ask(module: ModuleType) -> Undo:
    undos = [
        replaced(module.BaseRetriever, "invoke", _asked),
        replaced(module.BaseRetriever, "ainvoke", _asked_async),
    ]
    return lambda: let_go(undos)


@quiet
def _cancelled(stages: Sequence[Any]) -> None:
    for stage in stages:
        if isinstance(stage, Stage):
            stage.cancel()
            stage.run.end_if_alone(stage)


def _announced(original: Any) -> Any:
    """Wrap what calls a model for one of several prompts, all of which were announced before the first."""

    @functools.wraps(original)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        _announce(kwargs.get("run_manager"))
        return original(self, *args, **kwargs)

    return generate


def _announced_async(original: Any) -> Any:
    """Wrap its asynchronous twin: each prompt has a task, and says so in that task's own context."""

    @functools.wraps(original)
    async def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        _announce(kwargs.get("run_manager"))
        return await original(self, *args, **kwargs)

    return generate


@quiet
def _announce(manager: Any) -> None:
    for handler in getattr(manager, "handlers", ()):
        if isinstance(handler, Handler):
            handler.announce(manager.run_id)


def _watch(class_name: str, method: str) -> Callable[[ModuleType], Undo]:
    return lambda module: replaced(getattr(module, class_name), method, _watched)


def _announce_each(module: ModuleType) -> Undo:
    kind = module.BaseChatModel
    wraps = {"_generate_with_cache": _announced, "_agenerate_with_cache": _announced_async}
    undos = [replaced(kind, name, wrap) for name, wrap in wraps.items() if hasattr(kind, name)]
    return lambda: let_go(undos)


HOOKS: Final = (
    Hook("langchain_core.tracers.context", _register),
    Hook("langchain_core.language_models.chat_models", _watch("BaseChatModel", "agenerate")),
    Hook("langchain_core.language_models.chat_models", _announce_each),
    Hook("langchain_core.retrievers", _ask),
    Hook("langchain_core.vectorstores.base", wrap_searches),
    Hook("langchain_core.language_models.llms", _watch("BaseLLM", "agenerate")),
)
