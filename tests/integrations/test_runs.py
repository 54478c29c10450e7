"""Runs of frameworks: whatever the threads and the garbage collector do, each stage is recorded and each run ends."""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from inspect import BoundArguments, Signature
from types import ModuleType
from typing import Any

import pytest

from spanforge.integrations import _clients
from spanforge.integrations._client_calls import Call
from spanforge.integrations._hooks import Hook, Undo, let_go, take_hold
from spanforge.integrations._runs import Run
from spanforge.integrations.llama_index import Observer
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents, capture


def test_a_stage_that_ends_inside_a_call_waits_for_no_other_thread() -> None:
    """A stream may be collected anywhere, in the middle of a traced call of this thread too."""
    with capture():
        run = Run("the question")
        stage = run.stage("generation")
        stage.model = "m"
        run.called(None)
        sdk = sf_rag.cell.get()._lock

        def end() -> None:
            with sdk:
                other.start()
                while run._opening.acquire(blocking=False):
                    run._opening.release()
                    time.sleep(0.001)
                stage.cancel()

        other = threading.Thread(target=run.asked, args=("another question",), daemon=True)
        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(20)
        assert not ending.is_alive()
        other.join(20)
        assert not other.is_alive()
        run.end()


def test_a_run_below_which_other_threads_begin_calls_ends() -> None:
    class Nodes(OrderedDict[str, Any]):
        def pop(self, key: str, default: Any = None) -> Any:  # type: ignore[override]
            run.nodes.add(f"below-{key}")
            return super().pop(key, default)

    observer = Observer(object)
    asked = BoundArguments(Signature(), OrderedDict())
    observer.enter("engine.query-1", asked)
    run = observer._nodes["engine.query-1"].run
    observer._nodes = Nodes(observer._nodes)
    with capture() as events:
        run.called("the question")
        observer.leave("engine.query-1")
        assert len(events.of_type("llm.rag.session")) == 1


class _Illegible:
    name = "illegible"
    paths = ("/chat",)

    def read(self, said: Mapping[str, Any], known: dict[str, Any]) -> bool:
        raise ValueError


class _Unlookable:
    @property
    def _iterator(self) -> object:
        raise ValueError


@pytest.mark.parametrize("answer", [object(), _Unlookable()])
def test_an_answer_that_cannot_be_read_ends_its_run(answer: object) -> None:
    with capture() as events:
        call = Call(_Illegible(), {"model": "m", "messages": []})
        _clients._follow(call, answer)
        assert _ended(events) == ["m"]


def _ended(events: CapturedEvents) -> list[str]:
    assert len(events.of_type("llm.rag.session")) == 1
    return [said["model"] for said in events.of_type("llm.rag.generated")]


def test_a_finder_of_an_old_kind_stands_in_nobodys_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "late_module.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [object(), *sys.meta_path])
    loaded: list[str] = []
    undos: list[Undo] = []

    def install(module: ModuleType) -> Undo:
        loaded.append(module.__name__)
        return lambda: None

    take_hold(Hook("late_module", install), undos)
    import late_module

    let_go(undos)
    assert loaded == [late_module.__name__]
    del sys.modules["late_module"]
