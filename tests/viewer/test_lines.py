"""A plain file read from its end: every line once, with its place, however it is cut into blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stored import events

from spanforge.server.viewer.index.lines import PlainSource

_LINES = st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"").strip()), max_size=30)


def _all(source: PlainSource) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while batch := source.read():
        for place, data, _ in batch:
            assert place not in found
            found[place] = data
    return found


def _expected(lines: list[bytes], most: int = 1 << 20) -> dict[int, bytes]:
    places, at = {}, 0
    for line in lines:
        bare = line.strip().removeprefix(b"\xef\xbb\xbf")
        if bare and len(line) <= most:
            places[at] = bare
        at += len(line) + 1
    return places


@given(lines=_LINES, more=_LINES, block=st.integers(1, 64))
def test_every_line_is_given_once(tmp_path: Path, lines: list[bytes], more: list[bytes], block: int) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    source = PlainSource(path, block=block)
    found = _all(source)
    assert found == _expected(lines)
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in more))
    found |= _all(source)
    assert found == _expected(lines + more)
    assert source.lines_at(list(found)) == found
    assert source.progress() == (path.stat().st_size,) * 2


@given(
    lines=st.lists(st.integers(0, 90).map(lambda n: b"x" * n), max_size=12),
    block=st.integers(1, 64),
    split=st.integers(0, 12),
)
def test_too_long_lines_are_counted_and_skipped(tmp_path: Path, lines: list[bytes], block: int, split: int) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines[:split]))
    source = PlainSource(path, block=block, max_line=50)
    found = _all(source)
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines[split:]))
    found |= _all(source)
    assert found == _expected(lines, 50)
    assert source.damaged["too_long"] == sum(len(line) > 50 for line in lines)


def test_a_line_without_end_waits_until_it_is_whole(tmp_path: Path) -> None:
    path, line = tmp_path / "events.jsonl", events(1)[0].encode()
    path.write_bytes(b"first\n" + line[:40])
    source = PlainSource(path)
    assert list(_all(source).values()) == [b"first"]
    with path.open("ab") as file:
        file.write(line[40:])
    assert list(_all(source).values()) == [line], "whole, though its end is missing"
    with path.open("ab") as file:
        file.write(b"\nlast\n")
    assert list(_all(source).values()) == [b"last"]
    assert not source.damaged.total()


def test_a_file_that_was_cut_down_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"one\ntwo\n")
    source = PlainSource(path)
    assert len(_all(source)) == 2
    path.write_bytes(b"six\n")
    assert list(_all(source).values()) == [b"six"]


def test_a_file_that_is_gone_gives_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"one\n")
    source = PlainSource(path)
    _all(source)
    path.unlink()
    assert source.read() == []
    assert source.lines_at([0]) == {}


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_and_a_lone_line_end(tmp_path: Path, size: int) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n" * size)
    assert _all(PlainSource(path)) == {}
