"""Files and folders that only their owner can read, those that were there before included."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FOLDER, _FILE = 0o700, 0o600


def own_file(path: Path) -> None:
    """Make a file where there is none, before whoever fills it could make it readable to others.

    Raises:
        OSError: It cannot be made.
    """
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, _FILE))
    path.chmod(_FILE)


def own_folder(path: Path) -> None:
    """Make a folder where there is none, and take it and all that is in it from others.

    Raises:
        OSError: It cannot be made.
    """
    path.mkdir(parents=True, exist_ok=True, mode=_FOLDER)
    path.chmod(_FOLDER)
    for entry in path.rglob("*"):
        # What is gone meanwhile needs nothing, and what belongs to somebody else is not ours to change.
        with suppress(OSError):
            if not entry.is_symlink():
                entry.chmod(_FOLDER if entry.is_dir() else _FILE)
