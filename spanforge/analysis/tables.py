"""Tables of a TOML file that somebody wrote by hand: what cannot be used is refused by the name of its field."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spanforge.exceptions import ConfigError

__all__ = ["number", "read_toml", "refuse_unknown"]


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a file holds.

    Raises:
        ConfigError: It is not TOML; the message names the place.
        OSError: The file cannot be read.
    """
    where = ""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # Of the parser's sentence only the place: the rest may quote the file.
        if isinstance(error, tomllib.TOMLDecodeError):
            where = str(error).rpartition("(at ")[2].removesuffix(")")
    raise ConfigError(f"this is no TOML{f': mend {where}' if where else ', or not in UTF-8'}")


def refuse_unknown(table: Mapping[str, Any], names: Iterable[str], place: str = "") -> None:
    """Raise a ConfigError for the first key of a table that is none of these names."""
    known = list(names)
    for name in table:
        if name not in known:
            shown = name if name.isidentifier() else ascii(name)
            raise ConfigError(f"{place and place + '.'}{shown}: there is no such key; use one of {', '.join(known)}")


def number(given: object, low: float, high: float, field: str, *, whole: bool = False) -> float:
    """Return a number within limits; raise a ConfigError for anything else."""
    kind = int if whole else (int, float)
    if isinstance(given, bool) or not isinstance(given, kind) or not low <= given <= high:
        raise ConfigError(f"{field}: give a {'whole ' if whole else ''}number from {low:g} to {high:g}")
    return float(given)
