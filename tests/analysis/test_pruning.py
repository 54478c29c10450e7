"""What is pruned is gone, what stays is as it was byte for byte, and the chain holds."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stored import LAW, event

from spanforge import _clock
from spanforge.analysis import PrunedFile, PruneSelection, prune
from spanforge.namespaces.chain import Chain, Verdict, verify_lines
from spanforge.namespaces.event import Event
from spanforge.reader import MAX_LINE_BYTES, read_events, stored_lines
from spanforge.sinks import _append, retention
from spanforge.sinks._lock import among_writers
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink

KEY = b"k" * 32
DAY_S = 86_400
CANARY = "fichtenmoped-31ae"
_SESSIONS = ("", "one", "two", "three")
_PEOPLE = ("", "ann", "bob")


def made(number: int, days: float, session: str = "one", actor: str = "", org: str = "", *, rated: str = "") -> Event:
    """Return an event of so many days ago; a rating by a person where one is named."""
    base = event(number, session_id=session)
    if rated:
        payload = {"session_id": session, "feedback_id": f"f{number}", "rating": "thumbs_up", "user_id_hash": rated}
        base = replace(base, event_type="llm.feedback.submitted", payload=payload)
    at = _clock.timestamp(_clock.wall_ns() - int(days * DAY_S * 1e9))
    return replace(base, timestamp=at, actor_id=actor, org_id=org)


def sealed(events: Iterable[Event], chains: int, key: bytes | None = KEY) -> list[bytes]:
    """Return lines of several chains, interleaved."""
    made_chains = [Chain(f"chain-{number}", key) for number in range(chains)]
    lines: list[bytes] = []
    for number, one in enumerate(events):
        chain = made_chains[number % chains] if chains else None
        lines.append((chain.seal(one) if chain else one).encode() + b"\n")
        if chain:
            chain.commit(one.event_id)
    return lines


def goes(one: Event, everyone: list[Event], wanted: PruneSelection) -> bool:
    """Say once more, by looking at all events, whether one of them goes."""
    group = [other for other in everyone if other.session_key == one.session_key] if one.session_id else [one]
    limit = "" if wanted.older_than_s is None else _clock.timestamp(_clock.wall_ns() - int(wanted.older_than_s * 1e9))
    named = {one.actor_id, one.payload.get("user_id_hash", "")} - {""}
    whose = {other.actor_id for other in group if one.session_id and other.event_type == "llm.rag.query"}
    return (
        one.session_id in wanted.sessions
        or bool(named & wanted.actors)
        or (not named and bool(whose & wanted.actors))
        or max(other.timestamp for other in group) < limit
    )


def verdict(path: Path, key: bytes | None = KEY) -> Verdict:
    return verify_lines(path.read_bytes().splitlines(), key)


def is_tombstone(line: bytes) -> bool:
    return b'"spanforge.pruned"' in line


STORED = st.lists(
    st.builds(
        lambda *parts: parts,
        st.integers(0, 20).map(lambda n: n + 0.5),
        st.sampled_from(_SESSIONS),
        st.sampled_from(_PEOPLE),
        st.sampled_from(("", "north")),
        st.sampled_from(("", "", "ann")),
    ),
    min_size=1,
    max_size=16,
).map(lambda rows: [made(n, d, s, a, o, rated=r if s else "") for n, (d, s, a, o, r) in enumerate(rows)])
SELECTIONS = st.builds(
    PruneSelection,
    older_than_s=st.none() | st.integers(1, 20).map(lambda days: days * DAY_S),
    sessions=st.frozensets(st.sampled_from(_SESSIONS[1:]), max_size=2),
    actors=st.frozensets(st.sampled_from(_PEOPLE[1:]), max_size=1),
)


@given(STORED, st.lists(SELECTIONS, min_size=1, max_size=3), st.integers(0, 3), st.sampled_from([None, KEY]))
@LAW
def test_prune_then_verify(
    tmp_path: Path, stored: list[Event], wanted: list[PruneSelection], chains: int, key: bytes | None
) -> None:
    path = tmp_path / "events.jsonl"
    before = sealed(stored, chains, key)
    path.write_bytes(b"".join(before))
    left = list(zip(stored, before, strict=True))
    for one in wanted:
        events = [event for event, _ in left]
        left = [(event, line) for event, line in left if not goes(event, events, one)]
        [outcome] = prune(path, one, key=key)
        assert (outcome.removed, outcome.problem) == (len(events) - len(left), "")
    lines = path.read_bytes().splitlines(keepends=True)
    assert [line for line in lines if not is_tombstone(line)] == [line for _, line in left]
    assert [event.event_id for event in read_events(path)] == [event.event_id for event, _ in left]
    tombstones = [json.loads(line)["payload"]["events"] for line in lines if is_tombstone(line)]
    assert sum(tombstones) == len(stored) - len(left)
    if chains:
        found = verdict(path, key)
        assert found.ok
        assert (found.events, found.pruned) == (len(left), sum(tombstones))


@given(STORED, SELECTIONS, st.integers(1, 2), st.data())
@LAW
def test_a_break_stays_a_break(
    tmp_path: Path, stored: list[Event], wanted: PruneSelection, chains: int, data: st.DataObject
) -> None:
    path = tmp_path / "events.jsonl"
    lines = sealed(stored, chains)
    number = data.draw(st.integers(0, len(lines) - 1))
    if data.draw(st.booleans()):
        lines[number] = lines[number].replace(b"tests@1.0.0", b"tests@9.9.9")
    else:
        del lines[number]
    path.write_bytes(b"".join(lines))
    was_whole = verdict(path).ok  # a last line of a chain may go unseen
    prune(path, wanted, key=KEY)
    assert verdict(path).ok == was_whole


@given(STORED, st.integers(1, 2), st.data())
@LAW
def test_a_tombstone_cannot_be_changed_taken_out_or_made_by_another(
    tmp_path: Path, stored: list[Event], chains: int, data: st.DataObject
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(sealed([*stored, *(made(90 + n, 0, "stays") for n in range(chains))], chains)))
    prune(path, PruneSelection(sessions=frozenset({"one", "two"})), key=KEY)
    lines = path.read_bytes().splitlines()
    marks = [number for number, line in enumerate(lines) if is_tombstone(line)]
    if not marks:
        return
    assert verify_lines(lines, KEY).ok
    number = data.draw(st.sampled_from(marks))
    more = {**json.loads(lines[number]), "checksum": "", "signature": ""}
    more["payload"]["events"] += 1
    forged = Chain(more["chain_id"], b"another key")
    forged.commit(more.get("prev_id", ""))
    for instead in (
        [lines[number].replace(b'"events":', b'"events":1')],
        [],
        [forged.seal(Event.from_dict(more)).encode()],
    ):
        assert not verify_lines([*lines[:number], *instead, *lines[number + 1 :]], KEY).ok


def test_tombstones_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(sealed([made(number, 0, f"s{number}") for number in range(10)], 1)))
    for number in (1, 3, 2, 4, 8, 6, 7):
        prune(path, PruneSelection(sessions=frozenset({f"s{number}"})), key=KEY)
    assert [is_tombstone(line) for line in path.read_bytes().splitlines()] == [False, True, False, True, False]
    assert verdict(path).ok


def test_without_the_key_or_with_another_a_signed_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    before = b"".join(sealed([made(1, 1), made(2, 1, "two")], 1))
    path.write_bytes(before)
    for key, says in ((None, "give the key"), (b"another", "another key")):
        [outcome] = prune(path, PruneSelection(sessions=frozenset({"one"})), key=key)
        assert says in outcome.problem
        assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".pruning"] == []


def test_what_nothing_is_taken_out_of_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(sealed([made(1, 1)], 1)))
    before = path.stat()
    assert prune(path, PruneSelection(older_than_s=2 * DAY_S), key=KEY)[0].removed == 0
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_dry_run_says_what_would_go_and_changes_nothing(tmp_path: Path) -> None:
    for name in ("events.jsonl", "events.db"):
        store(tmp_path / name, [made(1, 9), made(2, 1, "two", "ann")])
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    wanted = PruneSelection(older_than_s=5 * DAY_S, actors=frozenset({"ann"}))
    said = prune(tmp_path, wanted, dry_run=True)
    assert {file: file.read_bytes() for file in before} == before
    assert [(one.file.name, one.events, one.kept) for one in said] == [
        (one.file.name, one.events, one.kept) for one in prune(tmp_path, wanted)
    ]
    assert [dict(one.events) for one in said] == [{"age": 1, "actor": 1}] * 2


def store(path: Path, events: list[Event]) -> None:
    sink = SqliteSink(path) if path.suffix == ".db" else JsonlSink(path)
    sink.write(events)
    sink.close()


def test_a_session_is_as_old_as_its_last_event_in_any_file(tmp_path: Path) -> None:
    """A session that began in a file that was rotated since goes when all of it is old, and not before."""
    old = [made(1, 40, "long"), made(2, 40, "gone"), made(3, 40, "")]
    store(tmp_path / "events-20260101T000000.000000Z.jsonl", old)
    store(tmp_path / "events.jsonl", [made(4, 1, "long"), made(5, 35, "gone"), made(6, 1, "")])
    outcomes = prune(tmp_path / "events.jsonl", PruneSelection(older_than_s=30 * DAY_S))
    assert [one.removed for one in outcomes] == [2, 1]
    assert [event.event_id for event in read_events(tmp_path)] == [made(n, 0).event_id for n in (1, 4, 6)]


@pytest.mark.parametrize("name", ["events.jsonl", "events.db", "events.jsonl.gz"])
def test_the_sessions_silent_longest_go_until_the_rest_fits(tmp_path: Path, name: str) -> None:
    events = [made(number, 100 - number, f"s{number}") for number in range(100)]
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(b"".join(sealed(events, 0))))
    else:
        store(path, events)
    limit = path.stat().st_size // 2
    [outcome] = prune(path, PruneSelection(max_bytes=limit))
    left = [event.session_id for event in read_events(path)]
    assert left == [f"s{number}" for number in range(100 - len(left), 100)]
    # What a line takes of a compressed file is an estimate.
    assert 40 <= len(left) <= (55 if name.endswith(".gz") else 50)
    assert dict(outcome.events) == {"size": 100 - len(left)}


def test_a_person_is_forgotten_and_nobody_else(tmp_path: Path) -> None:
    events = [
        made(1, 1, "hers", "ann"),
        made(2, 1, "hers"),  # of another process, which did not know for whom
        made(3, 1, "hers", "bob", rated="bob"),
        made(4, 1, "his", "bob"),
        made(5, 1, "his", rated="ann"),
        made(6, 1, "his"),
        made(7, 1, "hers", org="north"),
        made(8, 1, "his", rated=hashlib.sha256(b"ann").hexdigest()),
    ]
    for name in ("events.jsonl", "events.db"):
        store(tmp_path / name, events)
    prune(tmp_path, PruneSelection(actors=frozenset({"ann"})))
    for name in ("events.jsonl", "events.db"):
        assert [int(one.event_id[-2:]) for one in read_events(tmp_path / name)] == [3, 4, 6, 7]


@given(STORED, SELECTIONS)
@LAW
def test_a_store_is_as_if_what_went_had_never_been_there(
    tmp_path: Path, stored: list[Event], wanted: PruneSelection
) -> None:
    for name in ("all.db", "left.db"):
        (tmp_path / name).unlink(missing_ok=True)
    store(tmp_path / "all.db", stored)
    store(tmp_path / "left.db", [one for one in stored if not goes(one, stored, wanted)])
    [outcome] = prune(tmp_path / "all.db", wanted)
    assert outcome.problem == ""
    assert tables(tmp_path / "all.db") == tables(tmp_path / "left.db")


def tables(path: Path) -> list[list[object]]:
    queries = (
        "SELECT event_id, line FROM events ORDER BY 1",
        "SELECT org_id, session_id, events, status, started_us, rating FROM session ORDER BY 1, 2",
        "SELECT count(*) FROM session_state",
        "SELECT kind, text, times, org_id, session_id FROM mention JOIN session ON id = session ORDER BY 1, 2, 4, 5",
        "SELECT count(*) FROM mention",
        "SELECT * FROM tally WHERE times ORDER BY 1, 2",
        "SELECT without_session FROM folded",
    )
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(query).fetchall() for query in queries]


def test_a_prune_right_after_a_write_does_not_have_it_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end of a write and the writer's look whether its file was deleted, another may stand there."""
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, chain=True)
    sink.write([made(1, 0, "one"), made(2, 0, "two")])
    monkeypatch.setattr(_append, "among_writers", prunes_when_it_ends(path))
    sink.write([made(3, 0, "two")])
    monkeypatch.undo()
    sink.write([made(4, 0, "two")])
    sink.close()
    assert [one.event_id for one in read_events(path)] == [made(number, 0).event_id for number in (2, 3, 4)]
    assert verdict(path, None).ok


