"""What ended in an error, and what was handled."""

from __future__ import annotations

import pytest
from support.golden import Recorder, generated, query, reranked, retrieved

from spanforge.standards import genai
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import Span, spans

FAILED = {"status": "error", "error_message": "RateLimitError"}


def tree(*payloads: object, **summary: object) -> tuple[Span, ...]:
    recorder = Recorder("s")
    for number, payload in enumerate(payloads, 1):
        recorder.add(number * 1000, payload)
    return spans(Session(recorder.end(len(payloads) * 1000 + 1, **summary)), genai.ATTRIBUTES)


def test_a_fallback_that_succeeded_leaves_the_error_with_the_child():
    root, _, _, failed, answered = tree(query("s"), generated("s", **FAILED), generated("s"))
    assert failed.status == "error"
    assert failed.error == failed.attributes["error.type"] == "RateLimitError"
    assert (root.status, root.error, answered.status) == ("unset", "", "unset")
    assert "error.type" not in root.attributes


@pytest.mark.parametrize(
    ("payloads", "error"),
    [
        ([generated("s", **FAILED)], "RateLimitError"),
        ([generated("s"), retrieved("s", **FAILED)], "RateLimitError"),
        ([retrieved("s", status="timeout", error_message=None)], "timeout"),
        ([generated("s", status="error", error_message="str:sha256:" + "ab" * 32)], "_OTHER"),
    ],
)
def test_a_root_in_error_carries_the_error_of_its_last_stage(payloads: list[object], error: str):
    root = tree(*payloads)[0]
    assert (root.status, root.attributes["error.type"]) == ("error", error)
    assert root.error == ("" if error == "_OTHER" else error)


@pytest.mark.parametrize(
    "payloads",
    [
        [retrieved("s", **FAILED), generated("s")],
        [reranked("s", **FAILED), generated("s")],
        [retrieved("s", status="partial")],
        [generated("s", status="cancelled")],
        [generated("s")],
        [],
    ],
)
def test_no_status_is_set_where_nothing_failed_or_all_was_handled(payloads: list[object]):
    assert tree(*payloads)[0].status == "unset"


def test_an_exception_that_left_the_scope_is_the_roots():
    root = tree(generated("s"), error_type="KeyError")[0]
    assert (root.status, root.attributes["error.type"]) == ("error", "KeyError")


def test_a_summary_alone_is_believed_and_what_came_before_it_is_remembered():
    recorder = Recorder("s")
    recorder.add(1, generated("s", **FAILED))
    recorder.add(2, generated("s"))
    known = Session(recorder.events).known
    summary = recorder.end(3)[-1:]
    assert spans(Session(summary))[0].status == "error"
    assert spans(Session(summary, known))[0].status == "unset"
