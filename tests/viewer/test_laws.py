"""The figures of the viewer are those of a plain fold over the same events, however they were stored and read."""

from __future__ import annotations

import itertools
import math
import sqlite3
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.many_sessions import fill
from support.sessions import stores
from support.viewer import write

from spanforge import _clock
from spanforge.analysis import StoredSession, stored_sessions
from spanforge.namespaces.event import Event
from spanforge.sessions.fold import microseconds
from spanforge.viewer.filters import SORTS, Filter
from spanforge.viewer.names import choices, version
from spanforge.viewer.overview import overview
from spanforge.viewer.queries import SessionRow, find, ref_of, session_page, turns
from spanforge.viewer.store import ViewedStore
from spanforge.viewer.stored_events import events_of

_LARGEST = (1 << 63) - 1


def _moment_us(text: str | None) -> int:
    return _clock.parse_timestamp(text) // 1000 if text and text != "nonsense" else 0


@contextmanager
def _viewed(events: list[Event], suffix: str, cut: int) -> Iterator[Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"events{suffix}"
        viewed = ViewedStore(path)
        for part in (events[:cut], events[cut:]):
            if part:
                write(path, part)
            viewed.catch_up()
        with viewed.reading() as connection:
            yield connection
        viewed.close()


def _folded(events: list[Event], org: str | None = None) -> dict[tuple[str, str], StoredSession]:
    orgs = {event.org_id for event in events} if org is None else {org}
    return {(one.org_id, one.session_id): one for one in stored_sessions(events) if one.org_id in orgs}


def _matches(row: SessionRow, session: StoredSession) -> None:
    told = session.summary
    assert row.status == told.status
    assert row.retriever == told.retriever_name
    # Beyond 2 ** 53 microseconds, milliseconds as floats are no longer exact.
    assert row.latency == pytest.approx(microseconds(told.total_latency_ms), rel=1e-15, abs=0)
    assert row.grounding == told.avg_grounding_score
    assert row.input == min(told.total_input_tokens, _LARGEST)
    assert row.output == min(told.total_output_tokens, _LARGEST)
    assert (row.queries, row.retrievals) == (told.total_queries, told.retrieval_count)
    assert (row.chunks, row.errors) == (told.total_chunks_retrieved, told.error_count)
    assert (row.events, bool(row.ended)) == (len(session.events), session.ended)
    assert row.started == (_moment_us(told.started_at) or _moment_us(session.events[0].timestamp))


@given(events=stores(), suffix=st.sampled_from([".db", ".jsonl"]), cut=st.integers(0, 30))
def test_sessions_are_those_of_the_fold(events: list[Event], suffix: str, cut: int) -> None:
    folded = _folded(events)
    with _viewed(events, suffix, cut) as connection:
        rows = session_page(connection, None, Filter(), size=1000).rows
        assert {(row.org, row.session_id) for row in rows} == set(folded)
        for row in rows:
            _matches(row, folded[row.org, row.session_id])
            assert find(connection, row.org, row.ref) == [row]
            assert find(connection, row.org, ref_of(row.org, row.session_id)) == [row]
            assert events_of(connection, row, 1000) == folded[row.org, row.session_id].events
        assert version(connection, None) == len({(e.org_id, e.session_id, e.event_id) for e in events})


@given(
    events=stores(),
    sort=st.sampled_from(SORTS),
    order=st.sampled_from(["asc", "desc"]),
    size=st.integers(1, 3),
    org=st.sampled_from([None, "acme"]),
)
def test_pages_visit_each_session_once_and_in_order(
    events: list[Event], sort: str, order: str, size: int, org: str | None
) -> None:
    with _viewed(events, ".db", 0) as connection:
        wanted, seen = Filter(sort=sort, order=order), []
        while True:
            page = session_page(connection, org, wanted, size=size)
            seen += page.rows
            if not page.following:
                break
            # Through the address, as a browser goes.
            wanted = Filter.parse({"sort": sort, "order": order, "after": page.following})
            assert not wanted.problems
        assert Counter((row.org, row.session_id) for row in seen) == Counter(list(_folded(events, org)))
        assert page.total == len(seen)
        values = [{"tokens": row.input + row.output}.get(sort, getattr(row, sort, None)) for row in seen]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=order == "desc")
        assert values[len(known) :] == [None] * (len(values) - len(known)), "those without a value stand last"


