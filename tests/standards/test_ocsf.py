from __future__ import annotations

import json
from datetime import datetime
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from support.golden import QUERY_HASH, VARIANTS, Recorder, query, retrieved
from support.ocsf_schema import errors, misnamed
from support.sessions import sessions

from spanforge.namespaces.event import Event
from spanforge.standards.ocsf import security_events
from spanforge.standards.ocsf_aitf import retrieval_events, uuid_of
from spanforge.standards.tree.session import Session


@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_sessions_pass_the_validator(variant: str):
    for event in security_events(Session(VARIANTS[variant]())):
        assert errors(event) == []


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sessions())
def test_any_session_passes_the_validator(events: list[Event]):
    for event in security_events(Session(events)):
        assert errors(json.loads(json.dumps(event, allow_nan=False))) == []
        assert misnamed(event) == []


def test_the_validator_sees_what_is_wrong():
    event = security_events(Session(VARIANTS["plain"]()))[0]
    assert errors({**event, "activity_id": 77})
    assert errors({**event, "database": {"name": "no type"}})
    assert errors({**event, "surprise": 1})


def test_one_event_for_each_retrieval_generation_and_escalation():
    found = security_events(Session(VARIANTS["rich"]()))
    assert [event["type_uid"] for event in found] == [600504, 600301, 200401]
    search, call, finding = found
    assert search["database"]["type_id"] == 7
    assert search["metadata"]["correlation_uid"] == "golden-rich"
    assert search["observables"][0]["value"] == f"sha256:{QUERY_HASH}"
    assert search["duration"] == 30
    assert (search["status_id"], search["status"]) == (1, "Success")
    assert call["message_context"]["prompt_tokens"] == 2500
    assert call["message_context"]["total_tokens"] == 3300
    assert call["ai_model"] == {"name": "gpt-4o", "ai_provider": "azure.ai.openai", "version": "gpt-4o-2024-08-06"}
    assert (finding["severity_id"], finding["finding_info"]["title"]) == (3, "low-grounding")


def test_what_was_not_measured_is_not_in_an_event():
    search, call = security_events(Session(VARIANTS["absent"]()))
    for event in (search, call):
        assert not {"duration", "start_time"} & event.keys()
    assert "top_k" not in search["unmapped"]
    assert not {"prompt_tokens", "completion_tokens", "total_tokens"} & call["message_context"].keys()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_name_beside_a_number_is_its_caption(variant: str):
    """OCSF's server holds every sibling of an enumeration to that, but for 99, which the source names itself."""
    for event in security_events(Session(VARIANTS[variant]())):
        assert misnamed(event) == []


def test_a_time_out_is_a_failure_and_a_keyed_digest_says_so():
    event = security_events(Session(VARIANTS["timeout"]()))[0]
    assert (event["status_id"], event["status"], event["status_code"]) == (2, "Failure", "timeout")
    assert event["status_detail"] == "timeout"
    assert event["observables"][0]["value"].startswith("hmac-sha256:")


def test_a_partial_result_is_neither_and_is_named_by_its_source():
    run = Recorder("s")
    run.add(1, retrieved("s", status="partial"))
    (event,) = security_events(Session(run.events))
    assert (event["status_id"], event["status"], event["severity_id"]) == (99, "partial", 1)
    assert misnamed(event) == []


def test_the_class_as_aitf_numbers_it_derives_category_and_type_from_the_number():
    event = retrieval_events(Session(VARIANTS["plain"]()))[0]
    assert event["class_uid"] == 7004
    assert event["category_uid"] == event["class_uid"] // 1000
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"] == 700401
    assert event["database_name"] == "pinecone"


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_class_as_aitf_writes_it_has_moments_in_words_and_a_uuid(variant: str):
    """What AITF's JSON Schema and class of an OCSF event ask for."""
    for event in retrieval_events(Session(VARIANTS[variant]())):
        for moment in (event["time"], event["metadata"]["original_time"]):
            assert datetime.fromisoformat(moment).tzinfo is not None
        assert str(UUID(event["metadata"]["uid"])) == event["metadata"]["uid"]
        assert event["metadata"]["version"] == "1.1.0"
        assert isinstance(event.get("filter", ""), str)
        assert isinstance(event["results_count"], int)


def test_an_id_as_a_uuid_is_one_for_each_id():
    assert uuid_of("01KDVD6H000000000000000000") == "019b76d3-4400-0000-0000-000000000000"
    assert uuid_of("not a ulid") != uuid_of("another one")


def test_a_session_without_any_of_them_has_nothing_to_say():
    run = Recorder("s")
    run.add(1, query("s"))
    assert security_events(Session(run.events)) == retrieval_events(Session(run.events)) == []
    assert security_events(Session([])) == []


def test_a_retrieval_nobody_gave_a_digest_for_has_no_fingerprint():
    run = Recorder("s")
    run.add(1, retrieved("s", query_hash=""))
    (event,) = security_events(Session(run.events))
    assert "observables" not in event
    assert event["query_info"]["query_string"] == "unknown"
    assert errors(event) == []
