"""Tombstones: what stands in a file in place of the lines that were taken out of it.

A tombstone says how many events are gone, which were the first and the last, and why; nothing of what they held. In a
chained file it is a link of the chain, sealed as the lines were. It vouches only for lines that held: a break in a
chain stays a break, whatever is taken out around it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, cast

from spanforge import _clock, _ids
from spanforge.exceptions import ConfigError
from spanforge.namespaces.chain import Chain, Sealed, read_sealed
from spanforge.namespaces.event import PRUNED, Event

__all__ = ["Gaps"]

_MARKS: Final = (b'"chain_id"', PRUNED.encode())


@dataclass(slots=True)
class _Gap:
    """Neighbours in a chain that are gone; `line` is the one tombstone that stands for all of them already."""

    prev_id: str
    first_id: str
    last_id: str
    signed: bool
    events: int = 0
    reasons: set[str] = field(default_factory=set[str])
    line: bytes = b""


class Gaps:
    """Goes through the lines of one file, in order, and puts tombstones where some are taken out.

    Args:
        key: The signing key, where lines are signed.
        source: Who takes them out, as `name@version`.
    """

    def __init__(self, key: bytes | None, source: str) -> None:
        self._key = key
        self._source = source
        self._gaps: dict[str, _Gap] = {}
        self._ids = _ids.IdSource()
        self._held = self._forged = False

    def keep(self, line: bytes) -> Iterator[bytes]:
        """Give a line that stays, behind the tombstone that it follows in its chain."""
        if not any(mark in line for mark in _MARKS):
            yield line
            return
        sealed = read_sealed(line)
        if isinstance(sealed, str):
            yield line
        elif sealed.pruned and (not sealed.chain_id or self._holds(sealed)):
            yield from self._open(sealed.chain_id, sealed, line)
        else:
            self._held = self._held or self._holds(sealed)
            if sealed.chain_id:
                yield from self._close(sealed.chain_id)
            yield line

    def take_out(self, line: bytes, reason: str) -> Iterator[bytes]:
        """Leave a line out, and give the tombstones that have to stand before its own.

        Raises:
            ConfigError: It is signed, and there is no key to sign a tombstone with.
        """
        sealed = read_sealed(line)
        if isinstance(sealed, str):
            sealed = Sealed("", "", "", "", "", b"", "", 0)
        if sealed.signature and self._key is None:
            raise ConfigError("signing_key: the file is signed; give the key that it was signed with")
        holds = self._holds(sealed)
        self._held = self._held or holds
        self._forged = self._forged or bool(sealed.signature and not holds)
        chain = sealed.chain_id if holds else ""
        yield from self._open(chain, sealed)
        self._gaps[chain].reasons.add(reason)

    def rest(self) -> Iterator[bytes]:
        """Give the tombstones that no line follows.

        Raises:
            ConfigError: No signed line was signed with this key.
        """
        if self._forged and not self._held:
            raise ConfigError("signing_key: the file was signed with another key than the one given")
        for chain_id in sorted(self._gaps):
            yield from self._close(chain_id)

    def _holds(self, sealed: Sealed) -> bool:
        return sealed.own_fault(self._key if sealed.signature else None) is None

    def _open(self, chain_id: str, sealed: Sealed, tombstone: bytes = b"") -> Iterator[bytes]:
        """Make a line, or what a tombstone stands for, part of the gap that it continues, else of one of its own."""
        gap = self._gaps.get(chain_id)
        if gap and chain_id and (gap.last_id, gap.signed) != (sealed.prev_id, bool(sealed.signature)):
            yield from self._close(chain_id)
            gap = None
        payload = _payload(tombstone) if tombstone else {}
        first = str(payload.get("first_id", sealed.event_id))
        if gap is None:
            gap = self._gaps[chain_id] = _Gap(sealed.prev_id, first, "", bool(sealed.signature), line=tombstone)
        else:
            gap.line = b""
        gap.last_id = sealed.next_link or gap.last_id
        gap.events += sealed.pruned or 1
        gap.reasons.update(filter(None, str(payload.get("reason", "")).split(",")))

    def _close(self, chain_id: str) -> Iterator[bytes]:
        if gap := self._gaps.pop(chain_id, None):
            yield gap.line or self._tombstone(chain_id, gap)

    def _tombstone(self, chain_id: str, gap: _Gap) -> bytes:
        now = _clock.wall_ns()
        event = Event(
            event_id=_ids.encode(self._ids.mint(now)),
            event_type=PRUNED,
            timestamp=_clock.timestamp(now),
            source=self._source,
            payload={
                "events": gap.events,
                "first_id": gap.first_id,
                "last_id": gap.last_id,
                "reason": ",".join(sorted(gap.reasons)),
            },
        )
        if chain_id:
            chain = Chain(chain_id, self._key if gap.signed else None)
            chain.commit(gap.prev_id)
            event = chain.seal(event)
        return event.encode() + b"\n"


def _payload(tombstone: bytes) -> dict[str, object]:
    payload = json.loads(tombstone)["payload"]
    return cast("dict[str, object]", payload)
