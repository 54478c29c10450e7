"""What the reference pipeline tells the SDK of its passages."""

from __future__ import annotations

import hashlib
import hmac

from spanforge.reference.models import RetrievedDocument
from spanforge.reference.tracing import hits_of
from spanforge.sdk import SFRAGClient
from spanforge.sinks.memory import MemorySink

TEXT = "Leave is thirty days."
PLAIN = hashlib.sha256(TEXT.encode()).hexdigest()
KEY = "k" * 32


def passage() -> RetrievedDocument:
    return RetrievedDocument(
        chunk_id="c", document_id="d", data_source_id="s", text=TEXT, content_hash=PLAIN, score=0.5, raw_score=1.0,
        source="leave.md",
    )  # fmt: skip


def content_hash(client: SFRAGClient, sink: MemorySink) -> str:
    client.trace_retrieval("s", hits_of([passage()]))
    assert TEXT not in str(sink.events)
    (chunk,) = sink.of_type("llm.rag.retrieved")[0]["chunks"]
    assert (chunk["chunk_id"], chunk["score"], chunk["source"]) == ("c", 0.5, "leave.md")
    return chunk["content_hash"]


def test_a_passage_is_digested_as_the_index_does(client: SFRAGClient, sink: MemorySink) -> None:
    assert content_hash(client, sink) == PLAIN


def test_under_a_key_no_plain_digest_of_a_passage_is_sent(client: SFRAGClient, sink: MemorySink) -> None:
    client.configure(sinks=sink, delivery="sync", hash_key=KEY)
    assert content_hash(client, sink) == hmac.new(KEY.encode(), TEXT.encode(), "sha256").hexdigest()
