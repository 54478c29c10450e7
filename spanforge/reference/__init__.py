"""The bundled reference RAG: ask your documents, offline, every run a complete trace.

`Pipeline` is the whole of it; the modules beside it are its stages, one each, after the RAG contract.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from spanforge.exceptions import MissingExtraError

if TYPE_CHECKING:
    from spanforge.reference.failures import RagFailure
    from spanforge.reference.models import (
        DataSource,
        Document,
        Filter,
        RagResult,
        RagStatus,
        User,
        Visibility,
    )
    from spanforge.reference.pipeline import Pipeline

_HOMES = {
    "DataSource": "models",
    "Document": "models",
    "Filter": "models",
    "Pipeline": "pipeline",
    "RagFailure": "failures",
    "RagResult": "models",
    "RagStatus": "models",
    "User": "models",
    "Visibility": "models",
}

__all__ = [
    "DataSource",
    "Document",
    "Filter",
    "Pipeline",
    "RagFailure",
    "RagResult",
    "RagStatus",
    "User",
    "Visibility",
]


def __getattr__(name: str) -> object:
    # Parts of the package are used without numpy, so nothing is imported before it is asked for.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "spanforge":
            raise
    raise MissingExtraError("the reference RAG", "reference")
