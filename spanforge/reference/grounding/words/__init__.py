"""Closed word lists of English, as data: each file says in its head what stands on a line."""

from __future__ import annotations

from importlib import resources

__all__ = ["lines_of"]


def lines_of(name: str) -> list[list[str]]:
    """Return the words of a list, line by line; ``#`` begins a comment."""
    text = resources.files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if not line.startswith("#")]
