"""The folder of a scratch store: its owner's alone, and gone with it, even where the owner was killed."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["discard", "new_folder"]

_PREFIX: Final = "spanforge-viewer-"
_OWNER: Final = "owner"


def new_folder() -> tuple[Path, int | None]:
    """Make a folder, after those that no viewer owns any more were deleted.

    Returns:
        The folder, and the descriptor whose lock says that it is owned; the system lets go of that lock when the
        process ends, however it ends. None where the system has no such locks: there nothing is ever proven ownerless.
    """
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if sys.platform == "win32":
        return folder, None
    import fcntl  # noqa: PLC0415  not on every system

    # Named when it is locked and not before: in between, another viewer would take it for ownerless.
    descriptor = os.open(folder / "new", os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    (folder / "new").rename(folder / _OWNER)
    return folder, descriptor


def discard(folder: Path, descriptor: int | None) -> None:
    """Delete a folder and let go of its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if descriptor is not None:
        os.close(descriptor)


def _sweep(place: Path) -> None:
    if sys.platform == "win32":
        return
    for folder in place.glob(f"{_PREFIX}*"):
        # What is not there any more, or not ours to look into, is left alone.
        with suppress(OSError):
            if _is_ours(folder) and _is_ownerless(folder / _OWNER):
                shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _is_ownerless(owner: Path) -> bool:
    import fcntl  # noqa: PLC0415  not on every system

    descriptor = os.open(owner, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
