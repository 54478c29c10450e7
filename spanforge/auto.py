"""Tracing without changing calls: `setup()` for frameworks and clients, `@trace_rag` on a retriever.

`python -m spanforge.run app.py` does it for an application that calls nothing of this, `SPANFORGE_AUTO=1` for one that
imports anything of spanforge.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

from spanforge._warnings import warn
from spanforge.config import auto_is_wanted
from spanforge.exceptions import ConfigError
from spanforge.integrations._hooks import Undo, let_go, take_hold
from spanforge.integrations._options import OPTIONS, paused
from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import follow_lists
from spanforge.integrations.decorating import trace_rag

__all__ = ["SetupReport", "patched_integrations", "paused", "setup", "status", "teardown", "trace_rag"]

FRAMEWORKS: Final = {
    "langchain": "langchain_core:rag",
    "llama_index": "llama_index:rag",
    "haystack": "haystack:rag",
    "openai": "openai:rag",
    "anthropic": "anthropic:rag",
}
"""What can be traced, and what a report calls it."""

State = Literal["traced", "unsupported", "not installed", "off"]


class SetupReport(set[str]):
    """The names that a call has changed, as a set; what became of each framework is in `frameworks`.

    Attributes:
        frameworks: By framework: `traced` (now, or as soon as the application imports it), `unsupported` (its version
            is too old, and it is left alone), `not installed`, or `off`.
        versions: The versions of those that are installed.
    """

    def __init__(self, changed: Collection[str], frameworks: Mapping[str, State], versions: Mapping[str, str]) -> None:
        super().__init__(changed)
        self.frameworks = dict(frameworks)
        self.versions = dict(versions)


@dataclass
class _Door:
    """Which frameworks are traced, and how that is undone."""

    lock: Any = field(default_factory=threading.RLock)
    undos: dict[str, list[Undo]] = field(default_factory=dict[str, list[Undo]])
    warned: set[str] = field(default_factory=set[str])

    def report(self, changed: Collection[str]) -> SetupReport:
        found = {name: _installed(name) for name in FRAMEWORKS}
        states: dict[str, State] = {
            name: "traced" if name in self.undos else _state(name, known) for name, known in found.items()
        }
        return SetupReport(
            {FRAMEWORKS[name] for name in changed}, states, {name: known for name, known in found.items() if known}
        )

    def open(self, name: str) -> bool:
        """Trace a framework; False where that cannot be, or is so already."""
        state = _state(name, _installed(name))
        if name in self.undos or state != "off":
            if state == "unsupported" and name not in self.warned:
                self.warned.add(name)
                warn("spanforge leaves %s alone: this version of it is not supported", name)
            return False
        self.undos[name] = []
        for hook in import_module(f"spanforge.integrations.{name}").HOOKS:
            take_hold(hook, self.undos[name])
        return True

    def close(self, name: str) -> bool:
        """Let go of a framework; False where it is not traced."""
        if name not in self.undos:
            return False
        let_go(self.undos.pop(name))
        return True


_DOOR: Final = _Door()


def setup(
    frameworks: Collection[str] | None = None,
    *,
    sessions: Literal["auto", "explicit"] = "auto",
    conversation: Callable[[], object] | str | None = None,
    verbose: bool = False,
) -> SetupReport:
    """Trace frameworks and clients of models: those that are loaded, and those that are loaded later.

    Nothing is imported. A run's outermost root is a session: a chain, a query engine, a pipeline, or a client's call
    that is made outside of any. Inside `sf_rag.session(…)` everything is part of that session. Calling it again changes
    nothing but what the keywords say.

    Args:
        frameworks: Of `langchain`, `llama_index`, `haystack`, `openai`, `anthropic`; all of them without it.
        sessions: Whether a client's call outside of any run or session is a session (`auto`) or not traced
            (`explicit`).
        conversation: Id of the conversation that runs belong to, or what returns it, where the framework does not say
            (LangGraph's `thread_id` does).
        verbose: Print a line for each framework.

    Returns:
        The set of what this call began to trace, such as `langchain_core:rag`, and what became of each framework.

    Raises:
        ConfigError: A framework or a value of `sessions` that is not one of those listed.
    """
    wanted = FRAMEWORKS if frameworks is None else frameworks
    if unknown := set(wanted) - set(FRAMEWORKS):
        raise ConfigError(f"frameworks: {len(unknown)} of these are not known; known are {', '.join(FRAMEWORKS)}")
    if sessions not in {"auto", "explicit"}:
        raise ConfigError("sessions: must be 'auto' or 'explicit'")
    with _DOOR.lock:
        OPTIONS.sessions, OPTIONS.conversation = sessions, conversation
        follow_lists(wanted=True)
        report = _DOOR.report([name for name in FRAMEWORKS if name in wanted and _DOOR.open(name)])
    if verbose:
        for name, state in report.frameworks.items():
            _say(f"{name}: {state}")
    return report


def teardown(*, verbose: bool = False) -> set[str]:
    """Undo `setup()`: every attribute is again the very object that it was.

    Args:
        verbose: Print a line for each framework.

    Returns:
        The frameworks that were let go of.
    """
    with _DOOR.lock:
        undone = {label for name, label in FRAMEWORKS.items() if _DOOR.close(name)}
        OPTIONS.sessions, OPTIONS.conversation = "auto", None
        follow_lists(wanted=False)
    if verbose:
        for name in sorted(undone):
            _say(f"{name}: restored")
    return undone


def status() -> SetupReport:
    """Return what is traced now, as `setup()` reports it."""
    with _DOOR.lock:
        return _DOOR.report(list(_DOOR.undos))


def patched_integrations() -> set[str]:
    """Return the names of what is traced now."""
    return set(status())


def _installed(name: str) -> str | None:
    """Return the version of a framework; None where it is not installed."""
    try:
        return version(import_module(f"spanforge.integrations.{name}").DISTRIBUTION)
    except PackageNotFoundError:
        return None


def _state(name: str, known: str | None) -> State:
    if known is None:
        return "not installed"
    numbers = tuple(int(part) for part in known.split(".")[:2] if part.isdecimal())
    return "unsupported" if numbers < import_module(f"spanforge.integrations.{name}").OLDEST else "off"


def _say(line: str) -> None:
    """Print what `verbose` asked for."""
    print(f"spanforge.auto: {line}")  # noqa: T201  asked for by the caller


if auto_is_wanted():
    quiet(setup)()
