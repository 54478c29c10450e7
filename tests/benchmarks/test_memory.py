"""Memory is bounded: by a session's size while sessions are open, by the queue's while a sink is dead."""

from __future__ import annotations

import json
import os

import pytest
from support.measuring import show
from support.processes import succeed

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from /proc"),  # noqa: PTH110  at import
]

PREAMBLE = """\
import gc, json, os
from spanforge.sdk import configure, sf_rag
from support.faulty_sinks import EncodingSink, HungSink
from support.workload import CHUNKS, IDS, QUERY, one_session

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
"""

OPEN = """\
configure(sinks=EncodingSink(), max_sessions=1_000_000, queue_events=1_000, max_open_chunk_ids=1_000_000)
def left_open(n):
    own = sf_rag.trace_query(QUERY, top_k=5, retriever_name="chroma", embedding_model="e5", namespace="docs")
    chunks = [{**chunk, "chunk_id": f"doc-{n}-p{place}"} for place, chunk in enumerate(CHUNKS)]
    ids = [chunk["chunk_id"] for chunk in chunks]
    sf_rag.trace_retrieval(own, chunks, latency_ms=45.2)
    sf_rag.trace_generation(
        own, "gpt-4o", chunk_ids_used=ids, prompt_tokens=512, output_tokens=128, grounding_score=0.91, latency_ms=1230.0
    )
for n in range(1_000): left_open(n)
sf_rag.flush(60)
before = resident()
for n in range(20_000):
    left_open(n)
    if n % 200 == 0: sf_rag.flush(60)
sf_rag.flush(60)
after = resident()
assert sf_rag.get_status().active_sessions == 21_000
print(json.dumps((after - before) / 20_000))
os._exit(0)
"""

DEAD = """\
configure(sinks=HungSink())
one_session()
before = resident()
for _ in range(250_000): one_session()
ledger = sf_rag.get_status().sinks["hung"]
assert ledger.balanced and ledger.accepted == 1_000_004 and ledger.delivered == 0
print(json.dumps([resident() - before, ledger.dropped["queue_full"], ledger.pending]))
os._exit(0)
"""


def without_warnings(script: str) -> str:
    """`resident` leaves its file to the collector, which is what a measurement should not time."""
    return "import warnings; warnings.simplefilter('ignore', ResourceWarning)\n" + script


def test_an_open_session(tmp_path):
    each = json.loads(succeed(without_warnings(PREAMBLE + OPEN), tmp_path, timeout=600))
    show("Memory", ("an open session, bytes", "promise"), [(round(each), "≤ 3,000")])
    assert each <= 3_000


def test_a_million_events_into_a_dead_sink(tmp_path):
    added, dropped, pending = json.loads(succeed(without_warnings(PREAMBLE + DEAD), tmp_path, timeout=800))
    show(
        "Memory, 1,000,004 events into a dead sink",
        ("added, MiB", "dropped and counted", "pending", "promise"),
        [(added / 2**20, dropped, pending, "≤ 64 MiB")],
    )
    assert dropped + pending == 1_000_004
    assert added <= 64 * 2**20
