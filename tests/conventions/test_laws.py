from __future__ import annotations

import math
import re

from hypothesis import HealthCheck, given, settings
from support.sessions import sessions

from spanforge.conventions import aitf, genai, openinference, own
from spanforge.conventions.session import Session
from spanforge.conventions.spans import spans
from spanforge.namespaces.event import Event

ALL = (
    aitf.attributes_and_later,
    genai.attributes_with_documents,
    openinference.attributes,
    own.attributes,
)

SLOW_TO_DRAW = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check_attributes(attributes: dict[str, object]) -> None:
    for key, value in attributes.items():
        key.encode("utf-8")
        values = value if isinstance(value, tuple) else (value,)
        for each in values:
            assert type(each) in {str, bool, int, float}
            if isinstance(each, str):
                each.encode("utf-8")
            elif isinstance(each, float):
                assert math.isfinite(each)
            else:
                assert -(2**63) <= each < 2**63


@SLOW_TO_DRAW
@given(sessions())
def test_every_span_of_any_session_can_be_sent(events: list[Event]):
    session = Session(events)
    tree = spans(session, ALL, aitf.document_and_later)
    assert len({(span.trace_id, span.span_id) for span in tree}) == len(tree)
    for span in tree:
        assert 0 <= span.start_ns <= span.end_ns < 2**63
        assert re.fullmatch("[0-9a-f]{32}", span.trace_id)
        assert re.fullmatch("[0-9a-f]{16}", span.span_id)
        assert re.fullmatch("|[0-9a-f]{16}", span.parent_span_id)
        span.name.encode("utf-8")
        span.error.encode("utf-8")
        check_attributes(span.attributes)
        for event in span.events:
            check_attributes(event.attributes)
    for result in genai.evaluation_results(session):
        check_attributes(result.attributes)


@SLOW_TO_DRAW
@given(sessions())
def test_a_retrieval_names_no_provider_or_model_and_no_span_carries_the_query_text(events: list[Event]):
    for span in spans(Session(events), ALL, aitf.document_and_later):
        assert "gen_ai.retrieval.query.text" not in span.attributes
        if span.attributes["openinference.span.kind"] == "RETRIEVER":
            assert "gen_ai.provider.name" not in span.attributes
            assert "gen_ai.system" not in span.attributes
            assert "gen_ai.request.model" not in span.attributes
