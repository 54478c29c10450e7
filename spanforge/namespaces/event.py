"""The envelope: one event is one line of strict JSON, and one line is one event.

`Draft` is what a caller's thread leaves behind, cheap to make. `Event` is what sinks and readers see.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from spanforge import _clock, _ids
from spanforge.exceptions import DecodeError

__all__ = ["NOT_SAMPLED", "PRUNED", "SCHEMA_VERSION", "Binding", "Draft", "Event", "Identity", "Parent"]

SCHEMA_VERSION: Final = "2.0"

Identity: TypeAlias = tuple[str, str, str]
"""Organisation, session and id: what makes two events one."""

NOT_SAMPLED: Final = "00"
"""W3C trace flags of a trace that was decided not to be sampled."""

PRUNED: Final = "spanforge.pruned"
"""Type of a tombstone: a line that stands for events which were taken out of a file, and is no event itself."""

_OPTIONAL: Final = (
    "session_id",
    "trace_id",
    "span_id",
    "parent_span_id",
    "trace_flags",
    "org_id",
    "team_id",
    "actor_id",
)
_SEAL: Final = ("chain_id", "prev_id", "checksum", "signature")
_STRINGS: Final = ("schema_version", "event_id", "event_type", "timestamp", "source", *_OPTIONAL, *_SEAL)
_REQUIRED: Final = ("event_id", "event_type", "timestamp", "source", "payload")
_KNOWN: Final = frozenset((*_STRINGS, "tags", "payload"))
_DEEPEST: Final = 256
"""Levels of a line that is an event: a limit of its own, because the stack's leaves each reader another rest."""

# ASCII only: U+2028 and friends, which some readers take for line ends, never stand in a line as they are.
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


class Binding(NamedTuple):
    """Who an event is made for, captured when it is made."""

    org_id: str = ""
    team_id: str = ""
    actor_id: str = ""
    tags: Mapping[str, str] = {}


