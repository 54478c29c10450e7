"""A jsonl file as it grows: every event once, however it is written and cut; what cannot be read is counted."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stored import LAW, event, events, numbers
from support.viewer import write

from spanforge.namespaces.event import Event
from spanforge.viewer.sources import Source, source_of


def _opened(path: Path) -> Source:
    source = source_of(path)
    assert source is not None
    return source


def _all(source: Source) -> list[Event]:
    found: list[Event] = []
    while (some := source.read()) is not None:
        found += some
    return found


@LAW
@given(
    parts=st.lists(st.lists(st.integers(0, 9) | st.just("damaged"), max_size=5), min_size=1, max_size=4),
    block=st.integers(1, 700),
)
def test_every_line_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[list[int | str]], block: int
) -> None:
    monkeypatch.setattr("spanforge.viewer.sources._BLOCK", block)
    path, source, expected = tmp_path / "events.jsonl", None, list[int]()
    path.unlink(missing_ok=True)
    path.write_bytes(b"\n")
    for part in parts:
        with path.open("ab") as file:
            file.writelines(b"damaged\n" if one == "damaged" else event(int(one)).encode() + b"\n" for one in part)
        expected += [int(one) for one in part if one != "damaged"]
        source = source or _opened(path)
        assert numbers(_all(source)) == expected
        expected = []
    assert source is not None
    assert source.damaged["not JSON"] == sum(part.count("damaged") for part in parts)
    assert source.progress() == (path.stat().st_size,) * 2


def test_too_long_lines_are_counted_and_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanforge.viewer.sources._MAX_LINE", 1000)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * 5000 + b"\n" + event(1).encode() + b"\n")
    source = _opened(path)
    assert numbers(_all(source)) == [1]
    assert source.damaged == {"too_long": 1}


def test_a_line_without_end_waits_until_it_is_whole(tmp_path: Path) -> None:
    path, (first, line, last) = tmp_path / "events.jsonl", (item.encode() for item in events(3))
    path.write_bytes(first + b"\n" + line[:40])
    source = _opened(path)
    assert numbers(_all(source)) == [0]
    assert source.progress() == (len(first) + 1, len(first) + 41)
    with path.open("ab") as file:
        file.write(line[40:])
    assert numbers(_all(source)) == [1], "whole, though its end is missing"
    assert source.progress() == (path.stat().st_size,) * 2
    with path.open("ab") as file:
        file.write(b"\n" + last + b"\n")
    assert 2 in numbers(_all(source))
    assert not source.damaged.total()


def test_a_file_that_was_cut_down_is_read_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "events.jsonl", events(2))
    source = _opened(path)
    assert len(_all(source)) == 2
    path.write_bytes(event(7).encode() + b"\n")
    assert numbers(_all(source)) == [7]


def test_a_file_that_is_gone_gives_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "events.jsonl", events(1))
    source = _opened(path)
    path.unlink()
    assert source.read() is None
    assert source_of(path) is None


def test_a_compressed_file_and_a_store_are_read_to_their_end(tmp_path: Path) -> None:
    packed = tmp_path / "events.jsonl.gz"
    packed.write_bytes(gzip.compress(b"".join(item.encode() + b"\n" for item in events(1000))))
    store = write(tmp_path / "events.db", events(1000))
    for source in map(_opened, (packed, store)):
        assert numbers(_all(source)) == list(range(1000))
        done, total = source.progress()
        assert done == total > 0
    write(store, [event(1000)])
    assert numbers(_all(source)) == [1000]


def test_a_database_of_something_else_is_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE books (title TEXT)")
    source = _opened(path)
    assert source.read() is None
    assert source.read() is None
    assert source.damaged == {"not_a_store": 1}
