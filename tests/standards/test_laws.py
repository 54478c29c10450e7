from __future__ import annotations

import math
import re

from hypothesis import given
from support.sessions import SLOW_TO_DRAW, sessions

from spanforge.namespaces.event import Event
from spanforge.standards import aitf, genai, openinference, own
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import merged, spans
from spanforge.standards.tree.stages import read_stage

ALL = merged(
    aitf.ATTRIBUTES_AND_LATER,
    genai.ATTRIBUTES_WITH_DOCUMENTS,
    openinference.ATTRIBUTES,
    own.ATTRIBUTES,
)


@SLOW_TO_DRAW
@given(sessions())
def test_the_root_covers_its_stages_and_stages_keep_their_length(events: list[Event]):
    session = Session(events)
    root, *stages = spans(session)
    for span in stages if session.summary else ():
        if span.name.startswith(("rag.", "chat", "embeddings")):
            assert root.start_ns <= span.start_ns <= span.end_ns <= root.end_ns
    reported = {stage.event.event_id: stage for event in events if (stage := read_stage(event))}
    for stage in session.stages:
        before = reported[stage.event.event_id]
        assert stage.end_ns <= before.end_ns
        assert stage.length_ns == before.length_ns or stage.start_ns == 0
        assert stage.reconstructed or (stage.start_ns, stage.end_ns) == (before.start_ns, before.end_ns)


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
    tree = spans(session, ALL, aitf.DOCUMENT_AND_LATER)
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
    for span in spans(Session(events), ALL, aitf.DOCUMENT_AND_LATER):
        assert "gen_ai.retrieval.query.text" not in span.attributes
        if span.attributes["openinference.span.kind"] == "RETRIEVER":
            assert "gen_ai.provider.name" not in span.attributes
            assert "gen_ai.system" not in span.attributes
            assert "gen_ai.request.model" not in span.attributes
