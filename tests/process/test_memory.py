"""Whatever is kept by session, by client or by id is bounded: memory does not grow with the sessions there were."""

from __future__ import annotations

import json

import pytest
from support.processes import succeed

SCRIPT = """\
import gc, json, sys
from spanforge.sdk import configure, sf_feedback, sf_rag
from spanforge.sinks.base import BaseSink
from support.workload import one_session

class Nowhere(BaseSink):
    def __init__(self, whole): self.name, self.whole_sessions = f"nowhere-{whole}", whole
    def write(self, events): pass

configure(sinks=[Nowhere(True), Nowhere(False)], retained_sessions=50, max_sessions=50, sample_rate=0.5)

def work(rounds):
    for n in range(rounds):
        own = one_session()
        sf_feedback.submit(own, rating="thumbs_up")
        sf_rag.trace_query("q")  # never ended
        sf_rag.trace_generation(f"orphan {own}", "m")
        sf_rag.trace_evaluation(own, groundedness=0.5)
    sf_rag.flush(30)
    gc.collect()
    return sys.getallocatedblocks()

print(json.dumps([work(2_500), work(2_500)]))
"""


@pytest.mark.slow
def test_memory_is_flat_over_the_sessions(tmp_path):
    first, second = json.loads(succeed(SCRIPT, tmp_path, timeout=110))
    assert second - first < 2_500, "not one object of each round is kept"
