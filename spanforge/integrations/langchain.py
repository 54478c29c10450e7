"""LangChain and LangGraph: one callback handler on every run, by the hook that the framework has for it."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final

from spanforge.integrations._hooks import Hook, Undo, let_go, replaced
from spanforge.integrations._langchain_handler import Handler, begun
from spanforge.integrations._langchain_reading import asking
from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import found_by
from spanforge.integrations._stage import Stage, current_retrieval
from spanforge.integrations._vector_stores import wrap_searches

__all__ = ["DISTRIBUTION", "HOOKS", "OLDEST"]

DISTRIBUTION: Final = "langchain-core"
OLDEST: Final = (0, 3)


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


def _asked(original: Any) -> Any:
    """Wrap a retriever's `invoke`."""

    @functools.wraps(original)
    def invoke(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = asking.set((self, kwargs))
        try:
            return original(self, *args, **kwargs)
        finally:
            asking.reset(token)

    return invoke


def _asked_async(original: Any) -> Any:
    """Wrap a retriever's `ainvoke`."""

    @functools.wraps(original)
    async def ainvoke(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = asking.set((self, kwargs))
        try:
            return await original(self, *args, **kwargs)
        except asyncio.CancelledError:
            _cancelled([current_retrieval.get()])
            raise
        finally:
            asking.reset(token)

    return ainvoke


def _ask(module: ModuleType) -> Undo:
    undos = [
        replaced(module.BaseRetriever, "invoke", _asked),
        replaced(module.BaseRetriever, "ainvoke", _asked_async),
    ]
    return lambda: let_go(undos)


def _watched(original: Any) -> Any:
    """Wrap a coroutine function whose cancelling LangChain tells nobody of."""

    @functools.wraps(original)
    async def call(*args: Any, **kwargs: Any) -> Any:
        calls: list[Stage] = []
        token = begun.set(calls)
        try:
            return await original(*args, **kwargs)
        except asyncio.CancelledError:
            _cancelled(calls)
            raise
        finally:
            begun.reset(token)

    return call


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
