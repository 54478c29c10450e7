"""What happens between two steps of something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def once_after(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, then: Callable[[], object]) -> None:
    """Let something happen after the first time that a step is taken."""
    step = getattr(owner, name)
    happened: list[bool] = []

    def stepped(*args: Any, **options: Any) -> Any:
        result = step(*args, **options)
        if not happened:
            happened.append(True)
            then()
        return result

    monkeypatch.setattr(owner, name, stepped)