def prunes_when_it_ends(path: Path) -> Callable[[int, Path], AbstractContextManager[None]]:
    @contextmanager
    def among(fd: int, at: Path) -> Generator[None]:
        with among_writers(fd, at):
            yield
        prune(path, PruneSelection(sessions=frozenset({"one"})))

    return among


def test_nothing_of_it_is_left_in_the_files_of_a_store(tmp_path: Path) -> None:
    """Not in free pages, nor where rows were moved within pages, nor in the log, with a writer that has it open."""
    path = tmp_path / "events.db"
    writer, rng = SqliteSink(path), random.Random(0)  # noqa: S311  lengths and an order, not secrets
    for number in range(0, 3000, 100):
        writer.write(
            [
                made(n, 1, f"{rng.random()}-{CANARY if n % 50 == 7 else ''}", "ann" * (n % 50 == 7))
                for n in range(number, number + 100)
            ]
        )
    assert CANARY.encode() in everything(tmp_path)
    [outcome] = prune(path, PruneSelection(actors=frozenset({"ann"})))
    assert (outcome.removed, outcome.problem) == (60, "")
    assert CANARY.encode() not in everything(tmp_path)
    writer.write([made(5000, 0, "later")])
    writer.close()
    assert len(list(read_events(path))) == 2941


