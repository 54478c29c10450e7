"""What was written once can be read for ever: one golden file for each event, and the older envelopes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spanforge.namespaces import PAYLOADS
from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import (
    RAGSessionPayload,
    RAGSpanPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
)
from spanforge.reader import read_events

GOLDEN = Path(__file__).parents[1] / "golden"


def test_there_is_one_for_each_event() -> None:
    assert {file.stem for file in (GOLDEN / "2.0").iterdir()} == set(PAYLOADS)


@pytest.mark.parametrize("event_type", PAYLOADS)
def test_an_event_of_2_0(event_type: str) -> None:
    line = (GOLDEN / "2.0" / f"{event_type}.json").read_bytes().rstrip()
    stored = Event.decode(line)
    assert stored.event_type == event_type
    assert stored.to_dict() == json.loads(line)
    assert stored.encode() == line
    payload = PAYLOADS[event_type].from_dict(stored.payload)
    assert json.loads(json.dumps(payload.to_dict())) == stored.payload


def test_events_of_1_0() -> None:
    reader = read_events(GOLDEN / "1.0.jsonl")
    query, retrieved = list(reader)
    assert not reader.damaged
    assert query.to_dict() == {
        "schema_version": "2.0",
        "event_id": "01HZX0M4T8QW3N5V7B9C1D2E3F",
        "event_type": "llm.rag.query",
        "timestamp": "2024-06-10T08:15:30.250000Z",
        "source": "legacy-app@0.9.1",
        "session_id": "run-7",
        "trace_id": "5b8aa5a2d2c872e8321cf37308d69df2",
        "span_id": "051581bf3cb55c13",
        "org_id": "acme",
        "payload": {
            "session_id": "run-7",
            "query_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "top_k": 5,
            "retriever_name": "faiss",
            "latency_ms": 3.5,
        },
    }
    assert RetrievalQueryPayload.from_dict(query.payload).embedding_model == ""
    assert (retrieved.timestamp, retrieved.tags) == ("2024-06-10T08:15:30.000000Z", {"env": "prod"})
    assert RetrievalResultPayload.from_dict(retrieved.payload).chunks[0].chunk_id == "doc-1"


def test_events_of_the_1_0_4_package() -> None:
    reader = read_events(GOLDEN / "1.0.4.jsonl")
    query, session, generated = list(reader)
    assert not reader.damaged
    assert {item.session_id for item in (query, session, generated)} == {"01JQ8Z3K5M0000000000000000"}
    assert RetrievalQueryPayload.from_dict(query.payload).retriever_name == "pinecone"
    assert RAGSessionPayload.from_dict(session.payload).avg_grounding_score == 0.91
    assert RAGSpanPayload.from_dict(generated.payload).grounding_score is None
    assert (session.org_id, session.tags, generated.actor_id) == ("acme", {"env": "prod"}, "")


def test_events_of_a_version_to_come() -> None:
    line = (GOLDEN / "2.9.jsonl").read_bytes().rstrip()
    stored = Event.decode(line)
    assert stored.schema_version == "2.9"
    assert stored.extra == {"region": "eu-west-1", "cost": {"usd": 0.0125}}
    assert stored.to_dict() == json.loads(line)


@pytest.mark.parametrize("timestamp", ["yesterday", 5])
def test_a_1_0_event_whose_time_cannot_be_read_is_damaged(timestamp: object, tmp_path: Path) -> None:
    fields = json.loads((GOLDEN / "1.0.jsonl").read_bytes().splitlines()[0])
    (tmp_path / "a.jsonl").write_text(json.dumps({**fields, "timestamp": timestamp}) + "\n")
    reader = read_events(tmp_path / "a.jsonl")
    assert list(reader) == []
    assert set(reader.damaged) <= {"timestamp: missing or empty", "timestamp: not a string"}
    assert reader.damaged.total() == 1
