from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from spanforge.delivery.gather import Gather
from spanforge.namespaces.event import Event

_counter = iter(range(10**9))


def event(session_id: str, kind: str = "query", org_id: str = "", **payload: object) -> Event:
    number = next(_counter)
    return Event(
        event_id=f"{number:026d}",
        event_type=f"llm.rag.{kind}" if "." not in kind else kind,
        timestamp="2026-01-01T00:00:00.000000Z",
        source="test@1.0",
        session_id=session_id,
        org_id=org_id,
        payload=payload,
    )


def test_a_session_is_held_until_its_summary_and_comes_in_one_piece():
    gather = Gather()
    a, b = [event("a"), event("a", "retrieved")], [event("b")]
    gather.add([a[0], b[0], a[1]], now=0.0)
    assert gather.take(1.0) == []
    assert len(gather) == 3
    summary = event("a", "session")
    gather.add([summary], now=2.0)
    assert gather.take(2.0) == [*a, summary]
    assert len(gather) == 1


def test_the_end_of_one_organisations_session_is_not_that_of_another_with_its_id():
    gather = Gather()
    ours, theirs = event("a", org_id="acme"), event("a", org_id="globex")
    end, later = event("a", "session", org_id="acme"), event("a", "retrieved", org_id="globex")
    gather.add([ours, theirs, end, later], now=0.0)
    assert gather.take(1.0) == [ours, end]
    assert gather.take(1.0, everything=True) == [theirs, later]


def test_a_session_that_never_ends_is_let_go_by_age_and_due_says_when():
    gather = Gather(max_age_s=10.0)
    stage = event("a")
    gather.add([stage], now=5.0)
    assert gather.due == 15.0
    assert gather.take(14.9) == []
    assert gather.take(15.0) == [stage]
    assert gather.due is None


def test_stages_after_their_summary_and_feedback_pass_at_once():
    gather = Gather()
    gather.add([event("a"), event("a", "session")], now=0.0)
    gather.take(0.0)
    late, feedback = event("a", "evaluated"), event("z", "llm.feedback.submitted")
    gather.add([late, feedback], now=1.0)
    assert gather.take(1.0) == [late, feedback]


def test_feedback_joins_a_session_that_is_held():
    gather = Gather()
    stage, feedback = event("a"), event("a", "llm.feedback.submitted")
    gather.add([stage, feedback], now=0.0)
    assert gather.take(1.0) == []
    assert gather.take(1.0, everything=True) == [stage, feedback]


def test_too_many_events_let_the_oldest_session_go():
    gather = Gather(max_events=3)
    first, others = event("a"), [event("b"), event("c"), event("d")]
    gather.add([first, *others], now=0.0)
    assert gather.take(0.0) == [first]
    assert len(gather) == 3


def test_too_many_bytes_let_the_oldest_session_go():
    first = event("a", "query", filters={"x": "y" * 2_000})
    gather = Gather(max_bytes=2_500)
    gather.add([first, event("b", "query", filters={"x": "y" * 2_000})], now=0.0)
    assert gather.take(0.0) == [first]


def test_take_begins_no_session_beyond_the_limit_but_gives_a_large_one_whole():
    gather = Gather()
    large = [event("a") for _ in range(5)] + [event("a", "session")]
    small = [event("b"), event("b", "session")]
    gather.add([*large, *small], now=0.0)
    assert gather.take(0.0, limit=3) == large
    assert gather.due == 0.0
    assert gather.take(0.0, limit=3) == small


def test_what_is_put_back_is_taken_first():
    gather = Gather()
    gather.add([event("a"), event("a", "session"), event("b"), event("b", "session")], now=0.0)
    first = gather.take(0.0, limit=2)
    gather.put_back(first)
    gather.put_back([])
    assert len(gather) == 4
    assert gather.take(0.0, limit=2) == first


def test_sessions_that_are_put_back_together_can_be_taken_one_by_one():
    gather = Gather()
    gather.add([event("a"), event("a", "session"), event("b"), event("b", "session")], now=0.0)
    both = gather.take(0.0)
    gather.put_back(both)
    assert (gather.take(0.0, limit=1), gather.take(0.0, limit=1)) == (both[:2], both[2:])
    assert not len(gather)


def test_an_event_that_cannot_be_encoded_is_held_like_any_other():
    gather = Gather()
    bad = event("a", "query", filters={"x": float("nan")})
    gather.add([bad], now=0.0)
    assert gather.take(0.0, everything=True) == [bad]


KINDS = ["query", "retrieved", "session", "escalated"]
STEP = st.one_of(
    st.tuples(
        st.just("add"),
        st.sampled_from("abc"),
        st.sampled_from(["query", "retrieved", "session", "escalated"]),
    ),
    st.tuples(st.just("take"), st.booleans(), st.integers(1, 4)),
    st.tuples(st.just("again"), st.booleans(), st.integers(1, 4)),
)


@given(st.lists(STEP, max_size=60), st.integers(1, 6))
def test_no_event_is_lost_or_doubled_whatever_happens(steps: list[tuple], max_events: int):
    gather = Gather(max_events=max_events, max_age_s=7.0)
    given_ids, taken = [], []
    for now, (action, first, second) in enumerate(steps):
        if action == "add":
            new = event(first, second)
            given_ids.append(new.event_id)
            gather.add([new], now=float(now))
        else:
            batch = gather.take(float(now), everything=first, limit=second)
            if action == "again":
                gather.put_back(batch)
            else:
                taken += batch
        assert len(gather) + len(taken) == len(given_ids)
    while batch := gather.take(1e9, everything=True):
        taken += batch
    assert Counter(e.event_id for e in taken) == Counter(given_ids)


def test_it_remembers_the_sessions_that_ended_last():
    gather = Gather()
    for number in range(1_001):
        gather.add([event(f"s{number}"), event(f"s{number}", "session")], now=0.0)
    while gather.take(0.0):
        continue
    gather.add([event("s0"), late := event("s1000")], now=1.0)
    assert gather.take(1.0) == [late]
