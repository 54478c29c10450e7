"""Taking hold of modules that are loaded, or will be, and letting go of them again."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple

from spanforge.integrations._quiet import quiet

__all__ = ["Hook", "Undo", "let_go", "replaced", "take_hold"]

Undo = Callable[[], None]


class Hook(NamedTuple):
    """What is done to a module once it is loaded.

    Attributes:
        module: Its name.
        install: Does it, and returns what undoes it.
    """

    module: str
    install: Callable[[ModuleType], Undo]


def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Undo:
    """Replace a class's or module's attribute by what is made of it; return what puts the very same one back."""
    own = name in vars(owner)
    before = vars(owner)[name] if own else getattr(owner, name)
    ours = make(before)
    setattr(owner, name, ours)

    def undo() -> None:
        if vars(owner).get(name) is not ours:
            # Someone has wrapped it since; theirs goes on calling ours, which asks whether it is still wanted.
            return
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)

    return undo


class _Finder:
    """Tells when a module that is waited for has been loaded; finds nothing itself."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[ModuleType], None]]] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that the other finders give, its loader followed by what waits for the module."""
        if name not in self.waiting:
            return None
        # As the import system does: a finder of an old kind has no specs to give.
        finds = (getattr(finder, "find_spec", None) for finder in list(sys.meta_path) if finder is not self)
        specs = (find(name, path, target) for find in finds if find is not None)
        spec: ModuleSpec | None = next((found for found in specs if found is not None), None)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader, name)
        return spec

    def _follow(self, loader: Any, name: str) -> None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            load(module)
            for call in self.waiting.pop(name, []):
                call(module)

        if hasattr(loader, "__dict__"):
            loader.exec_module = exec_module


_FINDER: Final = _Finder()
_lock = threading.RLock()


def take_hold(hook: Hook, undos: list[Undo]) -> None:
    """Do what a hook says to its module, now or when it is loaded; what undoes it is added to `undos`."""

    @quiet
    def install(module: ModuleType) -> None:
        undos.append(hook.install(module))

    with _lock:
        module = sys.modules.get(hook.module)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            install(module)
            return
        _FINDER.waiting.setdefault(hook.module, []).append(install)
        undos.append(partial(_forget, hook.module, install))
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)


def _forget(name: str, install: Callable[[ModuleType], None]) -> None:
    waiting = _FINDER.waiting.get(name, [])
    if install in waiting:
        waiting.remove(install)
    if not waiting:
        _FINDER.waiting.pop(name, None)
    if not _FINDER.waiting and _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)


def let_go(undos: list[Undo]) -> None:
    """Undo what hooks did, the last first."""
    with _lock:
        while undos:
            quiet(undos.pop())()
