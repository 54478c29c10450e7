"""What a child that reads documents may be given, and what documents may make of it."""

from __future__ import annotations

import os
import sys
from typing import Any


def spin(_: bytes) -> None:
    while True:
        pass


def hoard(_: bytes) -> int:
    return len(b"x" * (1 << 30))


def crash(_: bytes) -> None:
    os.abort()


def shout(content: bytes, word: str) -> list[Any]:
    sys.stdout.write("noise between the answers\n")
    sys.stdout.flush()
    return [word, len(content), os.getpid()]
