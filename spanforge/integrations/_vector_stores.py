"""LangChain's vector stores: a search calls nobody back, so that the methods themselves are wrapped."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any, Final

from spanforge.integrations._hooks import Undo, let_go, replaced
from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import is_wanted
from spanforge.integrations.retrieving import Retrieval

__all__ = ["wrap_searches"]

_SYNC: Final = (
    "similarity_search", "similarity_search_with_score", "similarity_search_with_relevance_scores",
    "similarity_search_by_vector", "max_marginal_relevance_search", "max_marginal_relevance_search_by_vector",
)  # fmt: skip
_SEARCHES: Final = (*_SYNC, *(f"a{name}" for name in _SYNC))


def wrap_searches(module: ModuleType) -> Undo:
    """Have the searches of every vector store recorded: of the classes there are, and of those yet to be defined."""
    base, undos = module.VectorStore, list[Undo]()

    @quiet
    def wrap(kind: type[Any]) -> None:
        own = (name for name in _SEARCHES if inspect.isfunction(vars(kind).get(name)))
        undos.extend(replaced(kind, name, _recorded) for name in own)
        for further in kind.__subclasses__():
            wrap(further)

    def announcing(_before: Any) -> Any:
        def __init_subclass__(cls: type[Any], **given: Any) -> None:  # noqa: N807  it is that very hook
            super(base, cls).__init_subclass__(**given)
            wrap(cls)

        return classmethod(__init_subclass__)

    wrap(base)
    undos.append(replaced(base, "__init_subclass__", announcing))
    return lambda: let_go(undos)


def _recorded(original: Any) -> Any:
    """Wrap one search; inside a retriever, or another search, it only tells that one its scores."""
    usual_k = getattr(inspect.signature(original).parameters.get("k"), "default", None)

    @quiet
    def begun(store: Any, asked: Any = None, k: Any = usual_k, **given: Any) -> Retrieval | None:
        if not is_wanted():
            return None
        query = given.get("query", asked)
        details = {"top_k": k} if type(k) is int else {}
        return Retrieval(query if isinstance(query, str) else None, retriever_name=type(store).__name__, **details)

    @functools.wraps(original)
    def search(*args: Any, **kwargs: Any) -> Any:
        retrieval = begun(*args[:3], **kwargs)
        return original(*args, **kwargs) if retrieval is None else retrieval.call(original, args, kwargs)

    @functools.wraps(original)
    async def search_async(*args: Any, **kwargs: Any) -> Any:
        retrieval = begun(*args[:3], **kwargs)
        found = original(*args, **kwargs)
        return await (found if retrieval is None else retrieval.result_of(found))

    return search_async if inspect.iscoroutinefunction(original) else search
