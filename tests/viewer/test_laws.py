"""The figures of the viewer are those of a plain fold over the same events, however they were stored and read."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sessions import sessions
from support.viewer import write

from spanforge.analysis import StoredSession, stored_sessions
from spanforge.namespaces.event import Event
from spanforge.server.viewer.filters import SORTS, Filter
from spanforge.server.viewer.index import Index
from spanforge.server.viewer.index.figures import micros, moment_us
from spanforge.server.viewer.overview import overview, percentile
from spanforge.server.viewer.queries import SessionRow, choices, find, session_page, stored_events, version

_LARGEST = (1 << 63) - 1


@st.composite
def stores(draw: st.DrawFn) -> list[Event]:
    """Draw the events of some sessions, of two organisations that may use the same ids; some come twice."""
    found: list[Event] = []
    for number, events in enumerate(draw(st.lists(sessions(), max_size=5))):
        org, own = draw(st.sampled_from(["", "acme", "globex"])), draw(st.booleans())
        for event in events:
            session_id = f"{event.session_id}-{number}" if own else event.session_id
            payload = {**event.payload, "session_id": session_id}
            # Ids are fixed by number in these sessions, and differ from one session to the next in life.
            event_id = f"{event.event_id[:12]}{number}{event.event_id[13:]}"
            found.append(
                replace(event, org_id=org, session_id=session_id, payload=payload, event_id=event_id, _line=[])
            )
    return found + draw(st.lists(st.sampled_from(found), max_size=3)) if found else found


@contextmanager
def _index(events: list[Event], suffix: str, cut: int) -> Iterator[tuple[Index, Any]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"events{suffix}"
        index = Index(path)
        for part in (events[:cut], events[cut:]):
            if part:
                write(path, part)
            index.catch_up()
        with index.reading() as connection:
            yield index, connection
        index.close()


def _folded(events: list[Event], org: str | None = None) -> dict[tuple[str, str], StoredSession]:
    orgs = {event.org_id for event in events} if org is None else {org}
    return {
        (one, session.session_id): session
        for one in orgs
        for session in stored_sessions(event for event in events if event.org_id == one)
    }


def _matches(row: SessionRow, session: StoredSession) -> None:
    told = session.summary
    assert row.status == told.status
    assert row.retriever == told.retriever_name
    # Beyond 2 ** 53 microseconds, milliseconds as floats are no longer exact.
    assert row.latency == pytest.approx(micros(told.total_latency_ms), rel=1e-15, abs=0)
    assert row.grounding == told.avg_grounding_score
    assert row.input == min(told.total_input_tokens, _LARGEST)
    assert row.output == min(told.total_output_tokens, _LARGEST)
    assert (row.queries, row.retrievals) == (told.total_queries, told.retrieval_count)
    assert (row.chunks, row.errors) == (told.total_chunks_retrieved, told.error_count)
    assert (row.events, bool(row.ended)) == (len(session.events), session.ended)
    assert row.started == (moment_us(told.started_at or "") or moment_us(session.events[0].timestamp))


@settings(max_examples=40)
@given(events=stores(), suffix=st.sampled_from([".db", ".jsonl"]), cut=st.integers(0, 30))
def test_sessions_are_those_of_the_fold(events: list[Event], suffix: str, cut: int) -> None:
    folded = _folded(events)
    with _index(events, suffix, cut) as (index, connection):
        rows = session_page(connection, None, Filter(), size=1000).rows
        assert {(row.org, row.session_id) for row in rows} == set(folded)
        for row in rows:
            _matches(row, folded[row.org, row.session_id])
            assert find(connection, row.org, row.ref) == [row]
            again = index.events_of(stored_events(connection, row.key, 1000), row.org)
            assert again == folded[row.org, row.session_id].events
        assert version(connection, None) == len({(e.org_id, e.session_id, e.event_id) for e in events})


@settings(max_examples=40)
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
    with _index(events, ".db", 0) as (_, connection):
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


@settings(max_examples=40)
@given(
    events=stores(),
    status=st.sampled_from(["", "ok", "partial", "error"]),
    grounding=st.sampled_from([(None, None), (0.5, None), (None, 0.5), (0.2, 0.8)]),
    latency=st.sampled_from([(None, None), (1.0, None), (None, 5e4)]),
    model=st.sampled_from(["", "m"]),
    digest=st.sampled_from(["", "ab" * 32]),
    org=st.sampled_from(["", "acme"]),
)
def test_filters_are_the_predicates_they_name(  # noqa: PLR0917  hypothesis gives them by name
    events: list[Event], status: str, grounding: Any, latency: Any, model: str, digest: str, org: str
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
            and (not org or key[0] == org)
        )

    wanted = Filter(
        status=status, grounding_min=grounding[0], grounding_max=grounding[1], latency_min=latency[0],
        latency_max=latency[1], model=model, digest=digest, org=org,
    )  # fmt: skip
    with _index(events, ".db", 0) as (_, connection):
        found = {(row.org, row.session_id) for row in session_page(connection, None, wanted, size=1000).rows}
    assert found == {key for key, session in _folded(events).items() if keeps(key, session)}


@settings(max_examples=60)
@given(events=stores(), org=st.sampled_from([None, "acme"]))
def test_the_overview_is_the_fold_of_the_sessions(events: list[Event], org: str | None) -> None:
    folded = list(_folded(events, org).values())
    told = [session.summary for session in folded]
    scores = [one.avg_grounding_score for one in told if one.avg_grounding_score is not None]
    with _index(events, ".jsonl", 0) as (_, connection):
        figures = overview(connection, org, Filter())
        assert choices(connection, org).retrievers == sorted({one.retriever_name for one in told} - {""})
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
    assert figures.empty == sum(not one.total_chunks_retrieved for one in retrieving)
    assert sum(bucket.sessions for bucket in figures.volume) == len(folded)
    for row in figures.latency:
        if row.stage == "all stages":
            taken = sorted(min(micros(one.total_latency_ms), _LARGEST) for one in told)
        else:
            counted = f"{row.stage}_count" if row.stage != "query" else "total_queries"
            taken = sorted(
                min(micros(getattr(one, f"{row.stage}_latency_ms")), _LARGEST) for one in told if getattr(one, counted)
            )
        assert row.sessions == len(taken)
        expected = [taken[math.ceil(share * len(taken)) - 1] for share in (0.5, 0.9, 0.99)]
        assert [row.p50, row.p90, row.p99] == pytest.approx(expected, rel=1e-15, abs=0)
    used = Counter(
        chunk["source"]
        for session in folded
        for event in session.events
        if event.event_type == "llm.rag.retrieved"
        for chunk in event.payload["chunks"]
        if chunk["source"]
    )
    assert {one.source: one.chunks for one in figures.sources} == dict(used)


@given(values=st.lists(st.integers(0, 100), min_size=1), share=st.floats(0.01, 1))
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(values: list[int], share: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    assert found == ordered[0] or sum(value < found for value in ordered) < share * len(ordered)
