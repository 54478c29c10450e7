"""What the sinks that write files share: paths, folders and the names of errors."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from spanforge.exceptions import ConfigError

__all__ = ["absolute", "code_of", "sync_folder"]


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path that a later change of the working directory does not move; `~` is the home folder.

    Raises:
        ConfigError: It is not the path of a file.
    """
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path) or "\0" in str(path):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are not all typed
        raise ConfigError("path: give the path of a file, as a str or os.PathLike")
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        unknown = "path: there is no such user; write the folder out in place of ~"
    raise ConfigError(unknown)


def sync_folder(folder: Path) -> None:
    """Put new names on the disk: syncing a file does not save the folder entry that leads to it.

    Raises:
        OSError: The disk did not take it.
    """
    if os.name == "posix":  # pragma: no branch  Windows saves names by itself
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def code_of(error: OSError) -> str:
    """Return an error's short code, such as `ENOSPC`; never its text, which may hold a path."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