class Parent(NamedTuple):
    """The OpenTelemetry span, or that of another service, that a session hangs under.

    Attributes:
        trace_id: 32 hex digits.
        span_id: 16 hex digits; empty where the session only shares the trace.
        sampled: Whether the trace is sampled, as was decided where it began.
    """

    trace_id: str
    span_id: str
    sampled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event (envelope 2.0; fields as in the reference of events). Absent fields are empty here, omitted in JSON.

    Attributes:
        payload: The payload as JSON-safe values; `spanforge.namespaces` has the class for each type.
        trace_flags: `00` where the trace around the session is not sampled; its spans are then not sent.
        extra: Envelope fields of a newer version, kept as they were read.
    """

    event_id: str
    event_type: str
    timestamp: str
    source: str
    payload: Mapping[str, Any]
    schema_version: str = SCHEMA_VERSION
    session_id: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    trace_flags: str = ""
    org_id: str = ""
    team_id: str = ""
    actor_id: str = ""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    chain_id: str = ""
    prev_id: str = ""
    checksum: str = ""
    signature: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _line: list[bytes] = field(default_factory=list[bytes], init=False, repr=False, compare=False)

    @property
    def session_key(self) -> tuple[str, str]:
        """Whose session it belongs to, and which: organisations may use the same ids."""
        return self.org_id, self.session_id

    @property
    def identity(self) -> Identity:
        """What makes two events one: an id counts within its session, as a session's within its organisation."""
        return self.org_id, self.session_id, self.event_id

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope as it is written: absent fields left out."""
        result: dict[str, Any] = {
            "schema_version": self.schema_version,
            "event_id": self.event_id,
            "event_type": self.event_type,
            "timestamp": self.timestamp,
            "source": self.source,
        }
        for name in _OPTIONAL:
            if value := getattr(self, name):
                result[name] = value
        if self.tags:
            result["tags"] = dict(self.tags)
        result["payload"] = dict(self.payload)
        for name in _SEAL:
            if value := getattr(self, name):
                result[name] = value
        return {**result, **self.extra} if self.extra else result

    def encode(self) -> bytes:
        """Return the event as one line of strict ASCII JSON, without the line end; the sinks of one event share it.

        Raises:
            ValueError: The payload was made outside spanforge and holds something JSON cannot say.
        """
        if not self._line:
            self._line.append(_encode(self.to_dict()).encode("ascii"))
        return self._line[0]

    @classmethod
    def decode(cls, line: bytes | str) -> Event:
        """Read one line, of this version or an older one.

        Raises:
            DecodeError: The line is not an event; the message says how, without any of it.
        """
        return cls.from_dict(_parse(line))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Event:
        """Build an event from an envelope, upcasting older versions and keeping fields it does not know.

        Raises:
            DecodeError: A required field is missing or of the wrong type; the message names it.
        """
        fields = _upcast(dict(data))
        for name in _REQUIRED:
            if not fields.get(name) and not (name == "payload" and fields.get(name) == {}):
                raise DecodeError(f"{name}: missing or empty")
        for name in _STRINGS:
            if not isinstance(fields.get(name, ""), str):
                raise DecodeError(f"{name}: not a string")
        for name in ("payload", "tags"):
            if not isinstance(fields.get(name, {}), dict):
                raise DecodeError(f"{name}: not an object")
        if any(not isinstance(value, str) for value in fields.get("tags", {}).values()):
            raise DecodeError("tags: a value is not a string")
        extra = {name: value for name, value in fields.items() if name not in _KNOWN}
        return cls(**{name: value for name, value in fields.items() if name in _KNOWN}, extra=extra)


class Draft:
    """An event as the caller's thread leaves it: ids as numbers, time as nanoseconds, nothing encoded.

    Attributes:
        number: The ULID as a number; the order of events.
        wall_ns: When it was made, in nanoseconds since the epoch.
        payload: The payload's fields; those that are None are absent.
        size: Estimated bytes it holds while it waits.
        parent: What the session hangs under, if anything.
        root: True for the event that is the session's root span.
    """

    __slots__ = (
        "_event",
        "binding",
        "event_type",
        "number",
        "parent",
        "payload",
        "root",
        "session_id",
        "size",
        "wall_ns",
    )

    def __init__(  # noqa: PLR0917  the one hot constructor: passing by keyword costs time in every traced call
        self,
        number: int,
        wall_ns: int,
        event_type: str,
        session_id: str,
        payload: dict[str, Any],
        binding: Binding,
        parent: Parent | None = None,
        size: int = 600,
        root: bool = False,
    ) -> None:
        self.number = number
        self.wall_ns = wall_ns
        self.event_type = event_type
        self.session_id = session_id
        self.payload = payload
        self.binding = binding
        self.parent = parent
        self.root = root
        self.size = size
        self._event: Event | None = None

    def event(self, source: str) -> Event:
        """Return the finished event; made once and shared by all sinks."""
        if self._event is None:
            self._event = self._finish(source)
        return self._event

    def _finish(self, source: str) -> Event:
        trace_id, above, sampled = self.parent or Parent(_ids.trace_id_of(self.session_id), "")
        root_span = _ids.root_span_id_of(self.session_id)
        org_id, team_id, actor_id, tags = self.binding
        return Event(
            event_id=_ids.encode(self.number),
            event_type=self.event_type,
            timestamp=_clock.timestamp(self.wall_ns),
            source=source,
            session_id=self.session_id,
            trace_id=trace_id,
            span_id=root_span if self.root else _ids.span_id_of(self.number),
            parent_span_id=above if self.root else root_span,
            trace_flags="" if sampled else NOT_SAMPLED,
            org_id=org_id,
            team_id=team_id,
            actor_id=actor_id,
            tags=tags,
            # A summary shares its fields with the frozen payload the caller gets; JSON has lists, not tuples.
            payload={
                name: list(value) if type(value) is tuple else value  # pyright: ignore[reportUnknownArgumentType]  JSON
                for name, value in self.payload.items()
                if value is not None
            },
        )


def _refuse_constant(_: str) -> NoReturn:
    raise DecodeError("not strict JSON: NaN or Infinity")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise DecodeError("a number is out of range")
    return value


def _parse(line: bytes | str) -> dict[str, Any]:
    """Parse one line; no error that leaves here holds any of it (json's own carries the whole document)."""
    problem = ""
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except DecodeError as error:
        problem = str(error)
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except RecursionError:
        problem = "nested too deep"
    except ValueError:
        problem = "not JSON"
    else:
        if not isinstance(value, dict):
            problem = "not a JSON object"
        elif text.count("[") + text.count("{") > _DEEPEST and _levels(value) > _DEEPEST:
            problem = "nested too deep"
        else:
            return value  # pyright: ignore[reportUnknownVariableType]  JSON objects have string keys
    raise DecodeError(problem)


def _levels(value: Any) -> int:
    levels, level = 0, [value]
    while level:
        levels += 1
        lists: list[list[Any]] = [one for one in level if isinstance(one, list)]
        dicts: list[dict[str, Any]] = [one for one in level if isinstance(one, dict)]
        level = [*chain.from_iterable(lists), *chain.from_iterable(one.values() for one in dicts)]
    return levels


def _from_1_0(fields: dict[str, Any]) -> dict[str, Any]:
    """Envelope 1.0 wrote times with an offset, and nulls into payloads as well."""
    if isinstance(payload := fields.get("payload"), dict):
        fields["payload"] = {name: value for name, value in payload.items() if value is not None}  # pyright: ignore[reportUnknownVariableType]  JSON
    timestamp = fields.get("timestamp")
    if isinstance(timestamp, str):
        try:
            fields["timestamp"] = _clock.timestamp(_clock.parse_timestamp(timestamp))
        except ValueError:
            del fields["timestamp"]
    return {**fields, "schema_version": SCHEMA_VERSION}


_UPCASTS: Final[dict[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {"1.0": _from_1_0}


def _upcast(fields: dict[str, Any]) -> dict[str, Any]:
    # Writers before this package wrote nulls, and a session id in the payload alone, under "1.0" and "2.0" alike.
    fields = {name: value for name, value in fields.items() if value is not None}
    payload = fields.get("payload")
    if "session_id" not in fields and isinstance(payload, dict) and isinstance(payload.get("session_id"), str):  # pyright: ignore[reportUnknownMemberType]  JSON
        fields["session_id"] = payload["session_id"]
    version = fields.get("schema_version", "1.0")
    step = _UPCASTS.get(version) if isinstance(version, str) else None
    return step(fields) if step else fields
