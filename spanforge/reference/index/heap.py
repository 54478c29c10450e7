"""Giving freed memory back to the system after large writes."""

from __future__ import annotations

import ctypes
import sys

from spanforge.reference._extras import load


def give_back() -> None:
    """Return to the system what the allocators hold of memory that is free.

    A store writes from many threads, and the C library keeps a heap for each of them: what one has freed another cannot
    use, so that a run of equal writes takes more and more. Where the C library is not glibc only Arrow's share goes
    back.
    """
    load("pyarrow", "reference").default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
