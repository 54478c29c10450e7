"""The RAG contract over HTTP (`create_app`), and a page to look at what was traced (`viewer`)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from spanforge.exceptions import MissingExtraError

if TYPE_CHECKING:
    from spanforge.server.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    # The viewer and the key store work without the packages of the API: nothing is imported before it is asked for.
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    missing = ""
    try:
        return importlib.import_module(f"{__name__}.app").create_app
    except ModuleNotFoundError as error:
        missing = error.name or ""
    if missing.startswith("spanforge"):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
    raise MissingExtraError("The server", "server")
