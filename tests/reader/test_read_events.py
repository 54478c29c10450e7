"""Reading: every whole line of any file, damage counted by reason, memory bounded."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stored import EVENTS, LAW, event, events, numbers

from spanforge.exceptions import ConfigError, MissingExtraError
from spanforge.namespaces.event import Event
from spanforge.reader import read_events
from spanforge.reader.lines import Line, LineSplitter
from spanforge.sessions.stored import is_sound
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink

if sys.version_info >= (3, 14):
    from compression import zstd

    def compress_zstd(data: bytes) -> bytes:
        return zstd.compress(data)
else:
    zstandard = pytest.importorskip("zstandard", reason="needs the zstd extra")

    def compress_zstd(data: bytes) -> bytes:
        return zstandard.ZstdCompressor().compress(data)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": compress_zstd,
}


def lines(stored: list[Event]) -> bytes:
    return b"".join(item.encode() + b"\n" for item in stored)


def at(folder: Path, data: bytes, name: str = "events.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# -- formats ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", COMPRESS)
@given(stored=st.lists(EVENTS, max_size=5))
@settings(LAW, max_examples=15)
def test_what_was_written_is_read_whatever_the_compression_and_the_name(
    tmp_path: Path, how: str, stored: list[Event]
) -> None:
    reader = read_events(at(tmp_path, COMPRESS[how](lines(stored)), "no-telling-name"))
    assert list(reader) == stored
    assert reader.read == len(stored)
    assert not reader.damaged
    assert list(reader) == [], "it is read once"


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_pieces_compressed_one_by_one_and_put_together(tmp_path: Path, how: str) -> None:
    data = b"".join(COMPRESS[how](lines([item])) for item in events(20))
    assert numbers(read_events(at(tmp_path, data))) == list(range(20))


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_a_compressed_file_cut_anywhere_gives_what_can_be_decompressed(tmp_path: Path, how: str) -> None:
    whole = COMPRESS[how](lines(events(4)))
    for cut in range(4, len(whole)):
        reader = read_events(at(tmp_path, whole[:cut]))
        found = numbers(reader)
        assert found == list(range(len(found)))
        assert reader.damaged["truncated"] == 1
    many = b"".join(COMPRESS[how](lines([item])) for item in events(20))
    reader = read_events(at(tmp_path, many[:-40]))
    assert numbers(reader) == list(range(19))


def test_a_cut_gzip_gives_every_line_that_is_in_it(tmp_path: Path) -> None:
    import random
    import zlib

    rng = random.Random(3)  # noqa: S311  the same noise each time
    stored = [event(number, noise="".join(rng.choices("abcdefgh", k=400))) for number in range(2000)]
    whole = gzip.compress(lines(stored))
    for cut in (len(whole) // 3, len(whole) // 2, len(whole) - 9):
        inside = zlib.decompressobj(31).decompress(whole[:cut]).count(b"\n")
        reader = read_events(at(tmp_path, whole[:cut]))
        assert numbers(reader) == list(range(inside))
        assert inside > 500


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_damage_inside_a_compressed_file_ends_it_and_the_next_file_is_read(tmp_path: Path, how: str) -> None:
    data = bytearray(COMPRESS[how](lines(events(300))))
    data[len(data) // 2 : len(data) // 2 + 30] = b"\xff" * 30
    first, second = at(tmp_path, bytes(data), "a.jsonl"), at(tmp_path, lines(events(2, 1000)), "b.jsonl")
    reader = read_events([first, second])
    assert numbers(reader)[-2:] == [1000, 1001]
    assert reader.damaged["corrupt"] + reader.damaged["truncated"] == 1


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="zstd is in the standard library")
def test_zstd_without_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = at(tmp_path, compress_zstd(lines(events(1))), "a.jsonl.zst")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"spanforge\[zstd\]"):
        list(read_events(path))


def test_a_byte_order_mark_and_the_line_ends_of_windows(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + lines(events(3)).replace(b"\n", b"\r\n") + b"\r\n \t\n\n"
    reader = read_events(at(tmp_path, data))
    assert numbers(reader) == [0, 1, 2]
    assert not reader.damaged
    assert numbers(read_events(at(tmp_path, gzip.compress(data)))) == [0, 1, 2]


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"])
def test_an_empty_file_is_no_damage(tmp_path: Path, data: bytes) -> None:
    reader = read_events(at(tmp_path, data))
    assert list(reader) == []
    assert not reader.damaged


# -- damage -------------------------------------------------------------------------------------------------------


def test_damage_is_counted_by_reason_and_skipped(tmp_path: Path) -> None:
    data = [
        event(0).encode(),
        b"garbage",
        b"[]",
        b"\xff\xfe",
        b"{}",
        b'{"a": NaN}',
        event(1).encode(),
        b"x" * 5000,
        event(2).encode()[:50],
    ]
    reader = read_events(at(tmp_path, b"\n".join(data)), max_line_bytes=4000)
    assert numbers(reader) == [0, 1]
    assert reader.damaged == Counter(
        {
            "not JSON": 1,
            "not a JSON object": 1,
            "not UTF-8": 1,
            "event_id: missing or empty": 1,
            "not strict JSON: NaN or Infinity": 1,
            "too_long": 1,
            "torn": 1,
        }
    )


def test_a_file_cut_at_every_byte_gives_back_every_whole_line(tmp_path: Path) -> None:
    stored = [event(0), event(1, text='ü\u2028"}{'), event(2, event_type="llm.rag.session")]
    whole = lines(stored)
    for cut in range(len(whole) + 1):
        ends = whole[:cut].count(b"\n")
        # A last line that lacks nothing but its end is whole, too.
        last_is_whole = cut < len(whole) and whole[cut : cut + 1] == b"\n"
        reader = read_events(at(tmp_path, whole[:cut]))
        assert list(reader) == stored[: ends + last_is_whole]
        assert reader.damaged.total() == int(not last_is_whole and cut > 0 and whole[cut - 1 : cut] != b"\n")


@given(st.data())
@settings(LAW, max_examples=150)
def test_a_flipped_byte_costs_its_own_line_at_most(tmp_path: Path, data: st.DataObject) -> None:
    stored = events(6)
    whole = bytearray(lines(stored))
    flips = data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=3, unique=True))
    hit: set[int] = set()
    for position in flips:
        number = bytes(lines(stored)).count(b"\n", 0, position)
        if lines(stored)[position : position + 1] != b"\n":
            hit.add(number)
        whole[position] ^= data.draw(st.integers(1, 255))
    found = list(read_events(at(tmp_path, bytes(whole))))
    untouched = [item for number, item in enumerate(stored) if number not in hit]
    assert [item for item in found if item in untouched] == untouched


def test_a_torn_line_and_a_whole_one_run_together(tmp_path: Path) -> None:
    data = event(0).encode()[:60] + event(1).encode() + b"\n" + event(2).encode() + event(3).encode() + b"\n"
    reader = read_events(at(tmp_path, data))
    assert numbers(reader) == [1, 2, 3]
    assert reader.damaged == Counter({"not JSON": 2})


def test_a_line_of_a_gigabyte_takes_no_more_memory_than_the_limit() -> None:
    class Endless(io.RawIOBase):
        """A line of 1 GiB between two events, made as it is read."""

        def __init__(self) -> None:
            self.left = 1 << 30
            self.before, self.after = lines(events(1)), b"\n" + lines(events(1, 1))

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            if self.before:
                data, self.before = self.before, b""
            elif self.left:
                data = bytes(min(len(buffer), self.left))
                self.left -= len(data)
            else:
                data, self.after = self.after, b""
            buffer[: len(data)] = data
            return len(data)

    from spanforge.reader.decoding import events_in
    from spanforge.reader.lines import lines_of

    damaged: Counter[str] = Counter()
    stream = io.BufferedReader(Endless(), 1 << 18)
    tracemalloc.start()
    found = [item for line in lines_of(stream, b"", 1 << 20, damaged) for item in events_in(line.data, damaged)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert numbers(found) == [0, 1]
    assert damaged == Counter({"too_long": 1})
    assert peak < 8 << 20


def test_a_bomb_takes_no_more_memory_than_its_pieces(tmp_path: Path) -> None:
    for how in ("gzip", "zstd"):
        path = at(tmp_path, COMPRESS[how](b"x" * (64 << 20) + b"\n" + lines(events(1))))
        tracemalloc.start()
        reader = read_events(path, max_line_bytes=1 << 20)
        assert numbers(reader) == [0]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert reader.damaged == Counter({"too_long": 1})
        assert peak < 40 << 20


@given(st.binary(max_size=300), st.integers(1, 50), st.lists(st.integers(1, 20), max_size=20))
@LAW
def test_lines_do_not_depend_on_how_the_bytes_come(data: bytes, limit: int, sizes: list[int]) -> None:
    damaged: Counter[str] = Counter()
    splitter, found, rest = LineSplitter(limit, damaged), [], data
    for size in [*sizes, 300]:
        found += splitter.feed(rest[:size])
        rest = rest[size:]
    found += splitter.end()
    *ended, last = data.split(b"\n")
    assert found == [
        *(Line(line, True) for line in ended if len(line) <= limit),
        *([Line(last, False)] if 0 < len(last) <= limit else []),
    ]
    assert damaged.total() == sum(len(line) > limit for line in (*ended, last))


# -- stores -------------------------------------------------------------------------------------------------------


def store(path: Path, stored: list[Event]) -> Path:
    sink = SqliteSink(path)
    sink.write(stored)
    sink.close()
    return path


def test_a_store_is_told_by_its_first_bytes_and_read_in_order_of_arrival(tmp_path: Path) -> None:
    path = store(tmp_path / "no-telling-name", [event(2), event(1), event(3)])
    assert numbers(read_events(path)) == [2, 1, 3]


def test_a_store_in_use_is_read_without_disturbing_it(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "events.db")
    sink.write(events(3))
    reader = read_events(tmp_path / "events.db")
    assert next(reader).payload["number"] == 0
    sink.write(events(3, 3))
    assert numbers(reader) == [1, 2], "as it was when reading began"
    sink.close()


@pytest.mark.parametrize(("code", "found"), [("SQLITE_CANTOPEN", [0, 1, 2]), ("SQLITE_IOERR", [])])
def test_a_store_that_cannot_be_written_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, found: list[int]
) -> None:
    path = store(tmp_path / "events.db", events(3))
    connect = sqlite3.connect

    class Refusing(sqlite3.Connection):
        """What SQLite does with a WAL database in a folder it cannot write; root, who runs this, always can."""

        def execute(self, *_: object) -> sqlite3.Cursor:  # type: ignore[override]
            error = sqlite3.OperationalError()
            error.sqlite_errorname = code
            raise error

    def refusing(name: str, **options: object) -> sqlite3.Connection:
        return connect(name, **options, factory=Refusing if "mode=ro" in name else sqlite3.Connection)  # type: ignore[call-overload]

    monkeypatch.setattr(sqlite3, "connect", refusing)
    reader = read_events(path)
    assert numbers(reader) == found
    assert reader.damaged == Counter({"corrupt": 1} if code == "SQLITE_IOERR" else {})


def test_damage_in_a_store(tmp_path: Path) -> None:
    path = store(tmp_path / "events.db", [*events(3), event(3, text="x" * 5000)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET line = 'garbage' WHERE seq = 2")
        connection.commit()
    reader = read_events(path, max_line_bytes=4000)
    assert numbers(reader) == [0, 2]
    assert reader.damaged == Counter({"not JSON": 1, "too_long": 1})


def test_a_database_of_something_else_and_a_damaged_one(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        connection.execute("CREATE TABLE users (name)")
    reader = read_events(tmp_path / "app.db")
    assert list(reader) == []
    assert reader.damaged == Counter({"not_a_store": 1})
    data = store(tmp_path / "events.db", events(500)).read_bytes()
    reader = read_events([at(tmp_path, data[:16] + b"\xff" * 200, "bad.db"), at(tmp_path, lines(events(1)))])
    assert numbers(reader) == [0]
    assert reader.damaged == Counter({"corrupt": 1})
    reader = read_events(at(tmp_path, data[: len(data) // 2], "half.db"))
    assert numbers(reader) == list(range(reader.read))
    assert reader.damaged == Counter({"corrupt": 1})


# -- paths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["gone.jsonl", "gone/*.jsonl", "gone"])
def test_a_path_that_leads_to_nothing_is_named_at_once(tmp_path: Path, missing: str) -> None:
    with pytest.raises(FileNotFoundError, match="no such file of events") as caught:
        read_events([at(tmp_path, b""), tmp_path / missing])
    assert caught.value.filename == str(tmp_path / missing)


def test_limits_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_line_bytes"):
        read_events(at(tmp_path, b""), max_line_bytes=0)
    with pytest.raises(ConfigError, match="unique_ids"):
        read_events(at(tmp_path, b""), unique_ids=0)


def test_a_folder_gives_its_event_files_oldest_first(tmp_path: Path) -> None:
    order = [
        "a.jsonl.10",
        "a.jsonl.9.gz",
        "a.jsonl.1",
        "a.jsonl",
        "events-20260101T000000.000000Z.jsonl.zst",
        "events-20260102T000000.000000Z.jsonl",
        "events.jsonl",
        "old.jsonl-20260101",
        "old.jsonl",
        "other.ndjson",
        "z.db",
    ]
    for number, name in enumerate(order):
        if name == "z.db":
            store(tmp_path / name, [event(number)])
        else:
            how = "gzip" if name.endswith("gz") else "zstd" if name.endswith("zst") else "plain"
            at(tmp_path, COMPRESS[how](lines([event(number)])), name)
    for other in ("notes.txt", "events.jsonl.lock", "y.db-journal", "data.json"):
        at(tmp_path, b"something else\n", other)
    (tmp_path / "folder.jsonl").mkdir()
    reader = read_events(tmp_path)
    assert numbers(reader) == list(range(len(order)))
    assert not reader.damaged
    assert list(read_events(tmp_path / "folder.jsonl")) == []


def test_patterns_and_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    sink = JsonlSink(tmp_path / "events.jsonl", max_bytes=400)
    sink.write(events(5))
    sink.close()
    assert (tmp_path / "events.jsonl.lock").exists()
    assert numbers(read_events(tmp_path / "events*")) == [0, 1, 2, 3, 4]
    assert numbers(read_events("~/**/events*.jsonl")) == [0, 1, 2, 3, 4]
    at(tmp_path, lines([event(9)]), "odd[1].jsonl")
    assert numbers(read_events("~/odd[1].jsonl")) == [9], "a file of that name comes before the pattern"


def test_a_path_is_expanded_when_reading_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(tmp_path, lines(events(1)))
    monkeypatch.chdir(tmp_path)
    assert numbers(read_events("events.jsonl")) == [0]


# -- repeats ------------------------------------------------------------------------------------------------------


def test_repeats_are_given_unless_they_are_not_wanted(tmp_path: Path) -> None:
    path = at(tmp_path, lines([*events(3), event(1)]))
    assert numbers(read_events([path, path])) == [0, 1, 2, 1, 0, 1, 2, 1]
    reader = read_events([path, path], unique=True)
    assert numbers(reader) == [0, 1, 2]
    assert (reader.read, reader.repeated) == (3, 5)


def test_what_is_remembered_for_that_is_bounded(tmp_path: Path) -> None:
    path = at(tmp_path, lines([event(0), event(1), event(0), event(2), event(0)]))
    assert numbers(read_events(path, unique=True, unique_ids=2)) == [0, 1, 2, 0]


def test_an_id_is_another_event_in_another_session_or_organisation(tmp_path: Path) -> None:
    first = event(1)
    others = [replace(first, session_id="s2"), replace(first, org_id="acme")]
    reader = read_events(at(tmp_path, lines([first, *others, first, *others])), unique=True)
    assert list(reader) == [first, *others]
    assert reader.repeated == 3


def test_what_is_unsound_stands_in_no_other_events_place(tmp_path: Path) -> None:
    given = {name: value for name, value in event(1).payload.items() if name != "number"}
    sound = replace(event(1), payload=given)
    unsound, other = (replace(sound, payload={**given, **more}) for more in ({"latency_ms": "12"}, {"latency_ms": 12}))
    reader = read_events(at(tmp_path, lines([unsound, unsound, sound, unsound, other])), unique=True, unique_ids=1)
    assert list(reader) == [unsound, sound]
    assert reader.repeated == 3


@pytest.mark.parametrize("levels", [250, 260, 700, 900, 960, 2000])
@pytest.mark.parametrize(("begin", "end"), ["[]", ('{"k":', "}")])
def test_how_deep_a_line_may_be_is_the_same_for_every_reader(tmp_path: Path, levels: int, begin: str, end: str) -> None:
    line = (
        event(1).encode().replace(b'"number":1', b'"filters":{"a":%b}' % (begin * levels + "1" + end * levels).encode())
    )
    path = at(tmp_path, line + b"\n")

    def read(frames: int) -> tuple[int, dict[str, int]]:
        """Read from so far down the stack."""
        if frames:
            return read(frames - 1)
        reader = read_events(path)
        return len([*map(is_sound, reader)]), dict(reader.damaged)

    assert read(0) == read(300) == ((1, {}) if levels < 256 else (0, {"nested too deep": 1}))


def test_unknown_fields_and_old_versions(tmp_path: Path) -> None:
    newer = json.dumps({**event(0).to_dict(), "region": "eu"}).encode() + b"\n"
    older = json.dumps({**event(1).to_dict(), "schema_version": "1.0", "timestamp": "2026-01-01T02:00:00+02:00"})
    found = list(read_events(at(tmp_path, newer + older.encode())))
    assert found[0].extra == {"region": "eu"}
    assert found[1].timestamp == "2026-01-01T00:00:00.000000Z"
