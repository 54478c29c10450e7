"""Loading optional packages, with one clear sentence where they are absent."""

from __future__ import annotations

import importlib
from typing import Any

from spanforge.exceptions import MissingExtraError

Untyped = Any
"""A value that an optional library hands over; these libraries carry no types, or need not be installed."""


def load(module: str, extra: str) -> Untyped:
    """Import and return an optional module.

    Args:
        module: Dotted name to import.
        extra: The extra of this distribution that brings it.

    Raises:
        MissingExtraError: The package is absent; the message names the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A package that is there but lacks one of its own parts is broken, which is another matter.
        if error.name != module.partition(".")[0]:
            raise
    raise MissingExtraError(module, extra)
