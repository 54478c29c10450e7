"""Which stored events are to go: by age, by size, by session, by person."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from spanforge import _clock
from spanforge._hashing import utf8
from spanforge.exceptions import DecodeError
from spanforge.namespaces.event import PRUNED, Event
from spanforge.namespaces.stages import FEEDBACK, STAGES
from spanforge.reader import MAX_LINE_BYTES, stored_lines
from spanforge.reader.decoding import events_in

__all__ = ["Doomed", "PruneSelection"]

_STAGES: Final = frozenset(stage.event_type for stage in STAGES if stage.role != "signal")
_NEVER: Final = 1 << 63
_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneSelection:
    """What is to go; what is None or empty asks for nothing.

    A session is as old as its last event, and goes as a whole; an event of no session goes by its own time. What says
    no time that can be read stays.

    Attributes:
        older_than_s: Sessions that have been silent for longer, in seconds.
        max_bytes: The sessions that have been silent longest, until the files have this size together.
        sessions: Sessions by id, or by organisation, slash and id.
        actors: People, as `actor_id` names them, or a rating's `user_id_hash`, itself or by what it is the SHA-256 of:
            every event that names one, and of the sessions whose stages name one, the events that name nobody.
    """

    older_than_s: float | None = None
    max_bytes: int | None = None
    sessions: frozenset[str] = frozenset()
    actors: frozenset[str] = frozenset()


class Doomed:
    """Tells of each event whether it goes, and why.

    Args:
        wanted: What is to go.
        now_ns: The time.
    """

    def __init__(self, wanted: PruneSelection, now_ns: int) -> None:
        self._wanted = wanted
        self._old_ns = 0 if wanted.older_than_s is None else now_ns - int(wanted.older_than_s * 1e9)
        self._large_ns = 0
        # A user id that was given with a rating stands in it as a digest.
        self._people = wanted.actors | {sha256(utf8(one)).hexdigest() for one in wanted.actors}
        self._mentions = _mentions(wanted.sessions, self._people)
        self._alive: dict[_Key, int] = {}
        self._own: set[_Key] = set()

    def look_at(self, files: Iterable[Path]) -> None:
        """Read what has to be known of sessions as a whole before any of their events goes."""
        if self._wanted == PruneSelection(sessions=self._wanted.sessions):
            return
        sizes: Counter[_Key | int] = Counter()
        for file in files:
            sizes.update(self._look_at(file))
        if self._wanted.max_bytes is not None:
            self._large_ns = self._moment_of(self._wanted.max_bytes, sizes)
        cutoff = max(self._old_ns, self._large_ns)
        self._alive = {key: moment for key, moment in self._alive.items() if moment >= cutoff}

    def reason(self, event: Event) -> str:
        """Return why an event goes, empty where it stays."""
        if event.event_type == PRUNED:
            return ""
        return self._named(event) or self._aged(event)

    def reason_of_line(self, line: bytes) -> str:
        """Return why a line goes; one that is damaged goes where it mentions what is to be erased, and nothing else."""
        try:
            return self.reason(Event.decode(line))
        except DecodeError:
            return self._mentioned(line)

    def _named(self, event: Event) -> str:
        if self._wanted.sessions & {event.session_id, f"{event.org_id}/{event.session_id}"}:
            return "session"
        people = _people(event)
        if self._people & people or (not people and event.session_key in self._own):
            return "actor"
        return ""

    def _aged(self, event: Event) -> str:
        moment = _moment_ns(event)
        for reason, cutoff in (("age", self._old_ns), ("size", self._large_ns)):
            if moment < cutoff and self._alive.get(event.session_key, 0) < cutoff:
                return reason
        return ""

    def _mentioned(self, line: bytes) -> str:
        if any(not self.reason(event) for event in events_in(line, Counter())):
            return ""
        for reason, names in self._mentions:
            if all(any(form in line for form in forms) for forms in names):
                return reason
        return ""

    def _look_at(self, file: Path) -> Counter[_Key | int]:
        sizes: Counter[_Key | int] = Counter()
        by_size = self._wanted.max_bytes is not None
        # Of no more sessions than it takes: there may be millions.
        least = 0 if by_size else self._old_ns or _NEVER + 1
        for line in stored_lines(file, MAX_LINE_BYTES, Counter()):
            for event in events_in(line.data, Counter()):
                moment = _moment_ns(event)
                if by_size:
                    sizes[event.session_key if event.session_id else moment] += len(line.data) + 1
                if event.session_id and moment >= least:
                    self._alive[event.session_key] = max(moment, self._alive.get(event.session_key, 0))
                if event.event_type in _STAGES and event.session_id and self._people & _people(event):
                    self._own.add(event.session_key)
        # Compressed, and in a store with its indexes, a line takes another size than it has.
        scale = file.stat().st_size / max(1, sizes.total())
        return Counter({key: int(size * scale) for key, size in sizes.items()})

    def _moment_of(self, max_bytes: int, sizes: Counter[_Key | int]) -> int:
        """Return the moment before which everything has to go so that the rest fits."""
        moments: Counter[int] = Counter()
        for key, size in sizes.items():
            moments[key if isinstance(key, int) else self._alive[key]] += size
        total, cutoff = moments.total(), 0
        for moment in sorted(moments):
            if total <= max_bytes or moment == _NEVER:
                break
            total -= moments[moment]
            cutoff = moment + 1
        return cutoff


def _mentions(sessions: Iterable[str], people: Iterable[str]) -> list[tuple[str, list[set[bytes]]]]:
    """Return which names a damaged line has to hold, and for which reason it goes then."""
    split = [name.split("/", 1) for name in sessions if "/" in name]
    every = [("session", names) for names in [*([name] for name in sessions), *split]]
    every += [("actor", [name]) for name in people]
    return [(reason, [_quoted(name) for name in names if name]) for reason, names in every]


def _quoted(name: str) -> set[bytes]:
    """Return a name as JSON writes it: whole, lest `u-1` be found in `u-17`."""
    return {json.dumps(name).encode(), json.dumps(name, ensure_ascii=False).encode("utf-8", "replace")}


def _moment_ns(event: Event) -> int:
    try:
        return _clock.parse_timestamp(event.timestamp)
    except (ValueError, OverflowError):
        return _NEVER


def _people(event: Event) -> set[str]:
    named = {event.actor_id}
    if event.event_type == FEEDBACK:
        named.add(str(event.payload.get("user_id_hash") or ""))
    return named - {""}
