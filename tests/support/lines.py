"""Hypothesis strategies for what a log may hold: sessions, torn, repeated, in disorder, and lines that are none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from support.sessions import sessions

STRANGE: tuple[Any, ...] = (
    *(
        "12",
        "",
        "x",
        "\ud800",
        "é\u2028",
        -1,
        0,
        1,
        2**53 + 1,
        2**63,
        10**20,
        10**400,
        1.5,
        -0.0,
        0.1 + 0.2,
        1e15,
        1e308,
    ),
    *(True, False, None, [], {}, [1], ["a", "a"], [{"chunk_id": "c"}], {"chunk_id": 1}),
)
NUMERALS = ("NaN", "Infinity", "1e400", "01", "1.0", "3E2", "1e-400", "1" * 400, "-0")


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Draw the lines of a log."""
    events = draw(st.lists(sessions(), min_size=1, max_size=3))
    dicts = [
        replace(event, org_id=org, tags=tags).to_dict()
        for run, org, tags in zip(events, draw(_each(events, ORGS)), draw(_each(events, TAGS)), strict=True)
        for event in run
    ]
    lines = [json.dumps(one, separators=(",", ":")).encode() for one in dicts]
    kept = draw(st.lists(st.sampled_from(lines), max_size=12)) + (lines if draw(st.booleans()) else [])
    damaged = [draw(damage(line)) if draw(st.integers(0, 4)) == 0 else line for line in kept]
    return draw(st.permutations(damaged))


ORGS = st.sampled_from(["", "", "org-a"])
TAGS = st.sampled_from([{}, {"env": "prod"}, {"env": "test", "é": "\x00"}])


def _each(items: list[Any], strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, min_size=len(items), max_size=len(items))


@st.composite
def damage(draw: st.DrawFn, line: bytes) -> bytes:
    """Draw a line that differs from this one as files, other programs and newer versions make it differ."""
    return draw(st.sampled_from([_cut, _flipped, _valued, _numbered, _extended, _chunked, _repeated, _spaced]))(
        draw, line
    )


def _cut(draw: st.DrawFn, line: bytes) -> bytes:
    return line[: draw(st.integers(0, len(line)))]


def _flipped(draw: st.DrawFn, line: bytes) -> bytes:
    at = draw(st.integers(0, len(line) - 1))
    return line[:at] + bytes([draw(st.integers(0, 255).filter(lambda one: one != 10))]) + line[at + 1 :]


def _changed(line: bytes, where: list[Any], value: Any) -> bytes:
    fields = json.loads(line)
    inner = fields
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    return json.dumps(fields).encode()


def _places(line: bytes) -> list[list[str]]:
    fields = json.loads(line)
    return [[name] for name in fields] + [["payload", name] for name in fields["payload"]]


def _valued(draw: st.DrawFn, line: bytes) -> bytes:
    return _changed(line, draw(st.sampled_from(_places(line))), draw(st.sampled_from(STRANGE)))


def _numbered(draw: st.DrawFn, line: bytes) -> bytes:
    marked = _changed(line, draw(st.sampled_from(_places(line))), "@@")
    return marked.replace(b'"@@"', draw(st.sampled_from(NUMERALS)).encode())


def _extended(draw: st.DrawFn, line: bytes) -> bytes:
    where = draw(st.sampled_from([["new"], ["payload", "new"], ["payload", "latency_ms"]]))
    return _changed(line, where, draw(st.sampled_from(STRANGE)))


def _chunked(draw: st.DrawFn, line: bytes) -> bytes:
    chunk = {
        "chunk_id": "z",
        draw(st.sampled_from(["new", "score", "source", "chunk_id"])): draw(st.sampled_from(STRANGE)),
    }
    return _changed(line, ["payload", "chunks"], [chunk, chunk])


def _repeated(draw: st.DrawFn, line: bytes) -> bytes:
    """Give a key a second value, of which the last one counts."""
    name = draw(st.sampled_from(["latency_ms", "prompt_tokens", "status", "session_id", "grounding_score"]))
    first, last = (json.dumps(draw(st.sampled_from(STRANGE))) for _ in range(2))
    return line.replace(b'"payload":{', f'"payload":{{"{name}":{first},"{name}":{last},'.encode(), 1)


def _spaced(draw: st.DrawFn, line: bytes) -> bytes:
    return json.dumps(json.loads(line), indent=None, separators=(" , ", "\t:\t"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
