"""The last lines of files, and only those: by line ends from behind, by rows, or from the start where they must be."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.many_sessions import fill, many_events

from spanforge.reader import follow, last_lines
from spanforge.reader import growth as growing
from spanforge.reader.contents import is_whole

EVENTS = list(many_events(4))
LINES = [event.encode() for event in EVENTS]


def _last(files: list[Path], count: int) -> list[bytes]:
    return [line.data for line in last_lines(files, count, 1 << 20, Counter())]


@given(
    lines=st.lists(st.binary(max_size=9).map(lambda data: data.replace(b"\n", b"")), max_size=12).filter(
        lambda lines: not lines or not is_whole(lines[0])
    ),
    count=st.integers(1, 14),
)
def test_the_last_lines_of_a_file(lines: list[bytes], count: int, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines) + b"torn")
    assert _last([path], count) == lines[-count:]


def test_lines_longer_than_what_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_CHUNK", 7)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in LINES))
    for count in (1, 2, len(LINES), 1000):
        assert _last([path], count) == LINES[-count:]


def test_they_go_on_in_the_file_before(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("events.jsonl.2.gz", "events.jsonl.1", "events.jsonl", "events.db")]
    files[0].write_bytes(gzip.compress(b"\n".join(LINES[:6]) + b"\n"))
    files[1].write_bytes(b"\n".join(LINES[6:12]) + b"\n")
    files[2].write_bytes(b"")
    fill(files[3], 1)
    stored = _last(files[3:], 99)
    assert len(stored) == 6
    for count in (2, 6, 9, 12, 15, 18, 40):
        assert _last(files, count) == (LINES[:12] + stored)[-count:]


@pytest.mark.parametrize("name", ["events.jsonl", "events.db"])
def test_following_may_begin_with_the_last_ones(name: str, tmp_path: Path) -> None:
    path = fill(tmp_path / "events.db", 4)
    if name != "events.db":
        path = tmp_path / name
        path.write_bytes(b"\n".join(LINES) + b"\n")
    assert list(islice(follow(path, last=3), 3)) == EVENTS[-3:]
