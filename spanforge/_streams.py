"""Text streams that may be pipes nobody reads: ask before writing, and never wait for long."""

from __future__ import annotations

import io
import math
import os
import select
from typing import Final

from spanforge import _clock

__all__ = ["descriptor", "put", "takes_more"]

_AT_ONCE: Final = getattr(select, "PIPE_BUF", 512)
"""Bytes that a pipe which can be written to takes as one, without making the writer wait."""


def descriptor(stream: object) -> int | None:
    """Return the file descriptor behind a stream that Python opened; None for any other, which may do more than write.

    Raises:
        ValueError: The stream is closed.
    """
    return stream.fileno() if type(stream) is io.TextIOWrapper and os.name != "nt" else None


def takes_more(stream: object, timeout: float = 0.0) -> bool:
    """Tell whether a stream takes a short line at once, or within `timeout` seconds; true of what cannot be asked."""
    try:
        fd = descriptor(stream)
        return fd is None or _is_ready(fd, timeout)
    except (OSError, ValueError):
        # Closed: writing will tell.
        return True


def put(fd: int, data: bytes, timeout: float) -> int:
    """Write to a descriptor what it takes within `timeout` seconds; return how many bytes that were.

    Raises:
        OSError: It takes nothing more at all.
    """
    until, done = _clock.monotonic() + timeout, 0
    while done < len(data):
        if not _is_ready(fd, max(0.0, until - _clock.monotonic())):
            break
        try:
            done += os.write(fd, data[done : done + _AT_ONCE])
        except BlockingIOError:
            break
    return done


def _is_ready(fd: int, timeout: float) -> bool:
    """Tell whether a descriptor takes something, or fails at once, within `timeout` seconds."""
    # `select` knows no descriptor from 1024 on, which a server with many connections has.
    if not hasattr(select, "poll"):
        return bool(select.select([], [fd], [], timeout)[1])
    asked = select.poll()
    asked.register(fd, select.POLLOUT)
    return bool(asked.poll(math.ceil(timeout * 1000)))
