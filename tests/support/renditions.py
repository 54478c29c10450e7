"""Every standard's rendition of the golden sessions, as the golden files hold it.

Run it to write them anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.golden import VARIANTS

from spanforge.sinks._otlp_transport import Answer
from spanforge.sinks.otlp import OtlpSink
from spanforge.standards import aitf, genai, ocsf, ocsf_aitf, openinference, own
from spanforge.standards.transparency import TransparencyError, transparency
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import Tables, spans

FOLDER = Path(__file__).parents[1] / "standards" / "golden"


def tree(session: Session) -> Any:
    return [
        {
            "name": span.name,
            "kind": span.kind,
            "trace_id": span.trace_id,
            "span_id": span.span_id,
            "parent_span_id": span.parent_span_id,
            "start_ns": span.start_ns,
            "end_ns": span.end_ns,
            "status": span.status,
            "error": span.error,
        }
        for span in spans(session)
    ]


def attributes_of(tables: Tables, documents: Any = ()) -> Callable[[Session], Any]:
    def rendition(session: Session) -> Any:
        return [
            {
                "name": span.name,
                "attributes": span.attributes,
                **({"events": [[e.name, e.attributes] for e in span.events]} if span.events else {}),
            }
            for span in spans(session, tables, documents)
        ]

    return rendition


def evaluation_results(session: Session) -> Any:
    return [[r.trace_id, r.span_id, r.time_ns, r.attributes] for r in genai.evaluation_results(session)]


class _Kept:
    """Keeps the requests that a sink sends."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []

    def send(self, _signal: str, body: bytes) -> Answer:
        self.requests.append(ExportTraceServiceRequest.FromString(body))
        return Answer(b"")

    def close(self) -> None:
        """Nothing is held."""

    forget = close


def sent(session: Session) -> Any:
    """Return the spans that a sink sends, with how many attributes each, and what is kept back."""
    kept = _Kept()
    receipt = OtlpSink("http://localhost", signals=(), transport=kept).write([one.event for one in session.stages])
    spans_of = [span for r in kept.requests for one in r.resource_spans for s in one.scope_spans for span in s.spans]
    return {
        "kept_back": dict(receipt.dropped) if receipt else {},
        "spans": {span.name: len(span.attributes) for span in spans_of},
    }


def record(session: Session) -> Any:
    try:
        return transparency(session)
    except TransparencyError as error:
        return str(error)


RENDITIONS: dict[str, Callable[[Session], Any]] = {
    "tree": tree,
    "aitf": attributes_of(aitf.ATTRIBUTES, documents=aitf.DOCUMENT),
    "aitf-later": attributes_of(aitf.ATTRIBUTES_AND_LATER, documents=aitf.DOCUMENT_AND_LATER),
    "genai": attributes_of(genai.ATTRIBUTES_WITH_DOCUMENTS),
    "genai-evaluations": evaluation_results,
    "sent": sent,
    "openinference": attributes_of(openinference.ATTRIBUTES),
    "own": attributes_of(own.ATTRIBUTES),
    "ocsf": ocsf.security_events,
    "ocsf-aitf": ocsf_aitf.retrieval_events,
    "transparency": record,
}


def rendered(name: str) -> str:
    content = {variant: RENDITIONS[name](Session(make())) for variant, make in VARIANTS.items()}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    for each in RENDITIONS:
        (FOLDER / f"{each}.json").write_text(rendered(each))
