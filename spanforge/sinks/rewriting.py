"""A file of lines put in place of itself, some of them left out, while others go on writing to it.

The new file is written beside the old one, saved to the disk, and takes its name in one step: whenever this is
interrupted, the one or the other stands there whole. For the last of it no writer is let in, so none writes to a file
that has no name any more; those that come later find the new one.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from spanforge.sinks._files import sync_folder
from spanforge.sinks._lock import held, lock, unlock, without_writers

__all__ = ["MovedError", "Piece", "check_still_there", "opened", "pieces", "replacing", "rewrite", "save"]

_LONGEST: Final = 16 << 20
_PATIENCE_S: Final = 5.0
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_STAMP: Final = re.compile(r"-\d{8}T\d{6}\.\d{6}Z(?=\.|$)")
_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


class MovedError(OSError):
    """The file was rotated, replaced or deleted meanwhile; nothing was changed."""


class Piece(NamedTuple):
    """A line with its end, if it has one.

    Attributes:
        data: Its bytes.
        whole: False for a part of a line that is too long to be held.
    """

    data: bytes
    whole: bool = True


def pieces(stream: BinaryIO) -> Iterator[Piece]:
    """Give what a file holds, byte for byte."""
    inside = False
    while data := stream.readline(_LONGEST):
        ends = data.endswith(b"\n")
        yield Piece(data, whole=not inside and (ends or len(data) < _LONGEST))
        inside = not ends


def opened(path: Path, stack: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Open a file for reading; gives its bytes as they stand, and as they were before it was compressed.

    Raises:
        OSError: It cannot be read, or is compressed with zstd.
    """
    raw = stack.enter_context(path.open("rb"))
    head = raw.peek(len(_ZSTD))
    if head.startswith(_ZSTD):
        raise OSError(errno.EINVAL, "it is compressed with zstd, and cannot be written so; unpack it, prune, pack it")
    return raw, cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if head.startswith(_GZIP) else raw


def rewrite(path: Path, change: Callable[[Iterable[Piece]], Iterator[bytes]], is_changed: Callable[[], bool]) -> None:
    """Put a changed file in place of a file.

    Args:
        path: A plain file of lines, or one that gzip has compressed.
        change: Makes of the pieces of the file what the new one holds.
        is_changed: Asked at the end; where it says no, the file stays as it is.

    Raises:
        MovedError: It was rotated, replaced or deleted meanwhile.
        OSError: The disk is full, somebody is in the middle of writing, or the file belongs to another user or has
            another name. The file is as it was.
    """
    path = path.resolve()
    with ExitStack() as stack:
        raw, old = opened(path, stack)
        new, take_its_name = stack.enter_context(replacing(path, raw))
        _fill(new, change(_until_still(path, raw, old, new, stack)), compressed=old is not raw)
        if is_changed():
            take_its_name()


@contextmanager
def replacing(path: Path, old: BinaryIO) -> Generator[tuple[BinaryIO, Callable[[], None]]]:
    """Give a new file beside an old one, and what puts it in its place once it is saved; it is gone otherwise.

    Args:
        path: The old file, resolved.
        old: It, open.

    Raises:
        OSError: It belongs to another user, or somebody else is replacing it.
    """
    place = path.with_name(f".{path.name}.pruning")
    with _beside(place, os.fstat(old.fileno())) as new:
        done = False

        def take_its_name() -> None:
            nonlocal done
            place.replace(path)
            done = True
            unlock(new.fileno())
            sync_folder(path.parent)

        try:
            yield new, take_its_name
        finally:
            if not done:
                place.unlink(missing_ok=True)


def _beside(place: Path, like: os.stat_result) -> BinaryIO:
    """Open the file to be, as its owner and mode; what an interrupted one left there is gone."""
    fd = os.open(place, _FLAGS, 0o600)
    new = os.fdopen(fd, "r+b")
    try:
        _take(place, fd, like)
        new.truncate()
    except OSError:
        new.close()
        raise
    return new


def _take(place: Path, fd: int, like: os.stat_result) -> None:
    busy = True
    # The lock of another that is at work here, which may have given the file its name since we opened it.
    with suppress(BlockingIOError, PermissionError, FileNotFoundError):
        lock(fd)
        busy = not os.path.samestat(place.stat(), os.fstat(fd))
    if busy:
        raise OSError(errno.EBUSY, "another program is pruning it")
    if os.name == "posix":
        foreign = True
        with suppress(PermissionError):
            os.fchown(fd, like.st_uid, like.st_gid)
            foreign = False
        if foreign:
            raise PermissionError(errno.EPERM, "it belongs to another user; run this as that user")
        os.fchmod(fd, like.st_mode & 0o7777)


def _fill(new: BinaryIO, lines: Iterator[bytes], *, compressed: bool) -> None:
    if compressed:
        with gzip.GzipFile(fileobj=new, mode="wb", mtime=0) as packed:
            packed.writelines(lines)
    else:
        new.writelines(lines)
    save(new)


def save(new: BinaryIO) -> None:
    """Have the disk hold a file."""
    new.flush()
    os.fsync(new.fileno())


def _until_still(path: Path, raw: BinaryIO, old: BinaryIO, new: BinaryIO, stack: ExitStack) -> Iterator[Piece]:
    """Give what the file holds; then, with no writer and no rotation any more until `stack` ends, what came since."""
    for piece in pieces(old):
        if not piece.data.endswith(b"\n") and piece.whole:
            old.seek(-len(piece.data), os.SEEK_CUR)  # it may be half of one that is being written
            break
        yield piece
    save(new)  # so that there is little left to wait for while nobody can write
    _keep_still(path, raw, stack)
    yield from pieces(old)


def _keep_still(path: Path, raw: BinaryIO, stack: ExitStack) -> None:
    # The order in which a writer takes them, too. A rotated file is guarded by the lock of the live one.
    live = path.with_name(_STAMP.sub("", path.name))
    still = stack.enter_context(held(live, _PATIENCE_S))
    if not still or not stack.enter_context(without_writers(raw.fileno(), live, _PATIENCE_S)):
        raise OSError(errno.EBUSY, "a program is in the middle of writing to it; run this again")
    check_still_there(path, raw)


def check_still_there(path: Path, file: BinaryIO) -> None:
    """Check that a file is the only one of its path's name, and has no other.

    Raises:
        MovedError: It was rotated, replaced or deleted.
        OSError: It has another name.
    """
    info = os.fstat(file.fileno())
    moved = True
    with suppress(FileNotFoundError):
        moved = not os.path.samestat(info, path.stat())
    if moved:
        raise MovedError(errno.ESTALE, "it was rotated or replaced meanwhile; run this again")
    if info.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has another name (a hard link), under which all of it would stay")
