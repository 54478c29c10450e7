"""Events behind URLs: the same files, by the same rules, wherever fsspec reaches them."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.many_sessions import fill, many_events

from spanforge.exceptions import ConfigError, MissingExtraError
from spanforge.namespaces.event import Event
from spanforge.reader import RemoteFile, lines_since, mark, read_events, unread

fsspec: Any = pytest.importorskip("fsspec")

EVENTS = list(many_events(3))
LINES = b"".join(event.encode() + b"\n" for event in EVENTS)


@pytest.fixture
def memory() -> Iterator[tuple[Any, str]]:
    """Give a folder of fsspec's memory, and its URL."""
    system, name = fsspec.filesystem("memory"), f"/{uuid4().hex}"
    system.mkdir(name)
    yield system, name
    system.rm(name, recursive=True)


def _read(url: str) -> tuple[list[Event], dict[str, int]]:
    reader = read_events(url, unique=True)
    return list(reader), dict(reader.damaged)


def test_a_url_leads_to_a_file_a_folder_or_what_a_pattern_fits(memory: tuple[Any, str], tmp_path: Path) -> None:
    system, name = memory
    system.pipe(f"{name}/events.jsonl.1", gzip.compress(LINES[:500]) + b"cut")
    system.pipe(f"{name}/events.jsonl", LINES + b'{"torn')
    system.pipe(f"{name}/notes.txt", b"not events")
    system.pipe(f"{name}/store.db", fill(tmp_path / "store.db", 3).read_bytes())
    reader = read_events(f"memory:/{name}/")
    assert [file.name for file in reader.files] == ["events.jsonl.1", "events.jsonl", "store.db"]
    for url, damage in (("events.jsonl", {"torn": 1}), ("*.jsonl", {"torn": 1}), ("store.db", {})):
        assert _read(f"memory:/{name}/{url}") == (EVENTS, damage)
    events, damaged = _read(f"memory:/{name}")
    assert sorted(event.event_id for event in events) == [event.event_id for event in EVENTS]
    assert damaged.keys() == {"torn", "corrupt"}


def test_what_fsspec_finds_on_this_machine_is_a_file_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(LINES)
    reader = read_events(f"file://{tmp_path}/events.jsonl")
    assert reader.files == (tmp_path / "events.jsonl",)
    assert list(reader) == EVENTS


def test_what_a_remote_file_gained_is_read_alone(memory: tuple[Any, str]) -> None:
    system, name = memory
    cut = LINES.index(b"\n", 1000) + 1
    system.pipe(f"{name}/events.jsonl", LINES[: cut + 10])
    file = RemoteFile(system, f"{name}/events.jsonl")
    end = unread(file)
    assert end == cut
    system.pipe(f"{name}/events.jsonl", LINES)
    known = mark(file, end)
    assert known.holds(file)
    damaged: Any = {}
    more = [line.data for line in lines_since(file, known.offset, unread(file), 1 << 20, damaged)]
    assert b"".join(line + b"\n" for line in more) == LINES[cut:]


@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("memory://nothing/here", FileNotFoundError, "no such file of events"),
        ("carrier-pigeon://events.jsonl", ConfigError, "carrier-pigeon: no such kind of address"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused_in_words(url: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        read_events(url)


def test_without_fsspec_a_url_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"spanforge\[remote\]"):
        read_events("memory://events.jsonl")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_events_in_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto.server", reason="moto is not installed: no object store was tried")
    pytest.importorskip("s3fs", reason="s3fs is not installed: no object store was tried")
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        system = fsspec.filesystem("s3")
        system.mkdir("bucket")
        system.pipe("bucket/logs/events.jsonl", LINES)
        system.pipe("bucket/logs/events.jsonl.1.gz", gzip.compress(LINES))
        for url in ("s3://bucket/logs/events.jsonl", "s3://bucket/logs/", "s3://bucket/logs/*.gz"):
            assert _read(url) == (EVENTS, {})
    finally:
        server.stop()
