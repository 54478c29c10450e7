"""Haystack: a tracer in its one place for tracers, which passes everything on to the tracer that was there."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final

from spanforge.integrations._answers import read_answer
from spanforge.integrations._hooks import Hook, Undo
from spanforge.integrations._options import is_paused
from spanforge.integrations._questions import question_of
from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import Run, found_by
from spanforge.integrations._stage import Stage, current_call

__all__ = ["DISTRIBUTION", "HOOKS", "OLDEST"]

DISTRIBUTION: Final = "haystack-ai"
OLDEST: Final = (2, 20)
_GENERATORS: Final = ("Generator",)
_RETRIEVERS: Final = ("Retriever",)
_RANKERS: Final = ("Ranker", "Joiner")
_MODEL_CALLS: Final = frozenset({"haystack.agent.step.llm", "haystack.chat_generator.run"})


class _Place:
    """Where in a run a span is."""

    __slots__ = ("kind", "name", "parent", "run", "stage")

    def __init__(self, run: Run, parent: _Place | None, kind: str, name: str) -> None:
        self.run = run
        self.parent = parent
        self.kind = kind
        self.name = name
        self.stage: Stage | None = None

    def given(self, value: Any) -> None:
        """Read what a component is given: the stage begins."""
        if self.stage is not None or not isinstance(value, dict):
            return
        if self.kind == "retrieval":
            query = question_of(value.get("query"))
            self.stage = self.run.stage("retrieval")
            self.stage.query, self.stage.model = query, self.name
            top_k = {"top_k": value["top_k"]} if isinstance(value.get("top_k"), int) else {}
            self.run.asked(query, retriever_name=self.name, **top_k)
        elif self.kind == "rerank":
            self.stage = self.run.rerank(_count(value.get("documents")) or 0)
            self.stage.model = self.name
            self.run.asked(None)
        elif self.kind == "generation":
            self.stage = self.run.stage("generation")
            self.stage.details["span_name"] = self.name or "agent"
            self.run.called(value)
            current_call.set(self.stage)

    def gave(self, value: Any) -> None:
        """Read what a component returned."""
        if self.stage is None or not isinstance(value, dict):
            return
        if self.kind != "generation":
            self.stage.answered(lambda: [hit_of(one) for one in value.get("documents") or ()])
            return
        meta = _meta(value) or {}
        # Its own name is all that a component says of the model beforehand.
        self.stage.model = self.stage.model or str(meta.get("model") or self.name)
        self.stage.answered(lambda: answer_of(meta))


@quiet
def _count(found: Any) -> int:
    return sum(len(one) if isinstance(one, list) else 1 for one in found or ())


@quiet
def _meta(value: dict[str, Any]) -> dict[str, Any] | None:
    meta = next(iter(value.get("meta") or ()), None)
    for reply in value.get("replies") or ():
        meta = meta or getattr(reply, "meta", None)
    return meta


@quiet
def hit_of(document: Any) -> Any:
    """Return a document as a dict."""
    return {"id": document.id, "score": document.score, "content": document.content, "metadata": document.meta}


def answer_of(meta: dict[str, Any]) -> dict[str, Any]:
    """Return what a generator's `meta` says of an answer."""
    usage = meta.get("usage") or {}
    said = {"choices": (), "usage": usage, "model": meta.get("model"), "id": meta.get("id") or meta.get("response_id")}
    known = read_answer(said, {})
    for name, path in (("prompt_tokens", "input_tokens"), ("output_tokens", "output_tokens")):
        if isinstance(value := usage.get(path), int):
            known.setdefault(name, value)
    return known | ({"finish_reason": meta["finish_reason"]} if meta.get("finish_reason") else {})


def _kind_of(operation: str, tags: dict[str, Any]) -> str:
    if operation in _MODEL_CALLS:
        return "generation"
    name = str(tags.get("haystack.component.type") or "") if operation == "haystack.component.run" else ""
    for kind, ends in (("generation", _GENERATORS), ("retrieval", _RETRIEVERS), ("rerank", _RANKERS)):
        if name.endswith(ends):
            return kind
    return ""


