"""Which files are meant, and in which order they were written."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from spanforge.reader.remote import RemoteFile, find, is_url

__all__ = ["AnyPath", "File", "Paths", "expand", "family"]

AnyPath: TypeAlias = str | os.PathLike[str]
File: TypeAlias = Path | RemoteFile
Paths: TypeAlias = AnyPath | RemoteFile | Iterable[AnyPath | RemoteFile]

_EVENTS: Final = re.compile(r".+\.(?:(?:jsonl|ndjson)(?:[.-]\d+)?(?:\.(?:gz|zst))?|db|sqlite3?|parquet)")
_BESIDE: Final = re.compile(r".+(?:-wal|-shm|-journal|\.lock)")
_NUMBERED: Final = re.compile(r"(.+)\.(\d+)")
_COMPRESSED: Final = re.compile(r"\.(?:gz|zst)$")


def expand(paths: Paths) -> list[File]:
    """Return the files that paths stand for: a file is itself, a folder or a pattern its event files, oldest first.

    Raises:
        FileNotFoundError: One of them leads to nothing; the message names it.
        MissingExtraError: A URL, and fsspec is not installed.
        ConfigError: A URL of no known kind.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike, RemoteFile)) else paths
    return [file for path in several for file in _expand_one(path)]


def _expand_one(path: AnyPath | RemoteFile) -> list[File]:
    if isinstance(path, RemoteFile):
        return [path]
    if is_url(path):
        return _expand_url(str(path))
    return [*_expand_local(Path(path).expanduser())]


def _expand_url(url: str) -> list[File]:
    found = find(url)
    if len(found) > 1 or url.endswith("/"):
        found = [file for file in found if _EVENTS.fullmatch(file.name)]
    return sorted(found, key=_order)


def _expand_local(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted((entry for entry in path.iterdir() if _is_events(entry)), key=_order)
    if path.exists():
        return [path]
    found = [Path(name) for name in glob.glob(str(path), recursive=True)]  # noqa: PTH207  takes absolute patterns
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no such file of events", str(path))
    return sorted((file for file in found if file.is_file() and not _BESIDE.fullmatch(file.name)), key=_order)


def family(path: Path, *, packed: bool = False) -> list[Path]:
    """Return a live file and those that were rotated from it, oldest first.

    Args:
        path: The live file.
        packed: Give those as well that were compressed since.
    """
    rotated = re.compile(
        rf"(?:{re.escape(path.stem)}-[0-9TZ.]+{re.escape(path.suffix)}|{re.escape(path.name)}(?:[.-]\d+)?)"
        rf"{r'(?:[.](?:gz|zst))?' if packed else ''}"
    )
    try:
        return sorted((entry for entry in path.parent.iterdir() if rotated.fullmatch(entry.name)), key=_order)
    except FileNotFoundError:  # no folder yet
        return []


def _is_events(path: Path) -> bool:
    return _EVENTS.fullmatch(path.name) is not None and path.is_file()


def _order(path: File) -> tuple[str, str, int]:
    """Sort `events-<time>.jsonl` before `events.jsonl`, and `events.jsonl.2` before `.1` before `events.jsonl`."""
    name = _COMPRESSED.sub("", path.name)
    numbered = _NUMBERED.fullmatch(name)
    base, number = (numbered[1], int(numbered[2])) if numbered else (name, 0)
    # "~" sorts after whatever a rotated name goes on with.
    return str(path.parent), f"{base}~", -number
