"""Pipes that nobody reads."""

from __future__ import annotations

import os
from contextlib import suppress


def full_pipe() -> tuple[int, int]:
    """Return both ends of a pipe that takes nothing more; writing waits."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    return reader, writer
