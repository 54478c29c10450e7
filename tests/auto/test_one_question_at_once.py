"""Two threads that ask the same new question in one session: one query, in whatever order their steps come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from support.interleaving import Schedule

from spanforge.delivery import dispatch, queue, worker
from spanforge.integrations import _runs
from spanforge.integrations.retrieving import Retrieval
from spanforge.sdk import SFClientConfig, SFRAGClient, _cell, _runtime
from spanforge.sinks.memory import MemorySink

HITS = [{"id": "a", "score": 0.9}]


def by_a_run(client: SFRAGClient, session_id: str) -> None:
    with client.attach(session_id):
        run = _runs.Run("the question")
        stage = run.stage("retrieval")
        run.asked("the question")
        stage.finish(HITS)
        run.end()


def by_a_decorator(client: SFRAGClient, session_id: str) -> None:
    with client.attach(session_id):
        Retrieval("the question").call(lambda: HITS, (), {})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (by_a_run, by_a_decorator),
        pytest.param(by_a_run, by_a_run, marks=pytest.mark.slow),
        pytest.param(by_a_decorator, by_a_decorator, marks=pytest.mark.slow),
    ],
)
def test_a_question_that_two_ask_at_once_is_one_query(
    first: Callable[..., None], second: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = steps = 0
    while at <= steps:
        with monkeypatch.context() as patch:
            schedule = Schedule({at: 1})
            schedule.rule(patch, _runtime, _cell, dispatch, queue, worker)
            client, sink = SFRAGClient(SFClientConfig()), MemorySink()
            for module in ("_quiet", "_runs", "_stage", "retrieving"):
                patch.setattr(f"spanforge.integrations.{module}.sf_rag", client)
            client.configure(sinks=[sink], delivery="sync")
            session_id = client.trace_query("another question")
            programs = [lambda ask=ask: ask(client, session_id) for ask in (first, second)]  # noqa: B023  run at once
            schedule.run(*programs)
            kinds = Counter(event.event_type.removeprefix("llm.rag.") for event in sink.events)
        assert kinds == {"query": 2, "retrieved": 2}
        at, steps = at + 1, schedule.steps
    assert steps > 1
