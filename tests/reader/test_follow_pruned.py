"""Who follows a file that is pruned meanwhile gets each event once, and no old one again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from support.stored import event, events, numbers

from spanforge.analysis import PruneSelection, prune
from spanforge.namespaces.event import Event
from spanforge.reader import follow
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink

GONE = PruneSelection(sessions=frozenset({"gone"}))


def following(path: Path, **asked: object) -> Iterator[Event]:
    return follow(path, poll_s=0.001, stop=threading.Event(), **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["events.jsonl", "events.db"])
@pytest.mark.parametrize("from_start", [True, False])
def test_a_prune_gives_nothing_again_and_hides_nothing(tmp_path: Path, name: str, from_start: bool) -> None:
    path = tmp_path / name
    sink = SqliteSink(path) if name.endswith(".db") else JsonlSink(path, chain=True)
    sink.write([*events(3), *events(2, 3, session_id="gone")])
    got = following(path, from_start=from_start, last=0 if from_start else 2)
    assert numbers(islice(got, 5 if from_start else 2)) == [0, 1, 2, 3, 4][0 if from_start else 3 :]
    assert prune(path, GONE)[0].removed == 2
    sink.write([event(5)])
    assert numbers(islice(got, 1)) == [5]
    sink.write([event(6, session_id="gone"), event(7)])
    assert prune(path, GONE)[0].removed == 1
    sink.write([event(8)])
    # Of what was pruned before anybody looked, a line may be seen, or not.
    assert [number for number in numbers(islice(got, 3 if name.endswith(".jsonl") else 2)) if number != 6] == [7, 8]
    sink.close()
