"""One fold: the live table, files, the table of a sqlite store and the bulk engines say the same of every session.

Field by field and to the last digit, over sessions that were sampled, joined, gone on with after their end, known by
their summary alone or by nobody, whose events come repeated, in any order and late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engines import Figures, by_events, by_python, by_table, in_bulk
from support.live import STEPS, Live, folded
from support.many_sessions import many_events
from support.sessions import stores
from support.stored import LAW
from support.viewer import write

from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.namespaces.stages import SESSION
from spanforge.sinks.sqlite import SqliteSink

pytestmark = pytest.mark.timeout(600)

Told = dict[str, RAGSessionPayload]
"""What the calls that ended sessions returned, by session."""
_NUMBER = count()


@st.composite
def traced(draw: st.DrawFn) -> tuple[list[Event], Told]:
    """Draw what a client was called with; return the events it sent, and what it said of sessions that were sent whole.

    Or not at all, but for their summary.
    """
    live = Live(rate=draw(st.sampled_from([1.0, 1.0, 0.5, 0.0])), joins=draw(st.booleans()))
    for number, (call, values) in draw(STEPS):
        live.step(f"s{number}", call, values)
    for name in sorted(live.open):
        live.end(name)
    staged = {event.session_id for event in live.sink.events if event.event_type != SESSION}
    known = live.last if live.rate == 1.0 else {name: one for name, one in live.last.items() if name not in staged}
    return live.sink.events, {name: one for name, one in known.items() if name not in live.strays}


@given(
    several=st.lists(traced() | stores().map(lambda events: (events, Told())), min_size=4, max_size=8).filter(
        lambda several: any(events for events, _ in several)
    ),
    data=st.data(),
)
@settings(LAW, max_examples=settings.default.max_examples // 10)
def test_live_file_table_and_bulk_say_the_same(
    several: list[tuple[list[Event], Told]], data: st.DataObject, tmp_path: Path
) -> None:
    events = [_apart(event, number) for number, (sent, _) in enumerate(several) for event in sent]
    again = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events)))))
    figures = _same_everywhere(again, data.draw(st.lists(st.integers(0, len(again)), max_size=3)), tmp_path)
    for number, (_, told) in enumerate(several):
        for name, summary in told.items():
            found = {**figures["", f"{number}.{name}"], "session_id": name}
            assert folded(RAGSessionPayload.from_dict({k: found[k] for k in summary.to_dict()})) == folded(summary)


@pytest.mark.slow
# PySpark leaves a socket to the collector, and asks pandas in its old words.
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_spark_says_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="Spark is not installed: the fold on Spark was not tried (extra spark)")
    random = Random(1)  # noqa: S311  the same each time, which is the point
    events = [event for org in ("", "acme") for event in many_events(300, org=org)]
    events = [_apart(event, len(event.org_id)) for event in events]
    # Of some sessions the summary is all there is, of others it is what is missing.
    events = [one for one in events if ord(one.session_id[-1]) % 5 != (one.event_type == SESSION)]
    events += random.choices(events, k=500)
    random.shuffle(events)
    figures = _same_everywhere(events, [700, 1_400], tmp_path)
    assert in_bulk(tmp_path, "spark") == (figures, {})


def _same_everywhere(events: Sequence[Event], cuts: list[int], folder: Path) -> Figures:
    """Store events, in a database by two writers that take turns; return what all that read them say."""
    name = folder / str(next(_NUMBER))
    log, store = write(name.with_suffix(".jsonl"), events), name.with_suffix(".db")
    writers = SqliteSink(store), SqliteSink(store)
    for turn, (start, stop) in enumerate(zip([0, *sorted(cuts)], [*sorted(cuts), len(events)], strict=True)):
        writers[turn % 2].write(events[start:stop])
    by_whole = by_events(log)
    assert by_python(log) == by_whole
    assert by_table(store) == by_whole
    assert in_bulk(log) == by_whole
    for writer in writers:
        writer.close()
    return by_whole[0]


def _apart(event: Event, number: int) -> Event:
    """Return an event with a session of its own, so that one run of an engine answers for many. Its id others have."""
    session_id = f"{number}.{event.session_id}" if event.session_id else ""
    payload = {**event.payload, "session_id": session_id}
    return replace(event, session_id=session_id, payload=payload)
