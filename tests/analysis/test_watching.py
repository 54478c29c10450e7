"""A rule fires exactly when its definition says, whatever the order, the clocks and the repeats of what comes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stored import LAW, START_NS, event

from spanforge import _clock
from spanforge.analysis import Alarm, Match, Policy, Watch, Watcher
from spanforge.analysis.quiet import QuietHours
from spanforge.exceptions import ConfigError
from spanforge.namespaces.event import Event
from spanforge.sdk import sf_feedback, sf_rag
from spanforge.sinks.memory import MemorySink
from spanforge.testing import capture

MINUTE_NS = 60_000_000_000
NOW_NS = START_NS + 10**6 * MINUTE_NS


def at(base: Event, minute: float) -> Event:
    return Event.from_dict({**base.to_dict(), "timestamp": _clock.timestamp(START_NS + int(minute * MINUTE_NS))})


def hour(minute: int) -> str:
    return _clock.timestamp(START_NS + minute * MINUTE_NS)[11:16]


def ends(number: int, minute: float, score: float | None, session: str = "") -> list[Event]:
    """Return a generation and the summary of a session that ends at a minute."""
    name = session or f"s{number}"
    said = {} if score is None else {"grounding_score": score}
    generated = event(2 * number, session_id=name, event_type="llm.rag.generated")
    generated = Event.from_dict({**generated.to_dict(), "payload": {"session_id": name, "model": "m", **said}})
    told = event(2 * number + 1, session_id=name, event_type="llm.rag.session")
    told = Event.from_dict({**told.to_dict(), "payload": {"session_id": name, "retriever_name": "r"}})
    return [at(generated, minute), at(told, minute)]


class Sample(NamedTuple):
    number: int
    minute: int
    score: float | None


def fires(samples: list[Sample], alarm: Alarm) -> tuple[list[int], int]:
    """Say once more, by looking back from each sample at all before it, at which the rule fires."""
    window = alarm.window_s / 60
    seen: list[Sample] = []
    fired: list[tuple[int, float]] = []
    held = 0
    for one in samples:
        if one.number in {other.number for other in seen}:
            continue
        seen.append(one)
        if one.score is None:
            continue
        clock = max(other.minute for other in seen)
        crossed = one.score < alarm.threshold
        if alarm.share is not None:
            scored = [other for other in seen if other.score is not None]
            # What was late when it came never was in the window.
            clocks = [max(o.minute for o in seen[: seen.index(other) + 1]) for other in scored]
            inside = [
                o
                for o, then in zip(scored, clocks, strict=True)
                if o.minute > then - window and o.minute > clock - window
            ]
            low = sum(o.score < alarm.threshold for o in inside if o.score is not None)
            crossed = one in inside and len(inside) >= alarm.smallest_sample and low >= alarm.share * len(inside)
        if crossed and ((fired and clock - fired[-1][1] < window) or (alarm.quiet and clock in QUIET)):
            held += 1
        elif crossed:
            fired.append((one.number, clock))
    return [number for number, _ in fired], held


QUIET = range(10, 25)
"""Minutes of the streams."""
STREAMS = st.lists(
    st.builds(
        Sample,
        st.integers(0, 15),
        st.integers(0, 40),
        st.sampled_from((None, 0.1, 0.4, 0.5, 0.6, 0.9)),
    ),
    max_size=40,
).map(lambda found: list({one.number: one for one in found}.values()) + found[:5])
ALARM = st.builds(
    Alarm,
    name=st.just("low"),
    field=st.just("grounding"),
    comparison=st.just("below"),
    threshold=st.just(0.5),
    window_s=st.sampled_from((60.0, 300.0, 1200.0)),
    share=st.sampled_from((None, 0.25, 0.5, 1.0)),
    smallest_sample=st.integers(1, 4),
    quiet=st.sampled_from((None, QuietHours.of(f"{hour(QUIET.start)}-{hour(QUIET.stop)}", "quiet"))),
)


def test_what_is_unsound_hides_no_rating_and_no_stage() -> None:
    watcher = Watcher([Alarm(name="low", field="grounding", comparison="below", threshold=0.5)])
    generated, told = ends(1, 1, 0.1)
    unsound = [Event.from_dict({**one.to_dict(), "payload": {"session_id": 1}}) for one in (generated, told)]
    assert [len(watcher.look(one, NOW_NS)) for one in (*unsound, generated, told)] == [0, 0, 0, 1]


@given(STREAMS, ALARM, st.data())
@LAW
def test_it_fires_exactly_when_the_rule_says(samples: list[Sample], alarm: Alarm, data: st.DataObject) -> None:
    known = {one.number: one for one in reversed(samples)}
    samples = [known[one.number] for one in samples]  # a repeat is the same event
    watcher, found = Watcher([alarm]), []
    for one in samples:
        events = ends(one.number, one.minute, one.score)
        for stored in [*events, *data.draw(st.lists(st.sampled_from(events), max_size=2))]:
            found += watcher.look(stored, NOW_NS)
    fired, held = fires(samples, alarm)
    assert [int(match.session_id[1:]) for match in found] == fired
    assert watcher.counts == {"low": (len(fired), held)}


LOW = Alarm(name="low", field="grounding", comparison="below", threshold=0.5)


def test_a_stage_that_is_late_counts_for_nothing_and_is_counted() -> None:
    watcher = Watcher([LOW])
    good, told = ends(1, 0, 0.9)
    bad = ends(2, 0, 0.1, "s1")[0]
    assert [watcher.look(one, NOW_NS) for one in (good, told, bad)] == [[], [], []]
    assert watcher.late == 1


def test_a_clock_that_runs_ahead_does_not_stop_the_rest() -> None:
    watcher = Watcher([LOW])
    streams = [*ends(1, 10**9, 0.1), *ends(2, 11, 0.1), *ends(3, 22, 0.1)]
    now = START_NS
    assert [match.session_id for one in streams[:2] for match in watcher.look(one, now)] == ["s1"]
    fired: list[Match] = []
    for minute, one in zip((11, 11, 22, 22), streams[2:], strict=True):
        fired += watcher.look(one, START_NS + minute * MINUTE_NS)
    assert [match.session_id for match in fired] == ["s2", "s3"]


@pytest.mark.parametrize(
    ("hours", "moment", "is_quiet"),
    [
        ("22:00-07:00", "2026-01-10T21:59:59.999999Z", False),
        ("22:00-07:00", "2026-01-10T22:00:00.000000Z", True),
        ("22:00-07:00", "2026-01-10T06:59:59.999999Z", True),
        ("22:00-07:00", "2026-01-10T07:00:00.000000Z", False),
        ("12:00-13:30", "2026-01-10T13:00:00.000000Z", True),
        ("12:00-13:30", "2026-01-10T23:00:00.000000Z", False),
        ("22:00-07:00 Europe/Berlin", "2026-01-10T21:00:00.000000Z", True),
        ("22:00-07:00 Europe/Berlin", "2026-07-10T05:00:00.000000Z", False),
        ("22:00-07:00 Europe/Berlin", "2026-07-10T20:00:00.000000Z", True),
    ],
)
def test_hours_are_quiet_by_the_clocks_of_a_place(hours: str, moment: str, is_quiet: bool) -> None:
    assert QuietHours.of(hours, "quiet").holds(_clock.parse_timestamp(moment)) is is_quiet


@pytest.mark.parametrize(
    "given",
    [
        "",
        "22-7",
        "22:00-22:00",
        "24:00-07:00",
        "1\u0663:00-07:00",
        "22:00-07:00 Nowhere/At_All",
        "22:00-07:00 ../../etc",
        7,
    ],
)
def test_hours_that_are_none_are_refused_by_name(given: object) -> None:
    with pytest.raises(ConfigError, match=r"^watch\[0\]\.quiet: "):
        Policy.of({"watch": [{"field": "grounding", "below": 0.5, "quiet": given}]})


def test_what_was_held_back_is_told_by_the_next_that_fires() -> None:
    watcher = Watcher([LOW])
    found = [m for n in range(6) for one in ends(n, 3 * n, 0.1) for m in watcher.look(one, NOW_NS)]
    assert [(match.session_id, match.held_back) for match in found] == [("s0", 0), ("s4", 3)]


def test_sessions_that_never_end_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanforge.analysis.watching._OPEN_EVENTS", 10)
    watcher = Watcher([LOW])
    for number in range(50):
        assert watcher.look(ends(number, 0, 0.1)[0], NOW_NS) == []
    assert watcher.unwatched == 40
    assert [m.session_id for one in ends(49, 0, 0.1) for m in watcher.look(one, NOW_NS)] == ["s49"]


def test_the_triggers_of_the_specification_escalate_in_process() -> None:
    memory, watch = MemorySink(), Watch()
    with capture(sinks=[memory, watch]):
        for grounding, found, stars in ((0.9, 1, 5), (0.4, 1, 2), (0.9, 0, 1)):
            with sf_rag.bind(org_id="acme"):
                session = sf_rag.trace_query("q")
                sf_rag.trace_retrieval(session, [{"chunk_id": "c", "score": 0.5}] * found)
                sf_rag.trace_generation(session, "m", grounding_score=grounding)
                sf_rag.end_session(session)
                sf_feedback.submit(session, rating=f"star_{stars}")
        sf_rag.flush()
        sf_rag.flush()
    told = [one for one in memory.events if one.event_type == "llm.rag.escalated"]
    assert Counter((one.payload["rule"], one.payload["trigger"], one.payload["level"]) for one in told) == {
        ("low-grounding", "grounding", 1): 1,
        ("nothing-found", "no_documents", 1): 1,
        ("low-rating", "rating", 1): 1,
    }
    assert {one.org_id for one in told} == {"acme"}
    assert watch.watcher.counts["low-rating"] == (1, 1)


def test_rules_and_service_levels_stand_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(
        """