class Span:
    """A span of the tracer that was there, whose tags we see too; mixed into Haystack's class."""

    def __init__(self, inner: Any, place: _Place | None) -> None:
        self.inner = inner
        self.place = place

    def set_tag(self, key: str, value: Any) -> None:
        """Pass a tag on."""
        self.inner.set_tag(key, value)

    def set_content_tag(self, key: str, value: Any) -> None:
        """Pass a tag on that has content, which the tracer may not want; we look what there is in it."""
        self.inner.set_content_tag(key, value)
        if self.place is not None:
            _content(self.place, key, value)

    def raw_span(self) -> Any:
        """Return the other tracer's own span."""
        return self.inner.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        """Return what the other tracer wants in logs."""
        return self.inner.get_correlation_data_for_logs()


class _Watch:
    """Tells a place of the error that its block is left with."""

    def __init__(self, place: _Place | None) -> None:
        self._place = place

    def __enter__(self) -> None:
        """The block begins."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            _failed(self._place, error)


class Tracer:
    """The tracer that was there, followed; mixed into Haystack's class. What it raises, it raised before."""

    def __init__(self, before: Any, span: type[Any]) -> None:
        self._before = before
        self._span = span

    @contextmanager
    def trace(self, operation_name: str, tags: Any = None, parent_span: Any = None) -> Generator[Any]:
        """Follow a block."""
        inner, above = (parent_span.inner, parent_span.place) if isinstance(parent_span, Span) else (parent_span, None)
        with self._before.trace(operation_name, tags=tags, parent_span=inner) as found:
            place = _entered(operation_name, tags or {}, above)
            span, outer = self._span(found, place), _span.get()
            _span.set(span)
            try:
                with _Watch(place):
                    yield span
            finally:
                _span.set(outer)
                _left(place)

    def current_span(self) -> Any:
        """Return the span that is active in this context."""
        return _span.get() or self._before.current_span()


_span: ContextVar[Any] = ContextVar("spanforge_haystack", default=None)


def _install(module: ModuleType) -> Undo:
    slot, before = module.tracer, module.tracer.actual_tracer
    span = type("SpanforgeSpan", (Span, module.Span), {})
    ours = slot.actual_tracer = type("SpanforgeTracer", (Tracer, module.Tracer), {})(before, span)
    forget = found_by(_current_run)

    def undo() -> None:
        if slot.actual_tracer is ours:
            slot.actual_tracer = before
        forget()

    return undo


def _current_run() -> Run | None:
    place = _current_place()
    return None if place is None else place.run


def _current_place() -> _Place | None:
    span = _span.get()
    return None if span is None else span.place


def _entered(operation: str, tags: dict[str, Any], above: _Place | None) -> _Place | None:
    found: list[_Place] = []
    _enter(found, operation, tags, above or _current_place())
    return found[0] if found else None


@quiet
def _enter(found: list[_Place], operation: str, tags: dict[str, Any], parent: _Place | None) -> None:
    if is_paused():
        return
    name = str(tags.get("haystack.component.type") or tags.get("haystack.component.name") or "")
    run = parent.run if parent is not None else Run(_question(tags.get("haystack.pipeline.input_data")))
    if parent is None:
        run.watch_task()
    found.append(_Place(run, parent, _kind_of(operation, tags), name))


@quiet
def _question(data: Any) -> str | None:
    """Return the question in a pipeline's input, which is by component or not."""
    if not isinstance(data, dict):
        return None
    inner = (question_of(value) for value in data.values() if isinstance(value, dict))
    return question_of(data) or next((found for found in inner if found), None)


@quiet
def _content(place: _Place, key: str, value: Any) -> None:
    if key.endswith(".input"):
        place.given(value)
    elif key.endswith(".output"):
        place.gave(value)


@quiet
def _failed(place: _Place | None, error: BaseException) -> None:
    if place is not None and place.stage is not None:
        place.stage.fail(error.__cause__ or error)


@quiet
def _left(place: _Place | None) -> None:
    if place is not None and place.parent is None:
        place.run.end()


HOOKS: Final = (Hook("haystack.tracing.tracer", _install),)
