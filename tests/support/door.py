"""Every public call of the SDK, found by `inspect`: a method that is added is tried like the others, by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from spanforge.sdk import SFFeedbackClient, SFRAGClient

SESSION = "session-of-the-test"

# What a scope's `**details` may hold: the keywords of the call it makes when it is left.
_DETAILS_OF = {
    "session": "trace_query",
    "retrieval": "trace_retrieval",
    "rerank": "trace_rerank",
    "generation": "trace_generation",
}
_OWNERS: dict[str, Callable[[SFRAGClient], Any]] = {
    "session": lambda client: client.session("q", session_id=SESSION),
    "retrieval": lambda client: client.retrieval(SESSION),
    "rerank": lambda client: client.rerank("m", SESSION),
    "generation": lambda client: client.generation("m", SESSION),
    "attach": lambda client: client.attach(SESSION),
    "bind": lambda client: client.bind(),
}
_NOT_A_TEXT_CALL = {"cell", "configure"}
"""`cell` is no call; `configure` has tests of its own, because it is meant to raise."""


class Place(NamedTuple):
    """One argument of one public call.

    Attributes:
        owner: `sf_rag`, `sf_feedback` or the name of the scope whose method it is.
        method: The method.
        argument: The parameter, or a keyword its `**` takes.
    """

    owner: str
    method: str
    argument: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.method}({self.argument})"

    @property
    def emits(self) -> bool:
        """True where the call, with a session that is open, emits one event."""
        return self.method.startswith("trace_") or self.method in {"escalate", "submit"}

    def call(self, rag: SFRAGClient, feedback: SFFeedbackClient, value: Any) -> Any:
        """Make the call with this value and good ones for the other arguments; a scope is entered and left."""
        return self._on_owner(rag, feedback, lambda owner: self._call(owner, value))

    def call_with(self, rag: SFRAGClient, feedback: SFFeedbackClient, *values: Any) -> Any:
        """Make the call with these arguments, by place, and no others."""
        return self._on_owner(rag, feedback, lambda owner: getattr(owner, self.method)(*values))

    def _on_owner(self, rag: SFRAGClient, feedback: SFFeedbackClient, call: Callable[[Any], Any]) -> Any:
        owner = {"sf_rag": rag, "sf_feedback": feedback}.get(self.owner)
        if owner is not None:
            return call(owner)
        with _OWNERS[self.owner](rag) as scope:
            return call(scope)

    def _call(self, owner: Any, value: Any) -> Any:
        arguments = {**_needed(getattr(owner, self.method)), self.argument: value}
        positional = [arguments.pop(name) for name in _positional_only(getattr(owner, self.method), arguments)]
        result = getattr(owner, self.method)(*positional, **arguments)
        if self.method in _OWNERS:
            with result:
                pass
        return result


def places() -> Iterator[Place]:
    """Yield every argument of every public call."""
    for owner, cls in {"sf_rag": SFRAGClient, "sf_feedback": SFFeedbackClient, **_scopes()}.items():
        for name, member in inspect.getmembers(cls, callable):
            if name.startswith("_") or name in _NOT_A_TEXT_CALL:
                continue
            for argument in _arguments(name, member):
                yield Place(owner, name, argument)


def _scopes() -> dict[str, type]:
    client = SFRAGClient.__new__(SFRAGClient)
    SFRAGClient.__init__(client)
    kinds: dict[str, type] = {}
    for name in _OWNERS:
        hint = inspect.signature(getattr(SFRAGClient, name), eval_str=True).return_annotation
        kinds[name] = hint
    return kinds


def _arguments(method: str, member: Callable[..., Any]) -> Iterator[str]:
    for parameter in inspect.signature(member).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            target = _DETAILS_OF.get(method)
            yield from (
                sorted(inspect.signature(getattr(SFRAGClient, target)).parameters.keys() - {"self", "query"})
                if target
                else ()
            )
            yield "no_such_keyword" if target else parameter.name
        else:
            yield parameter.name


def _needed(method: Callable[..., Any]) -> dict[str, Any]:
    """Return good values for what a call must have, and for what makes it belong to the open session."""
    good = {"query": "q", "session_id": SESSION, "model": "m", "rule": "r", "rating": "thumbs_up"}
    parameters = inspect.signature(method).parameters
    return {name: good[name] for name in parameters if name in good}


def _positional_only(method: Callable[..., Any], arguments: dict[str, Any]) -> list[str]:
    kinds = inspect.signature(method).parameters
    return [name for name in arguments if name in kinds and kinds[name].kind is inspect.Parameter.VAR_POSITIONAL]
