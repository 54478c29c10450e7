"""The hash chain: each line names the line before it, so that a changed file shows where it was changed.

A seal covers every field of the event, not only its payload. Without a key it shows accidents; with one, tampering.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from spanforge.exceptions import DecodeError
from spanforge.namespaces.event import Event

__all__ = ["Break", "Chain", "Verdict", "verify_lines"]

_CHECKSUM: Final = "sha256:"
_SIGNATURE: Final = "hmac-sha256:"

Fault = Literal[
    "unreadable", "unsealed", "edited", "unsigned", "forged or wrong key", "removed or reordered", "repeated", "tail cut"
]


def _canonical(event: Event) -> bytes:
    """What a seal covers: every field but the seal's own results, keys sorted, ASCII."""
    fields = event.to_dict()
    fields.pop("checksum", None)
    fields.pop("signature", None)
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


class Chain:
    """Seals events one after the other: one chain for each process and file.

    Args:
        chain_id: Names the chain; the id of nothing else.
        key: HMAC key; without one, events carry a checksum and no signature.
    """

    __slots__ = ("_key", "_prev_id", "chain_id")

    def __init__(self, chain_id: str, key: bytes | None = None) -> None:
        self.chain_id = chain_id
        self._key = key
        self._prev_id = ""

    def seal(self, event: Event) -> Event:
        """Return the event linked to the last one that was committed; `commit` it once it is written."""
        return self._linked(event, self._prev_id)

    def seal_all(self, events: Iterable[Event]) -> Iterator[Event]:
        """Seal events that will be written together, each linked to the one before; nothing is committed."""
        before = self._prev_id
        for event in events:
            yield self._linked(event, before)
            before = event.event_id

    def _linked(self, event: Event, before: str) -> Event:
        linked = replace(event, chain_id=self.chain_id, prev_id=before, checksum="", signature="", _line=[])
        body = _canonical(linked)
        return replace(
            linked,
            checksum=_CHECKSUM + hashlib.sha256(body).hexdigest(),
            signature=_SIGNATURE + hmac.digest(self._key, body, "sha256").hex() if self._key else "",
            _line=[],
        )

    def commit(self, event_id: str) -> None:
        """Record that the event with this id was written: the next one links to it."""
        self._prev_id = event_id


@dataclass(frozen=True, slots=True)
class Break:
    """The first thing wrong with a file.

    Attributes:
        line: Line number, from 1; one past the last line for a cut tail.
        fault: What is wrong there.
        event_id: The event at that line, where it can be read.
    """

    line: int
    fault: Fault
    event_id: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify_lines` found.

    Attributes:
        events: Lines that were read and held.
        chains: Last event id of each chain by chain id.
        first_break: The first fault, None where the file is whole.
    """

    events: int
    chains: dict[str, str] = field(default_factory=dict[str, str])
    first_break: Break | None = None

    @property
    def ok(self) -> bool:
        """True where nothing is wrong."""
        return self.first_break is None


def verify_lines(lines: Iterable[bytes], key: bytes | None = None, expect_last: str = "") -> Verdict:
    """Check a file's chains, line by line, in constant memory for each chain.

    Args:
        lines: The lines of one file, in order.
        key: The signing key; without it signatures are not checked, only checksums and links.
        expect_last: An event id that must be the last of its chain: a chain cannot itself show a cut tail.

    Returns:
        The verdict; `first_break` names the first edited, removed, reordered or inserted line.
    """
    last: dict[str, str] = {}
    number = held = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = Event.decode(line)
        except DecodeError:
            return Verdict(held, last, Break(number, "unreadable"))
        if fault := _fault(event, last, key):
            return Verdict(held, last, Break(number, fault, event.event_id))
        last[event.chain_id] = event.event_id
        held += 1
    if expect_last and expect_last not in last.values():
        return Verdict(held, last, Break(number + 1, "tail cut"))
    return Verdict(held, last)


def _fault(event: Event, last: dict[str, str], key: bytes | None) -> Fault | None:
    if not event.checksum or not event.chain_id:
        return "unsealed"
    body = _canonical(event)
    if event.checksum != _CHECKSUM + hashlib.sha256(body).hexdigest():
        return "edited"
    if key is not None:
        if not event.signature:
            return "unsigned"
        if not hmac.compare_digest(event.signature, _SIGNATURE + hmac.digest(key, body, "sha256").hex()):
            return "forged or wrong key"
    before = last.get(event.chain_id, "")
    if event.event_id == before:
        return "repeated"
    return None if event.prev_id == before else "removed or reordered"
