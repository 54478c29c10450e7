"""What names of spanforge 1.x say that spanforge 2 does not have: one sentence, however they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = ["explain_imports", "sentence"]

_PACKAGES: Final = frozenset({"spanforge", "spanforge.sdk", "spanforge.namespaces", "spanforge.integrations"})
"""Packages that 1.x had too, so that somebody may look for more in them than there is."""


def sentence(name: str) -> str:
    """Return what to say of a name that is not there.

    Args:
        name: With its package, as in `spanforge.sdk.audit`.
    """
    return (
        f"{name} is not part of spanforge 2: spanforge 2 traces RAG runs and takes feedback. "
        "For what else 1.x had, keep it in an environment of its own: pip install 'spanforge<2'"
    )


class _Explainer:
    """Asked last of all for a module: those of ours that nobody has found get a sentence.

    The error has no `name`, because `from spanforge import …` passes over those that have: it would say nothing but
    that the name cannot be imported.
    """

    @staticmethod
    def find_spec(
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG004  the protocol's
        target: ModuleType | None = None,  # noqa: ARG004  the protocol's
        /,
    ) -> ModuleSpec | None:
        if fullname.rpartition(".")[0] in _PACKAGES:
            raise ModuleNotFoundError(sentence(fullname))
        return None


def explain_imports() -> None:
    """Let `import spanforge.…` and `from spanforge… import …` say why there is nothing; once for each process."""
    if _Explainer not in sys.meta_path:
        sys.meta_path.append(_Explainer)
