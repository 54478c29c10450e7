"""Every standard's rendition of the golden sessions, as the golden files hold it.

Run it to write them anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.golden import VARIANTS

from spanforge.conventions import aitf, genai, ocsf, openinference, own
from spanforge.conventions.session import Session
from spanforge.conventions.spans import Contribution, spans
from spanforge.conventions.transparency import TransparencyError, transparency

FOLDER = Path(__file__).parents[1] / "conventions" / "golden"


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
        for span in spans(session, ())
    ]


def attributes_of(*contributions: Contribution, document: Any = None) -> Callable[[Session], Any]:
    def rendition(session: Session) -> Any:
        return [
            {
                "name": span.name,
                "attributes": span.attributes,
                **({"events": [[e.name, e.attributes] for e in span.events]} if span.events else {}),
            }
            for span in spans(session, contributions, document)
        ]

    return rendition


def evaluation_results(session: Session) -> Any:
    return [[r.trace_id, r.span_id, r.time_ns, r.attributes] for r in genai.evaluation_results(session)]


def record(session: Session) -> Any:
    try:
        return transparency(session)
    except TransparencyError as error:
        return str(error)


RENDITIONS: dict[str, Callable[[Session], Any]] = {
    "tree": tree,
    "aitf": attributes_of(aitf.attributes, document=aitf.document),
    "aitf-later": attributes_of(aitf.attributes_and_later, document=aitf.document_and_later),
    "genai": attributes_of(genai.attributes_with_documents),
    "genai-evaluations": evaluation_results,
    "openinference": attributes_of(openinference.attributes),
    "own": attributes_of(own.attributes),
    "ocsf": ocsf.datastore_events,
    "ocsf-aitf": ocsf.retrieval_events,
    "transparency": record,
}


def rendered(name: str) -> str:
    content = {variant: RENDITIONS[name](Session(make())) for variant, make in VARIANTS.items()}
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    for each in RENDITIONS:
        (FOLDER / f"{each}.json").write_text(rendered(each))