def everything(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_damaged_lines_stay_but_where_they_name_who_is_to_be_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    one, two = made(1, 9, "one").encode(), made(2, 9, "two").encode()
    before = [b"no event\n", one[:-9] + b"\n", two[:-9] + one + b"\n", b"\n", two[:-5]]
    path.write_bytes(b"".join(before))
    prune(path, PruneSelection(older_than_s=DAY_S))
    assert path.read_bytes() == b"".join(before)
    prune(path, PruneSelection(sessions=frozenset({"two"})))
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[:-1] == before[:-1]
    assert is_tombstone(lines[-1])


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("events.jsonl.gz", gzip.compress(made(1, 9).encode())[:-20], "breaks off"),
        ("events.jsonl.zst", b"\x28\xb5\x2f\xfd....", "zstd"),
        ("events.parquet", b"PAR1....", "damaged"),
        ("events.db", b"SQLite format 3\0....", "damaged"),
    ],
)
def test_what_cannot_be_pruned_says_why_and_stays(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    [outcome] = prune(path, PruneSelection(older_than_s=DAY_S))
    assert says in outcome.problem
    assert path.read_bytes() == data


@pytest.mark.parametrize("whole", [True, False], ids=["lines", "envelopes"])
def test_a_table_loses_the_rows_that_a_file_loses(tmp_path: Path, *, whole: bool) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    events = [made(n, 0.1 if n < 20 else 9, f"s{n // 4}", CANARY if n % 5 == 1 else "ann") for n in range(60)]
    rows = [{"line": one.encode(), "day": n % 2} if whole else one.to_dict() for n, one in enumerate(events)]
    table, lines = tmp_path / "events.parquet", tmp_path / "events.jsonl"
    made_of = arrow.Table.from_pylist(rows).replace_schema_metadata({"made by": "a test"})
    parquet.write_table(made_of, table, row_group_size=25, compression="gzip")
    lines.write_bytes(b"".join(one.encode() + b"\n" for one in events))
    before = table.read_bytes()
    wanted = PruneSelection(older_than_s=DAY_S, actors=frozenset({CANARY}))
    [planned] = prune(table, wanted, dry_run=True)
    assert table.read_bytes() == before
    [expected], [outcome] = prune(lines, wanted), prune(table, wanted)
    assert (outcome.events, outcome.kept, outcome.problem) == (expected.events, expected.kept, "")
    assert (planned.events, planned.kept) == (outcome.events, outcome.kept)
    assert 0 < outcome.removed < 60
    assert list(read_events(table)) == list(read_events(lines))
    assert CANARY.encode() not in everything(tmp_path)
    left = parquet.ParquetFile(table)
    assert left.schema_arrow.equals(made_of.schema, check_metadata=True)
    assert (left.num_row_groups, left.metadata.row_group(0).column(0).compression) == (3, "GZIP")
    [outcome] = prune(table, wanted)
    assert (outcome.removed, outcome.kept) == (0, left.metadata.num_rows)
    assert not list(tmp_path.glob("*.pruning"))


@pytest.mark.parametrize("form", ["dictionary", "nested", "of a size", "view"])
def test_nothing_of_what_went_stays_in_a_dictionary(tmp_path: Path, form: str) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    events = [made(n, 9, f"s{n}", CANARY if n % 2 else "ann") for n in range(8)]
    lines, named = arrow.array([one.encode().decode() for one in events]), arrow.array([one.actor_id for one in events])
    if form == "view":
        columns = {"line": lines.cast(arrow.string_view()), "actor": named}
    else:
        named = named.dictionary_encode()
        nested = arrow.ListArray.from_arrays(arrow.array(range(9), arrow.int32()), named)
        sized = arrow.FixedSizeListArray.from_arrays(named, 1)
        actor = {"dictionary": named, "nested": nested, "of a size": sized}[form]
        columns = {"line": lines.dictionary_encode(), "actor": actor}
    path, table = tmp_path / "events.parquet", arrow.table(columns)
    parquet.write_table(table, path, compression="none")
    [outcome] = prune(path, PruneSelection(actors=frozenset({CANARY})))
    assert (outcome.removed, outcome.kept, outcome.problem) == (4, 4, "")
    assert CANARY.encode() not in path.read_bytes()
    assert list(read_events(path)) == events[::2]
    left = parquet.ParquetFile(path)
    assert left.schema_arrow.equals(parquet.ParquetFile(arrow.BufferReader(_written(table))).schema_arrow)
    assert left.metadata.row_group(0).column(0).compression == "UNCOMPRESSED"


def _written(table: Any) -> bytes:
    whole = io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(table, whole)
    return whole.getvalue()


@pytest.mark.parametrize("form", ["no text", "two of one name", "year 30000"])
def test_a_table_that_python_cannot_read_stays_and_holds_up_no_other(tmp_path: Path, form: str) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    one = made(1, 9, "one")
    path, line = tmp_path / "a.parquet", one.encode().decode()
    if form == "no text":
        bad = arrow.Array.from_buffers(arrow.string(), 1, arrow.array([line.encode()[:-1] + b"\xff"]).buffers())
        table = arrow.table({"line": bad})
    elif form == "two of one name":
        table = arrow.table([arrow.array([line])] * 2, names=["line"] * 2)
    else:
        late = arrow.array([884_541_351_600], arrow.int64()).cast(arrow.timestamp("s")).cast(arrow.timestamp("ms"))
        table = arrow.table({"event_id": [one.event_id], "timestamp": late})
    parquet.write_table(table, path)
    before = path.read_bytes()
    store(tmp_path / "b.jsonl", [one])
    damaged = Counter[str]()
    assert list(stored_lines(path, MAX_LINE_BYTES, damaged)) == []
    assert damaged == {"corrupt": 1}
    outcomes = {one.file.name: one for one in prune(tmp_path, PruneSelection(sessions=frozenset({"one"})))}
    assert "damaged" in outcomes["a.parquet"].problem
    assert path.read_bytes() == before
    assert outcomes["b.jsonl"].removed == 1


def test_a_table_of_something_else_stays(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "sessions.parquet"
    parquet.write_table(arrow.table({"session_id": ["one"]}), path)
    before = path.read_bytes()
    [outcome] = prune(path, PruneSelection(sessions=frozenset({"one"})))
    assert "something else than events" in outcome.problem
    assert path.read_bytes() == before


def test_another_name_of_the_file_would_keep_everything(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    store(path, [made(1, 9)])
    (tmp_path / "backup").hardlink_to(path)
    [outcome] = prune(path, PruneSelection(older_than_s=DAY_S))
    assert "hard link" in outcome.problem
    assert len(list(read_events(path))) == 1


def test_two_databases_and_a_link_in_one_call(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    store(tmp_path / "real/events.jsonl", [made(1, 9), made(2, 1, "two")])
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "real/events.jsonl")
    outcomes: list[PrunedFile] = prune(tmp_path / "events.jsonl", PruneSelection(older_than_s=2 * DAY_S))
    assert [one.removed for one in outcomes] == [1]
    assert (tmp_path / "events.jsonl").is_symlink()
    assert len(list(read_events(tmp_path / "real/events.jsonl"))) == 1


def test_an_index_beside_the_file_is_made_anew(tmp_path: Path) -> None:
    store(tmp_path / "events.jsonl", [made(1, 9)])
    index = tmp_path / ".spanforge/index/events.jsonl"
    index.mkdir(parents=True)
    prune(tmp_path / "events.jsonl", PruneSelection(older_than_s=DAY_S), dry_run=True)
    assert index.exists()
    prune(tmp_path / "events.jsonl", PruneSelection(older_than_s=DAY_S))
    assert not index.exists()


def test_a_store_that_was_pruned_halfway_is_finished_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, index = tmp_path / "events.db", tmp_path / ".spanforge/index/events.db"
    store(path, [made(1, 9), made(2, 1, "two")])
    index.mkdir(parents=True)
    wanted = PruneSelection(older_than_s=2 * DAY_S)

    def killed(_: sqlite3.Connection) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(retention, "_rewrite", killed)
        with pytest.raises(SystemExit):
            prune(path, wanted)
    assert not index.exists()
    assert retention.is_unfinished(path)
    prune(path, wanted, dry_run=True)
    assert retention.is_unfinished(path)
    prune(path, wanted)
    assert not retention.is_unfinished(path)


def test_a_file_that_stands_there_by_two_names_counts_once(tmp_path: Path) -> None:
    """A limit that a file keeps to takes nothing out of it because a link leads there too."""
    path = tmp_path / "events.jsonl"
    store(path, [made(number, 9, f"s{number}", "ann") for number in range(10)])
    (tmp_path / "current.jsonl").symlink_to(path)
    fits = PruneSelection(max_bytes=path.stat().st_size)
    assert [one.removed for one in prune(tmp_path, fits)] == [0]
    said = prune(tmp_path, PruneSelection(actors=frozenset({"ann"})), dry_run=True)
    assert [one.removed for one in said] == [10]


@pytest.mark.parametrize(
    "name", ["events-20260101T000000.000000Z.jsonl.gz", "events.jsonl.2.gz", "events.jsonl-20261101.gz"]
)
def test_what_was_rotated_and_compressed_since_is_meant_too(tmp_path: Path, name: str) -> None:
    store(tmp_path / "events.jsonl", [made(1, 1, "new", "ann")])
    (tmp_path / name).write_bytes(gzip.compress(made(2, 9, "old", "ann").encode() + b"\n"))
    prune(tmp_path / "events.jsonl", PruneSelection(actors=frozenset({"ann"})))
    assert b"ann" not in gzip.decompress((tmp_path / name).read_bytes())


@pytest.mark.parametrize(
    "data", [b'{\n  "owner": "ann",\n  "size": 1\n}\n', b"dear ann,\n", b'\x89PNG\r\n"ann"\n', b'{"user": "ann"}\n']
)
def test_a_file_of_something_else_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    store(tmp_path / "events.jsonl", [made(1, 1, "one", "ann")])
    other = tmp_path / "other"
    other.write_bytes(data)
    wanted = PruneSelection(actors=frozenset({"ann"}))
    for dry_run in (True, False):
        outcomes = {one.file.name: one for one in prune(str(tmp_path / "*"), wanted, dry_run=dry_run)}
        assert outcomes["events.jsonl"].removed == 1
        assert ("no file of events" in outcomes["other"].problem) is (b'"ann"' in data)
        assert other.read_bytes() == data


@pytest.mark.parametrize(
    ("torn", "wanted"),
    [
        (made(1, 9, "one", "u-17"), PruneSelection(actors=frozenset({"u-1"}))),
        (made(1, 9, "one-2"), PruneSelection(sessions=frozenset({"one"}))),
        (made(1, 9, "one", "", "south"), PruneSelection(sessions=frozenset({"north/one"}))),
    ],
)
def test_a_damaged_line_that_names_another_stays(tmp_path: Path, torn: Event, wanted: PruneSelection) -> None:
    path = tmp_path / "events.jsonl"
    before = torn.encode()[:-5] + b"\n"
    path.write_bytes(before + made(2, 9, "one", "u-1", "north").encode() + b"\n")
    [outcome] = prune(path, wanted)
    assert outcome.removed == 1
    assert path.read_bytes().startswith(before)


def test_a_store_whose_log_was_in_use_is_written_anew_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events are gone by then: that nothing is left to take out does not mean that nothing is left of it."""
    monkeypatch.setattr(retention, "_BUSY_S", 0.05)
    path = tmp_path / "events.db"
    writer = SqliteSink(path)
    writer.write([made(number, 1, f"{CANARY}-{number}", "ann") for number in range(50)])
    wanted = PruneSelection(actors=frozenset({"ann"}))
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN").execute("SELECT * FROM events").fetchone()
        [outcome] = prune(path, wanted)
        assert (outcome.removed, "run this again" in outcome.problem) == (50, True)
    assert CANARY.encode() in everything(tmp_path)
    [outcome] = prune(path, wanted)
    assert (outcome.removed, outcome.problem) == (0, "")
    assert CANARY.encode() not in everything(tmp_path)
    assert not list(tmp_path.glob(".*"))
    writer.close()
