"""Which files are meant, and in which order they were written."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["AnyPath", "Paths", "expand", "family"]

AnyPath: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = AnyPath | Iterable[AnyPath]

_EVENTS: Final = re.compile(r".+\.(?:(?:jsonl|ndjson)(?:[.-]\d+)?(?:\.(?:gz|zst))?|db|sqlite3?)")
_BESIDE: Final = re.compile(r".+(?:-wal|-shm|-journal|\.lock)")
_NUMBERED: Final = re.compile(r"(.+)\.(\d+)")
_COMPRESSED: Final = re.compile(r"\.(?:gz|zst)$")


def expand(paths: Paths) -> list[Path]:
    """Return the files that paths stand for: a file is itself, a folder or a pattern its event files, oldest first.

    Raises:
        FileNotFoundError: One of them leads to nothing; the message names it.
    """
    if isinstance(paths, (str, os.PathLike)):
        return _expand_one(Path(paths).expanduser())
    return [file for path in paths for file in _expand_one(Path(path).expanduser())]


def _expand_one(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted((entry for entry in path.iterdir() if _is_events(entry)), key=_order)
    if path.exists():
        return [path]
    found = [Path(name) for name in glob.glob(str(path), recursive=True)]  # noqa: PTH207  takes absolute patterns
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no such file of events", str(path))
    return sorted((file for file in found if file.is_file() and not _BESIDE.fullmatch(file.name)), key=_order)


def family(path: Path) -> list[Path]:
    """Return a live file and the uncompressed ones that were rotated from it, oldest first."""
    rotated = re.compile(
        rf"{re.escape(path.stem)}-[0-9TZ.]+{re.escape(path.suffix)}|{re.escape(path.name)}(?:[.-]\d+)?"
    )
    try:
        return sorted((entry for entry in path.parent.iterdir() if rotated.fullmatch(entry.name)), key=_order)
    except FileNotFoundError:  # no folder yet
        return []


def _is_events(path: Path) -> bool:
    return _EVENTS.fullmatch(path.name) is not None and path.is_file()


def _order(path: Path) -> tuple[str, str, int]:
    """Sort `events-<time>.jsonl` before `events.jsonl`, and `events.jsonl.2` before `.1` before `events.jsonl`."""
    name = _COMPRESSED.sub("", path.name)
    numbered = _NUMBERED.fullmatch(name)
    base, number = (numbered[1], int(numbered[2])) if numbered else (name, 0)
    # "~" sorts after whatever a rotated name goes on with.
    return str(path.parent), f"{base}~", -number