@given(
    events=stores(),
    status=st.sampled_from(["", "ok", "partial", "error"]),
    grounding=st.sampled_from([(None, None), (0.5, None), (None, 0.5), (0.2, 0.8)]),
    latency=st.sampled_from([(None, None), (1.0, None), (None, 5e4)]),
    model=st.sampled_from(["", "m"]),
    digest=st.sampled_from(["", "ab" * 32]),
    org=st.sampled_from(["", "acme"]),
    mine=st.sampled_from([None, "acme"]),
)
def test_filters_are_the_predicates_they_name(  # noqa: PLR0917  hypothesis gives them by name
    events: list[Event], status: str, grounding: Any, latency: Any, model: str, digest: str, org: str, mine: str | None
) -> None:
    def keeps(key: tuple[str, str], session: StoredSession) -> bool:
        told, score = session.summary, session.summary.avg_grounding_score
        models = {e.payload["model"] for e in session.events if e.event_type == "llm.rag.generated"}
        digests = {e.payload["query_hash"] for e in session.events if e.event_type == "llm.rag.query"}
        return (
            (not status or told.status == status)
            and (grounding[0] is None or (score is not None and score >= grounding[0]))
            and (grounding[1] is None or (score is not None and score <= grounding[1]))
            and (latency[0] is None or told.total_latency_ms >= latency[0])
            and (latency[1] is None or told.total_latency_ms <= latency[1])
            and (not model or model in models)
            and (not digest or digest in digests)
            and (mine is not None or not org or key[0] == org)
            and (mine is None or key[0] == mine)
        )

    wanted = Filter(
        status=status, grounding_min=grounding[0], grounding_max=grounding[1], latency_min=latency[0],
        latency_max=latency[1], model=model, digest=digest, org=org if mine is None else "",
    )  # fmt: skip
    with _viewed(events, ".db", 0) as connection:
        found = {(row.org, row.session_id) for row in session_page(connection, mine, wanted, size=1000).rows}
    assert found == {key for key, session in _folded(events).items() if keeps(key, session)}


def _steps(connection: sqlite3.Connection, ask: Callable[[], object]) -> int:
    """Count what SQLite does for an answer, in hundreds of its instructions."""
    steps = itertools.count()
    connection.set_progress_handler(lambda: next(steps) < 0, 100)
    ask()
    connection.set_progress_handler(None, 0)
    return next(steps)


@pytest.mark.parametrize(
    "wanted", [{"digest": f"{7:064x}"}, {"error": "Unheard"}, {"tag": "release=1"}, {"conversation": "x"}]
)
def test_what_few_sessions_have_is_found_without_a_look_at_all(tmp_path: Path, wanted: dict[str, str]) -> None:
    viewed = ViewedStore(fill(tmp_path / "events.db", 600))
    with viewed.reading() as connection:
        row = session_page(connection, None, Filter(), size=1).rows[0]
        all_sessions = _steps(connection, lambda: session_page(connection, None, Filter(mark="rated")))
        assert _steps(connection, lambda: session_page(connection, None, Filter(**wanted))) < all_sessions / 5
        assert _steps(connection, lambda: turns(connection, row)) < all_sessions / 5
    viewed.close()


@given(events=stores(), org=st.sampled_from([None, "acme"]))
def test_the_overview_is_the_fold_of_the_sessions(events: list[Event], org: str | None) -> None:
    folded = list(_folded(events, org).values())
    told = [session.summary for session in folded]
    scores = [one.avg_grounding_score for one in told if one.avg_grounding_score is not None]
    with _viewed(events, ".jsonl", 0) as connection:
        figures = overview(connection, org, Filter())
        assert choices(connection, org)["retriever"] == sorted({one.retriever_name for one in told} - {""})
    assert figures.sessions == len(folded)
    statuses = Counter(one.status for one in told)
    assert (figures.ok, figures.partial, figures.error) == tuple(statuses[s] for s in ("ok", "partial", "error"))
    assert figures.open == sum(not session.ended for session in folded)
    assert figures.input == pytest.approx(sum(min(one.total_input_tokens, _LARGEST) for one in told))
    assert figures.output == pytest.approx(sum(min(one.total_output_tokens, _LARGEST) for one in told))
    assert figures.grounding == tuple(
        sum(min(int(score * 10), 9) == number for score in scores) for number in range(10)
    )
    assert figures.grounding_mean == (pytest.approx(statistics.fmean(scores)) if scores else None)
    retrieving = [one for one in told if one.retrieval_count]
    assert figures.retrieving == len(retrieving)
    assert figures.empty == sum(not one.total_chunks_retrieved and one.status != "error" for one in retrieving)
    assert sum(group.sessions for group in figures.groups) == len(folded)
    assert sum(group.error for group in figures.groups) == figures.error
    assert sum(bucket.sessions for bucket in figures.volume) <= len(folded)
    for row in figures.latency:
        field = "total_latency_ms" if row.stage == "all stages" else f"{row.stage}_latency_ms"
        taken = sorted(min(microseconds(getattr(one, field)), _LARGEST) for one in told if getattr(one, field))
        assert row.sessions == len(taken)
        expected = [taken[math.ceil(share * len(taken)) - 1] for share in (0.5, 0.95, 0.99)]
        assert [row.p50, row.p95, row.p99] == pytest.approx(expected, rel=1e-15, abs=0)
    used = Counter(
        chunk["source"]
        for session in folded
        for event in session.events
        if event.event_type == "llm.rag.retrieved"
        for chunk in event.payload["chunks"]
        if chunk["source"]
    )
    assert {one.source: one.chunks for one in figures.sources} == dict(used)
