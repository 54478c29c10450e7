"""LlamaIndex: its dispatcher tells of spans, what is called within what, and of events, what models are asked."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

from collections import OrderedDict
from types import ModuleType
from typing import Any, Final

from spanforge.integrations._answers import read_answer
from spanforge.integrations._hooks import Hook, Undo
from spanforge.integrations._llama_index_streams import follow, resumed
from spanforge.integrations._options import is_paused
from spanforge.integrations._questions import question_of
from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import Run, found_by
from spanforge.integrations._stage import Stage, current_call

__all__ = ["DISTRIBUTION", "HOOKS", "OLDEST"]

DISTRIBUTION: Final = "llama-index-core"
OLDEST: Final = (0, 12)
_MAX_NODES: Final = 100_000
_RETRIEVE: Final = frozenset({"retrieve", "aretrieve"})
_TOP_K: Final = ("similarity_top_k", "_similarity_top_k", "top_n")
_STARTS: Final = {"LLMChatStartEvent": "messages", "LLMCompletionStartEvent": "prompt"}
_PIECES: Final = frozenset({"LLMChatInProgressEvent", "LLMCompletionInProgressEvent"})
_ENDS: Final = frozenset({"LLMChatEndEvent", "LLMCompletionEndEvent"})
_HEARD: Final = frozenset({*_STARTS, *_PIECES, *_ENDS, "ExceptionEvent"})


class _Node:
    """A span that something is known of: a root, or one that is a stage. Spans below it that are neither stand for it.

    Attributes:
        id_: The span's own id.
    """

    __slots__ = ("call", "id_", "parent", "run", "stage")

    def __init__(self, id_: str, run: Run, parent: _Node | None) -> None:
        self.id_ = id_
        self.run = run
        self.parent = parent
        self.stage: Stage | None = None
        self.call: Stage | None = None

    def enclosing(self, name: str) -> Stage | None:
        """Return the nearest stage of a kind, at or above this span, that is not over."""
        node: _Node | None = self
        while node is not None:
            found: Stage | None = getattr(node, name)
            if found is not None and not found.is_done:
                return found
            node = node.parent
        return None


class Observer:
    """What the dispatcher tells, as runs and stages."""

    def __init__(self, retriever: type[Any]) -> None:
        self._retriever = retriever
        self._nodes: OrderedDict[str, _Node] = OrderedDict()

    # -- spans --------------------------------------------------------------------------------------------------

    @quiet
    def enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: str | None = None, **_more: Any
    ) -> None:
        """A call begins. Most are no stage, and this is on the way of every one."""
        if is_paused():
            return
        node = self._nodes.get(parent_id or "") or self._root(id_, bound_args)
        self._nodes[id_] = node
        node.run.nodes.add(id_)
        method = id_.partition("-")[0].rpartition(".")[2]
        if method in _RETRIEVE and isinstance(instance, self._retriever):
            self._retrieve(self._own(id_, node), instance, _asked(bound_args))
        elif method == "_postprocess_nodes" and (given := _asked(bound_args)) is not None:
            node = self._own(id_, node)
            node.stage = node.run.rerank(len(given))
            node.stage.model = _reranker(instance) or type(instance).__name__

    def _root(self, id_: str, bound_args: Any) -> _Node:
        """Begin a run, or go on with the one whose answer is being read."""
        run = resumed.get()
        if run is None:
            run = Run(question_of(_asked(bound_args)))
            run.on_end = self._forget
            run.watch_task()
        if len(self._nodes) > _MAX_NODES:
            self._nodes.popitem(last=False)
        return _Node(id_, run, None)

    def _own(self, id_: str, node: _Node) -> _Node:
        """Return the node of a span itself, which stood for the one above it until now."""
        if node.id_ != id_:
            node = self._nodes[id_] = _Node(id_, node.run, node)
        return node

    def _retrieve(self, node: _Node, instance: Any, asked: Any) -> None:
        query = question_of(asked)
        details: dict[str, Any] = {"retriever_name": type(instance).__name__}
        if (top_k := _top_k(instance)) is not None:
            details["top_k"] = top_k
        stage = node.run.stage("retrieval", node.enclosing("stage"))
        stage.query, stage.model = query, type(instance).__name__
        node.stage = stage
        node.run.asked(query, **details)

    @quiet
    def leave(self, id_: str, result: Any = None, **_more: Any) -> None:
        """A call has returned."""
        node = self._nodes.get(id_)
        if node is None or node.id_ != id_:
            return
        try:
            if node.stage is not None:
                node.stage.answered(lambda: [hit_of(one) for one in result or ()])
        finally:
            if node.parent is None and resumed.get() is None:
                node.run.end(awaits_stream=follow(result, node.run))

    @quiet
    def drop(self, id_: str, err: BaseException | None = None, **_more: Any) -> None:
        """A call has failed."""
        node = self._nodes.get(id_)
        if node is None or node.id_ != id_:
            return
        try:
            for stage in (node.stage, node.call):
                if stage is not None:
                    stage.fail(Exception if err is None else err)
        finally:
            if node.parent is None and resumed.get() is None:
                node.run.end()

    # -- events -------------------------------------------------------------------------------------------------

    @quiet
    def event(self, event: Any, **_more: Any) -> None:
        """Something has happened within a call to a model, or elsewhere."""
        name = type(event).__name__
        if name not in _HEARD or (node := self._nodes.get(id_ := event.span_id or "")) is None:
            return
        if name in _STARTS:
            self._call(self._own(id_, node), event, getattr(event, _STARTS[name]))
        elif node.id_ != id_ or (call := node.call) is None:
            return
        elif name in _PIECES:
            call.details["stream"] = True
            if getattr(event.response, "delta", None):
                call.first_token()
        elif name in _ENDS:
            call.answered(lambda: _answer(event.response))
        else:
            call.fail(event.exception)

    def _call(self, node: _Node, event: Any, asked: Any) -> None:
        if node.enclosing("call") is not None:
            # A model that completes by way of its chat is one call.
            return
        stage = node.call = node.run.stage("generation")
        node.run.called(asked)
        current_call.set(stage)
        told = event.model_dict
        stage.model = str(told.get("model") or told.get("model_name") or told.get("class_name") or "")
        if isinstance(temperature := told.get("temperature"), (int, float)):
            stage.details["temperature"] = temperature

    def current_run(self) -> Run | None:
        """Return the run that the code at work now was called from."""
        return node.run if (node := self._nodes.get(self.active_span() or "")) is not None else None

    def active_span(self) -> str | None:
        """Return the id of the span that is active in this context."""
        return None

    def _forget(self, run: Run) -> None:
        for id_ in tuple(run.nodes):  # other threads begin calls meanwhile
            self._nodes.pop(id_, None)


def _asked(bound_args: Any) -> Any:
    """Return the first of what a call is given."""
    return next(iter(bound_args.arguments.values()), None)


@quiet
def _reranker(instance: Any) -> str:
    return str(getattr(instance, "model", None) or "")


@quiet
def _top_k(instance: Any) -> int | None:
    return next((value for name in _TOP_K if isinstance(value := getattr(instance, name, None), int)), None)


def _answer(response: Any) -> dict[str, Any]:
    return read_answer(getattr(response, "raw", None), getattr(response, "additional_kwargs", {}))


@quiet
def hit_of(found: Any) -> Any:
    """Return a node and its score as a dict."""
    node = getattr(found, "node", None)
    if node is None:
        return found
    return {
        "id": node.node_id,
        "score": found.score,
        "content": getattr(node, "text", None),
        "metadata": node.metadata,
    }


def _install(_module: ModuleType) -> Undo:
    from llama_index.core.base.base_retriever import BaseRetriever  # noqa: PLC0415  only where it is loaded anyway
    from llama_index.core.instrumentation import get_dispatcher  # pyright: ignore[reportPrivateImportUsage]  # noqa: PLC0415
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler  # noqa: PLC0415
    from llama_index.core.instrumentation.span_handlers import BaseSpanHandler  # noqa: PLC0415

    observer = Observer(BaseRetriever)

    class Spans(BaseSpanHandler[Any]):
        span_enter = staticmethod(observer.enter)
        span_exit = staticmethod(observer.leave)
        span_drop = staticmethod(observer.drop)

        def new_span(self, *_: Any, **__: Any) -> Any:
            return None

        prepare_to_exit_span = prepare_to_drop_span = new_span

    class Events(BaseEventHandler):
        handle = staticmethod(observer.event)

    spans, events, dispatcher = Spans(), Events(), get_dispatcher()
    observer.active_span = _span_variable().get
    dispatcher.add_span_handler(spans)
    dispatcher.add_event_handler(events)
    forget = found_by(observer.current_run)

    def undo() -> None:
        # By identity: pydantic compares handlers by what is in them.
        dispatcher.span_handlers[:] = [one for one in dispatcher.span_handlers if one is not spans]
        dispatcher.event_handlers[:] = [one for one in dispatcher.event_handlers if one is not events]
        forget()

    return undo


def _span_variable() -> Any:
    try:
        from llama_index_instrumentation.span import active_span_id  # noqa: PLC0415
    except ImportError:
        from llama_index.core.instrumentation.span import active_span_id  # noqa: PLC0415
    return active_span_id


HOOKS: Final = (Hook("llama_index.core.base.base_retriever", _install),)
