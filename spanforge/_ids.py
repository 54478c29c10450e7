"""ULIDs that sort in the order they were minted, and the trace and span ids derived from them.

python-ulid parses and defines the format; minting has a faster path of its own, because one id is made for
every event in the caller's thread (adr/0002).
"""

from __future__ import annotations

import random
from functools import lru_cache
from hashlib import sha256

from ulid import ULID

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_LOW_70 = (1 << 70) - 1
_LOW_64 = (1 << 64) - 1
_ULID_LENGTH = 26


class IdSource:
    """Mints 128-bit ULID numbers, each greater than the one before, even when the wall clock steps back.

    Not locked: the caller mints under the same lock that orders its events.
    """

    __slots__ = ("_last", "_ms", "_random")

    def __init__(self) -> None:
        # Seeded by the operating system, so processes that fork from one another do not repeat each other.
        self._random = random.Random()  # noqa: S311  ids must be unique, not secret
        self._ms = 0
        self._last = 0

    def mint(self, wall_ns: int) -> int:
        """Return the next id, for a moment in nanoseconds since the epoch, as a number; `encode` gives its text."""
        ms = wall_ns // 1_000_000
        if ms > self._ms:
            self._ms = ms
            # 79 random bits: the free top bit leaves room to count up within the millisecond.
            self._last = ms << 80 | self._random.getrandbits(79)
        else:
            self._last += 1
            self._ms = self._last >> 80
        return self._last


def encode(number: int) -> str:
    """Return the 26-character Crockford base-32 text of a 128-bit ULID number."""
    high, low, pairs = number >> 70, number & _LOW_70, _PAIRS
    return (
        f"{pairs[high >> 50]}{pairs[high >> 40 & 1023]}{pairs[high >> 30 & 1023]}"
        f"{pairs[high >> 20 & 1023]}{pairs[high >> 10 & 1023]}{pairs[high & 1023]}"
        f"{pairs[low >> 60]}{pairs[low >> 50 & 1023]}{pairs[low >> 40 & 1023]}"
        f"{pairs[low >> 30 & 1023]}{pairs[low >> 20 & 1023]}{pairs[low >> 10 & 1023]}{pairs[low & 1023]}"
    )


def decode(text: str) -> int | None:
    """Return the number a ULID stands for, or None where `text` is not one."""
    if len(text) != _ULID_LENGTH or not text.isascii():
        return None
    try:
        return int(ULID.from_str(text))
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def trace_id_of(session_id: str) -> str:
    """Return the 32-hex trace id every process derives alike from a session id."""
    number = decode(session_id)
    if number:
        return f"{number:032x}"
    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@lru_cache(maxsize=4096)
def root_span_id_of(session_id: str) -> str:
    """Return the 16-hex id of a session's root span, known before the root itself is sent."""
    return sha256(b"span:" + session_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def span_id_of(number: int) -> str:
    """Return the 16-hex span id of the event with this ULID number: its low 64 bits."""
    return f"{number & _LOW_64:016x}"
