"""A hung sink does not slow the calls down: 64 threads that trace at a pace, and the time each call takes."""

from __future__ import annotations

import random
import statistics
import threading
import time

import pytest
from support.faulty_sinks import EncodingSink, HungSink
from support.measuring import show
from support.workload import CHUNKS, IDS, QUERY

from spanforge.delivery.queue import EventLog
from spanforge.namespaces.event import Draft
from spanforge.sdk import configure, sf_rag

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

THREADS = 64
ROUNDS = 12
"""Sessions each thread traces in a block: 64 x 12 x 4 calls."""
BLOCKS = 11
QUEUE = 1_500
"""Room that a hung sink has used up long before a block ends."""


def traced_at_a_pace(took: list[float], seed: int) -> None:
    """Trace sessions with pauses between the calls, and note how long each call took."""
    rng = random.Random(seed)  # noqa: S311  paces, not secrets

    def timed(call, *arguments, **details):
        time.sleep(rng.uniform(0.005, 0.025))
        started = time.perf_counter()
        result = call(*arguments, **details)
        took.append(time.perf_counter() - started)
        return result

    for _ in range(ROUNDS):
        own = timed(sf_rag.trace_query, QUERY, retriever_name="chroma")
        timed(sf_rag.trace_retrieval, own, CHUNKS, latency_ms=45.2)
        timed(sf_rag.trace_generation, own, "gpt-4o", chunk_ids_used=IDS, grounding_score=0.91)
        timed(sf_rag.end_session, own)


def p99(sink) -> float:
    """The 99th percentile of a call's time, in seconds, with this sink."""
    configure(sinks=sink, queue_events=QUEUE)
    took: list[list[float]] = [[] for _ in range(THREADS)]
    threads = [threading.Thread(target=traced_at_a_pace, args=(times, n)) for n, times in enumerate(took)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.quantiles((second for times in took for second in times), n=100)[98]


def check(blocks: int) -> None:
    """The check itself: p99 with a hung sink is at most twice that with a healthy one."""
    healthy, hung = [], []
    for _ in range(blocks):
        healthy.append(p99(EncodingSink()))
        sink = HungSink()
        hung.append(p99(sink))
        ledger = sf_rag.get_status().sinks["hung"]
        assert ledger.pending <= QUEUE + 512, "bounded: the queue, and the batch the sink holds"
        assert ledger.balanced
        sink.release.set()
    ratio = statistics.median(bad / good for bad, good in zip(hung, healthy, strict=True))
    show(
        "p99 of a call, 64 paced threads",
        ("hung sink, µs", "healthy sink, µs", "ratio", "promise"),
        [(statistics.median(hung) * 1e6, statistics.median(healthy) * 1e6, ratio, "≤ 2")],
    )
    assert ratio <= 2, "callers wait for the sink"


@pytest.fixture(autouse=True)
def _put_back():
    yield
    configure(sinks="memory")


def test_a_hung_sink_slows_no_call():
    check(BLOCKS)


def test_the_check_finds_a_queue_that_blocks(monkeypatch):
    """The same check with a queue that makes the caller wait for room, as `queue.Queue.put` does."""
    append = EventLog._append

    def blocking(log: EventLog, draft: Draft) -> None:
        until = time.monotonic() + 0.05
        while len(log._items) >= QUEUE and (left := until - time.monotonic()) > 0:
            log.changed.wait(left)
        append(log, draft)

    monkeypatch.setattr(EventLog, "_append", blocking)
    with pytest.raises(AssertionError, match="callers wait for the sink"):
        check(1)
