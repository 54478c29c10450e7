"""The hash chain: each line names the line before it, so that a changed file shows where it was changed.

A seal covers every field of the event, not only its payload. Without a key it shows accidents; with one, tampering.
A tombstone stands for lines that were taken out: the line after it follows the last of those.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from spanforge.namespaces.event import PRUNED, Event

__all__ = ["Break", "Chain", "Sealed", "Verdict", "read_sealed", "verify_lines"]

_CHECKSUM: Final = "sha256:"
_SIGNATURE: Final = "hmac-sha256:"
_RESULTS: Final = ("checksum", "signature")

Fault = Literal[
    "unreadable",
    "unsealed",
    "edited",
    "unsigned",
    "forged or wrong key",
    "removed or reordered",
    "repeated",
    "tail cut",
]


def _canonical(fields: dict[str, Any]) -> bytes:
    """What a seal covers: every field but the seal's own results, keys sorted, ASCII."""
    covered = {name: value for name, value in fields.items() if name not in _RESULTS}
    return json.dumps(covered, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


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
        linked = replace(event, chain_id=self.chain_id, prev_id=before, checksum="", signature="")
        body = _canonical(linked.to_dict())
        return replace(
            linked,
            checksum=_CHECKSUM + hashlib.sha256(body).hexdigest(),
            signature=_SIGNATURE + hmac.digest(self._key, body, "sha256").hex() if self._key else "",
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
        pruned: Events that tombstones which held stand for.
        chains: Last event id of each chain by chain id.
        first_break: The first fault, None where the file is whole.
        unreadable: Lines that were passed over, where that was asked for.
    """

    events: int
    chains: dict[str, str] = field(default_factory=dict[str, str])
    first_break: Break | None = None
    unreadable: int = 0
    pruned: int = 0

    @property
    def ok(self) -> bool:
        """True where nothing is wrong."""
        return self.first_break is None


def verify_lines(
    lines: Iterable[bytes], key: bytes | None = None, expect_last: str = "", *, skip_unreadable: bool = False
) -> Verdict:
    """Check a file's chains, line by line, in constant memory for each chain.

    The lines are checked as they stand, not as a reader would understand them: a field that this version does not
    know, a null and a repeated key all count.

    Args:
        lines: The lines of one file, in order.
        key: The signing key; without it signatures are not checked, only checksums and links.
        expect_last: An event id that must be the last of its chain: a chain cannot itself show a cut tail.
        skip_unreadable: Pass over lines that are no JSON, and count them: a crash or a full disk leaves a torn
            line behind. If one of them was a line of a chain, the next line of that chain does not hold.

    Returns:
        The verdict; `first_break` names the first edited, removed, reordered or inserted line.
    """
    last: dict[str, str] = {}
    number = held = unreadable = pruned = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        sealed = read_sealed(line)
        if sealed == "unreadable" and skip_unreadable:
            unreadable += 1
            continue
        if isinstance(sealed, str):
            return Verdict(held, last, Break(number, sealed), unreadable, pruned)
        if fault := sealed.fault(last.get(sealed.chain_id, ""), key):
            return Verdict(held, last, Break(number, fault, sealed.event_id), unreadable, pruned)
        last[sealed.chain_id] = sealed.next_link
        pruned += sealed.pruned
        held += not sealed.pruned
    cut = expect_last and expect_last not in last.values()
    return Verdict(held, last, Break(number + 1, "tail cut") if cut else None, unreadable, pruned)


class Sealed(NamedTuple):
    """One line as it stands: the fields of its seal, empty where absent, and what the seal covers.

    Attributes:
        next_link: What the next line of the chain names: this event, or the last one that a tombstone stands for.
        pruned: How many events a tombstone stands for; 0 for an event.
    """

    event_id: str
    chain_id: str
    prev_id: str
    checksum: str
    signature: str
    body: bytes
    next_link: str
    pruned: int

    def fault(self, before: str, key: bytes | None) -> Fault | None:
        """Return what is wrong with the line, given the id of the one before it in its chain."""
        if fault := self.own_fault(key):
            return fault
        if self.event_id == before:
            return "repeated"
        return None if self.prev_id == before else "removed or reordered"

    def own_fault(self, key: bytes | None) -> Fault | None:
        """Return what is wrong with the line by itself, wherever it stands."""
        if not (self.event_id and self.chain_id and self.checksum):
            return "unsealed"
        if self.checksum != _CHECKSUM + hashlib.sha256(self.body).hexdigest():
            return "edited"
        if key is not None:
            if not self.signature:
                return "unsigned"
            expected = _SIGNATURE + hmac.digest(key, self.body, "sha256").hex()
            if not hmac.compare_digest(self.signature.encode("utf-8", "replace"), expected.encode()):
                return "forged or wrong key"
        return None


class _RepeatedKeyError(ValueError):
    """A JSON object has a key twice: which of the two counts is the reader's choice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _RepeatedKeyError
    return fields


def read_sealed(line: bytes) -> Sealed | Fault:
    """Return a line as it stands, or what keeps it from being read."""
    try:
        fields = json.loads(line.decode("utf-8"), object_pairs_hook=_once)
        if not isinstance(fields, dict):
            return "unreadable"
        body = _canonical(fields)  # pyright: ignore[reportUnknownArgumentType]  JSON
    except _RepeatedKeyError:
        return "edited"
    except (ValueError, RecursionError):
        return "unreadable"
    texts = [_text(fields, name) for name in ("event_id", "chain_id", "prev_id", "checksum", "signature")]  # pyright: ignore[reportUnknownArgumentType]  JSON
    last, pruned = texts[0], 0
    if _text(fields, "event_type") == PRUNED and isinstance(stands_for := fields.get("payload"), dict):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]  JSON
        count = stands_for.get("events")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  JSON
        last, pruned = _text(stands_for, "last_id"), count if type(count) is int else 0  # pyright: ignore[reportUnknownArgumentType]  JSON
    return Sealed._make([*texts, body, last, pruned])


def _text(fields: dict[str, Any], name: str) -> str:
    return value if isinstance(value := fields.get(name), str) else ""
