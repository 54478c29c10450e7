"""What it costs to turn one session into the full span tree."""

from __future__ import annotations

import time

import pytest
from support.golden import VARIANTS
from support.measuring import BLOCKS, CountingExporter, Side, compare, provider_of, show

from spanforge.standards import aitf, genai, openinference, own
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import Span, merged, spans

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]
STANDARDS = merged(aitf.ATTRIBUTES_AND_LATER, genai.ATTRIBUTES, openinference.ATTRIBUTES, own.ATTRIBUTES)
EVENTS = VARIANTS["evaluation"]()
COLUMNS = ("compared with", "ours, µs a session", "theirs, µs a session", "ratio", "promise")


def tree() -> tuple[Span, ...]:
    return spans(Session(EVENTS), STANDARDS, aitf.DOCUMENT_AND_LATER)


def test_against_opentelemetry_sdk_creating_the_same_spans():
    """Seven spans with all attributes of all standards; theirs are given ready, ours are worked out from events."""
    exporter = CountingExporter()
    provider = provider_of(exporter)
    tracer = provider.get_tracer("benchmark")
    ready = tree()

    def create() -> None:
        for span in ready:
            made = tracer.start_span(span.name, attributes=span.attributes, start_time=span.start_ns)
            for event in span.events:
                made.add_event(event.name, event.attributes, event.time_ns)
            made.end(span.end_ns)

    measured = compare(Side(tree), Side(create, provider.force_flush), clock=time.thread_time_ns)
    provider.shutdown()
    assert exporter.spans == len(ready) * 200 * (BLOCKS + 1), "void: opentelemetry-sdk dropped spans"
    show("Translation", COLUMNS, [("opentelemetry-sdk", measured.ours, measured.theirs, measured.ratio, "≤ 1.5")])
    assert measured.ratio <= 1.5
