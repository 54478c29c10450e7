"""One run as a framework shows it: a root with stages below it, which becomes one session.

A run begins with its outermost root and opens its session at the first retrieval or model call, for a root with neither
is none of ours. It ends when its root has ended and no stage is open; what is open some time later was cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from spanforge.integrations._options import OPTIONS, is_paused
from spanforge.integrations._questions import question_of
from spanforge.integrations._quiet import end_quietly, quiet
from spanforge.integrations._stage import Kind, Stage, current_retrieval
from spanforge.namespaces.stages import RETRIEVED
from spanforge.sdk import sf_rag
from spanforge.sdk._context import FINDERS
from spanforge.sdk._shown import LISTENERS, Shown

__all__ = ["Run", "current_run", "follow_lists", "found_by", "is_wanted", "session_of"]

_GRACE_S: Final = 1.0

_finders: Final[list[Callable[[], Run | None]]] = []


def current_run() -> Run | None:
    """Return the run of a framework that this code is called from; None outside of any."""
    return next((run for find in _finders if (run := find()) is not None), None)


def found_by(find: Callable[[], Run | None]) -> Callable[[], None]:
    """Have a framework say which run the code at work now is part of; return what takes that back.

    What the application records itself in a step of a run, outside of any session of its own, is the run's.
    """

    @quiet
    def session() -> str | None:
        run = None if is_paused() else find()
        if run is None:
            return None
        run.called(None)
        return run.session_id

    _finders.append(find)
    FINDERS.append(session)

    def undo() -> None:
        _finders.remove(find)
        FINDERS.remove(session)

    return undo


def follow_lists(*, wanted: bool) -> None:
    """Have what the application records itself count as what models are shown, and as part of what it is within."""
    if wanted and _listen not in LISTENERS:
        LISTENERS.append(_listen)
    elif not wanted and _listen in LISTENERS:
        LISTENERS.remove(_listen)


@quiet
def _listen(session_id: str, event_type: str, payload: Mapping[str, Any]) -> None:
    within = current_retrieval.get()
    if isinstance(within, Stage) and not within.is_recorded and within.session_id == session_id:
        # It is being recorded itself, or is a retriever whose own code records a stage.
        if event_type == RETRIEVED:
            within.has_within()
        return
    run = current_run()
    if run is not None and run.is_in(session_id):
        run.shown.heard(event_type, payload)


def is_wanted() -> bool:
    """Tell whether a call of a client or a store is to be recorded here."""
    if is_paused():
        return False
    within = (current_run(), sf_rag.current_scope(), sf_rag.current_session_id())
    return OPTIONS.sessions == "auto" or any(one is not None for one in within)


def session_of(scope: Any) -> str | None:
    """Return the session of the application's own that this code is in.

    Args:
        scope: The one that the application has opened for a stage, where it has.
    """
    return (scope.session_id if scope is not None else None) or sf_rag.current_session_id()


class Run:
    """A root and what happens below it.

    Args:
        question: What it was asked, where the root says; held until the session is opened.
        conversation: The conversation it belongs to, as the framework says.
    """

    def __init__(self, question: str | None = None, conversation: object = None) -> None:
        self.session_id = ""
        self.shown = Shown()
        self.root: Any = None
        self.nodes: set[Any] = set()
        self.on_end: Callable[[Run], None] = lambda _: None
        self._question = question
        self._conversation: Any = conversation if conversation is not None else OPTIONS.current_conversation()
        self.scope = sf_rag.current_scope()
        self._explicit = session_of(self.scope)
        # Nothing of the SDK is called under it: a stage may end where its stream is collected, inside any call at all.
        self.lock = threading.RLock()
        self._opening = threading.RLock()
        self._open: set[Stage] = set()
        self._has_ended = self._is_over = self._awaits_stream = False
        self._timer: threading.Timer | None = None
        self._task: asyncio.Task[Any] | None = None

    def asked(self, query: Any, **details: Any) -> None:
        """Open the session if it is not open; record the query if the session has not been asked it."""
        if (other := self.elsewhere()) is not None:
            sf_rag.trace_query(query, session_id=other, once=True, **details)
            return
        with self._opening:
            opened_with = None if self.session_id else self._begin(query, details)
            if query is not None and query != opened_with:
                sf_rag.trace_query(query, session_id=self.session_id, once=True, **details)

    def called(self, asked: Any) -> None:
        """Open the session, if it is not open, for a model that is called; its prompt is no query of its own."""
        if self.elsewhere() is not None:
            return
        with self._opening:
            if not self.session_id:
                self._begin(question_of(asked) if self._question is None else self._question, {})

    def elsewhere(self) -> str | None:
        """Return the session that the application has opened within the run, where the code at work now is in one."""
        current = sf_rag.current_session_id()
        return None if current is None or current in (self._explicit, self.session_id) else current

    def _begin(self, query: Any, details: dict[str, Any]) -> Any:
        """Open the session; return the question that this has recorded, None where the session was open."""
        if self._explicit is not None:
            self.session_id = self._explicit
            # Its block may be left before the answer is read.
            sf_rag.cell.get().blocks.hold(self._explicit)
            return None
        question, self._question = self._question, None
        first = query if question is None else question
        known = details if question is None or question == query else {}
        self.session_id = sf_rag.trace_query(first or "", **{"conversation_id": self._conversation, **known})
        if self.scope is not None:
            # It may be left before the run ends.
            self.scope.adopt(self.session_id)
        return first

    def is_in(self, session_id: str) -> bool:
        """Tell whether a session is the run's."""
        return session_id in (self.session_id, self._explicit)

    def stage(self, kind: Kind, parent: Stage | None = None) -> Stage:
        """Begin a stage."""
        with self.lock:
            stage = Stage(self, kind, parent)
            self._open.add(stage)
            return stage

    def rerank(self, input_count: int) -> Stage:
        """Begin a rerank of so many hits."""
        stage = self.stage("rerank")
        stage.details["input_count"] = input_count
        return stage

    def done(self, stage: Stage) -> None:
        """Say that a stage is over."""
        with self.lock:
            self._open.discard(stage)
            self._awaits_stream = self._awaits_stream and stage.kind != "generation"
        self._end_if_over()

    def end(self, *, awaits_stream: bool = False) -> None:
        """Say that the root has ended. What is open yet has a little time to end as well.

        Args:
            awaits_stream: What the root returned is an answer that is yet to be read, in whatever time that takes.
        """
        with self.lock:
            self._has_ended = True
            self._awaits_stream = awaits_stream
            timer = None
            if self._open and not awaits_stream and self._timer is None:
                timer = self._timer = threading.Timer(_GRACE_S, quiet(self.cancel))
        if timer is not None:
            timer.daemon = True
            timer.start()
        self._end_if_over()

    def watch_task(self) -> None:
        """End with the task that it begins in, if that is cancelled: of this a framework may never say anything."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return
        if task is not None:
            task.add_done_callback(self._task_is_done)
            self._task = task

    def _task_is_done(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            quiet(self.end)()
        elif not self._is_over:
            # It may have handed the run on: a stream begun in a task is read in any other, while their loop runs.
            quiet(self._look_later)(task.get_loop())

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        timer = threading.Timer(_GRACE_S, quiet(self._end_if_stopped), (loop,))
        timer.daemon = True
        timer.start()

    def _end_if_stopped(self, loop: asyncio.AbstractEventLoop) -> None:
        if not loop.is_running():
            self.end()

    def end_if_alone(self, stage: Stage) -> None:
        """End with a stage that was cancelled, where the stage is all there is of the run."""
        if len(self.nodes) <= 1 and stage.is_done:
            self.end()

    def cancel(self) -> None:
        """End the run: what is open of it will never be heard of again."""
        with self.lock:
            self._has_ended, self._awaits_stream = True, False
            left = list(self._open)
        for stage in left:
            stage.cancel()
        self._end_if_over()

    def _end_if_over(self) -> None:
        with self.lock:
            if self._is_over or not self._has_ended or self._open or self._awaits_stream:
                return
            self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            # A task may live as long as the process and begin run after run.
            self._task.remove_done_callback(self._task_is_done)
        self.on_end(self)
        # A context may hold the latest stage, and that its run, long after both are over.
        scope, self.scope = self.scope, None
        if self.session_id and self._explicit is not None:
            runtime = sf_rag.cell.get()
            if (left := runtime.blocks.release(self._explicit)) is not None:
                runtime.end(self._explicit, left)
        elif self.session_id:
            if scope is None:
                end_quietly(self.session_id)
            else:
                scope.adopt(self.session_id, partial(end_quietly, self.session_id))