[thresholds]
grounding = 0.7
[[watch]]
name = "many errors"
field = "error_count"
at_least = 1
share = 0.2
window = "1h"
level = 3
"""
    )
    policy = Policy.read(file)
    assert policy.rules[0].limit == 0.7
    assert policy.alarms == (
        Alarm(
            name="many errors",
            field="error_count",
            comparison="at_least",
            threshold=1.0,
            level=3,
            window_s=3600.0,
            share=0.2,
        ),
    )
    assert [alarm.name for alarm in Policy.of({}).alarms] == ["low-grounding", "low-rating", "nothing-found", "slow"]


@pytest.mark.parametrize(
    ("given_rules", "says"),
    [
        ({}, "watch: make it tables"),
        ([], "watch: make it tables"),
        ([1], "watch[0]: make it a table"),
        ([{"field": "mood", "below": 1}], "watch[0].field: use one of grounding, "),
        ([{"field": "grounding"}], "watch[0]: give one of below, above, at_least, at_most"),
        ([{"field": "grounding", "below": 1, "above": 0}], "watch[0]: give one of"),
        ([{"field": "grounding", "below": "low"}], "watch[0].below: give a number"),
        ([{"field": "grounding", "below": 1, "level": 4}], "watch[0].level: give a whole number from 1 to 3"),
        ([{"field": "grounding", "below": 1, "window": "soon"}], "watch[0].window: give a time"),
        ([{"field": "grounding", "below": 1, "window": "1\u0663m"}], "watch[0].window: give a time"),
        ([{"field": "grounding", "below": 1, "share": 0}], "watch[0].share: give a number"),
        ([{"field": "grounding", "below": 0}], "watch[0].below: no sample would match; they go from 0 to 1"),
        ([{"field": "min_grounding_score", "above": 1}], "watch[0].above: no sample would match; they go from 0 to 1"),
        ([{"field": "answer_quality", "at_most": 0.9}], "watch[0].at_most: no sample would match; they go from 1 to 5"),
        ([{"field": "latency_s", "at_least": 0}], "watch[0].at_least: every sample would match; they go from 0 up"),
        ([{"field": "error_count", "below": -1}], "watch[0].below: no sample would match"),
        ([{"field": "grounding", "below": 1, "smallest_sample": 9}], "watch[0].smallest_sample: is that of a share"),
        ([{"field": "grounding", "below": 1, "colour": 0}], "watch[0].colour: there is no such key"),
        ([{"field": "grounding", "below": 1}] * 2, "watch[1].name: there is one of this name"),
    ],
)
def test_a_rule_that_cannot_be_used_is_named(given_rules: object, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Policy.of({"watch": given_rules})
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize("field", ["grounding", "min_grounding_score", "documents_retrieved"])
@pytest.mark.parametrize(("comparison", "limit"), [("below", 1), ("above", 0), ("at_least", 1), ("at_most", 0)])
def test_a_rule_for_the_best_or_the_worst_alone_can_be_used(field: str, comparison: str, limit: int) -> None:
    [alarm] = Policy.of({"watch": [{"field": field, comparison: limit}]}).alarms
    assert alarm.threshold == limit
