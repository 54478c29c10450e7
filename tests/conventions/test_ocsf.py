from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from support.golden import QUERY_HASH, VARIANTS, Recorder, retrieved
from support.ocsf_schema import errors
from support.sessions import sessions

from spanforge.conventions.ocsf import datastore_events, retrieval_events
from spanforge.conventions.session import Session
from spanforge.namespaces.event import Event


@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_sessions_pass_the_validator(variant: str):
    for event in datastore_events(Session(VARIANTS[variant]())):
        assert errors(event) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sessions())
def test_any_session_passes_the_validator(events: list[Event]):
    for event in datastore_events(Session(events)):
        assert errors(json.loads(json.dumps(event, allow_nan=False))) == []


def test_the_validator_sees_what_is_wrong():
    event = datastore_events(Session(VARIANTS["plain"]()))[0]
    assert errors({**event, "activity_id": 77})
    assert errors({**event, "database": {"name": "no type"}})
    assert errors({**event, "surprise": 1})


def test_one_query_of_a_datastore_for_each_retrieval():
    events = datastore_events(Session(VARIANTS["rerank"]()))
    assert len(events) == 1
    event = events[0]
    assert (event["class_uid"], event["activity_id"], event["type_uid"]) == (6005, 4, 600504)
    assert event["database"]["type_id"] == 7
    assert event["metadata"]["correlation_uid"] == "golden-rerank"
    assert event["observables"][0]["value"] == f"sha256:{QUERY_HASH}"
    assert event["duration"] == 30
    assert event["status_id"] == 1


def test_a_time_out_is_a_failure_and_a_keyed_digest_says_so():
    event = datastore_events(Session(VARIANTS["timeout"]()))[0]
    assert (event["status_id"], event["status"], event["status_code"]) == (2, "timeout", "timeout")
    assert event["observables"][0]["value"].startswith("hmac-sha256:")


def test_the_class_as_aitf_numbers_it_derives_category_and_type_from_the_number():
    event = retrieval_events(Session(VARIANTS["plain"]()))[0]
    assert event["class_uid"] == 7004
    assert event["category_uid"] == event["class_uid"] // 1000
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"] == 700401
    assert event["database_name"] == "pinecone"


def test_a_session_without_a_retrieval_has_nothing_to_say():
    assert datastore_events(Session(VARIANTS["orphan"]())) == []
    assert datastore_events(Session([])) == []


def test_a_retrieval_nobody_gave_a_digest_for_has_no_fingerprint():
    run = Recorder("s")
    run.add(1, retrieved("s", query_hash=""))
    (event,) = datastore_events(Session(run.events))
    assert "observables" not in event
    assert event["query_info"]["query_string"] == "unknown"
    assert errors(event) == []
