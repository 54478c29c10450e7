"""Children that read documents: kept warm, given a task at a time, killed when it costs too much or is called off."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import spawn
from typing import Any, Final

from spanforge import _clock
from spanforge.reference.failures import ParseError, failure_codes

TOO_COSTLY: Final = "The document costs far more to read than its size deserves; it is refused."
_MOST_IDLE: Final = 2
_MOST_TASKS: Final = 500
"""Tasks after which a child is replaced: libraries in C leak a little."""
_POLL_SECONDS: Final = 0.05
_SECONDS: Final = 10.0
_SECONDS_A_MIB: Final = 20.0
"""What any document may take, and each of its mebibytes on top."""
_START_SECONDS: Final = 30.0
_PATIENCE: Final = 4
"""How many times its processor time a task may take on the clock, beside its start: the system may be busy."""
_OF_ITS_SIZE: Final = 4
"""How many times its own size a document may take in memory, beyond the limit."""
_PROGRAM: Final = "import sys; sys.path[:] = sys.argv[1:]; from spanforge.reference.workers.child import main; main()"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document may cost.

    Attributes:
        memory: Bytes that reading it may take, and the parts of an archive may unfold to.
        seconds: Time of the processor that reading and cutting it may take; less where it is small.
        chunks: Passages that may be cut from it.
    """

    memory: int = 1 << 30
    seconds: float = 120.0
    chunks: int = 50_000

    @classmethod
    def within(cls, size: int) -> Limits:
        """Return the usual limits for documents that may unfold to ``size`` bytes."""
        return cls(memory=max(size, 256 << 20))


DEFAULT_LIMITS: Final = Limits()


class CalledOff(Exception):  # noqa: N818  no error: whoever asked for it called it off
    """A task was called off while it was at work."""


class _Child:
    """A process, and how many tasks it has done."""

    def __init__(self) -> None:
        # Not by `multiprocessing`: its children run the application's main module once more.
        command = [spawn.get_executable() or sys.executable, "-c", _PROGRAM, *sys.path]
        self._process = subprocess.Popen(  # noqa: S603  our own interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.tasks = 0

    def exchange(self, header: bytes, content: bytes) -> dict[str, Any] | None:
        """Give it a task and return its answer, None where it died."""
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        if pipe_in is None or pipe_out is None:
            return None
        self.tasks += 1
        try:
            pipe_in.write(header)
            pipe_in.write(content)
            pipe_in.flush()
            size = int(pipe_out.readline() or b"0")
            body = pipe_out.read(size)
            return json.loads(body) if size and len(body) == size else None
        except (OSError, ValueError):
            return None

    def is_alive(self) -> bool:
        """Tell whether it can be given a task."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it now, whatever it is at."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue


class Workers:
    """A few warm children, shared by all that read documents in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Child] = []

    def run(
        self,
        task: str,
        content: bytes,
        arguments: dict[str, Any],
        limits: Limits = DEFAULT_LIMITS,
        stop: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Do a task in a child and return its result.

        Args:
            task: ``module:function`` of what takes the content and the arguments, and returns what JSON can hold.
            content: Bytes of the document.
            arguments: Keywords of the task.
            limits: What it may cost.
            stop: Asked again and again while it runs; true ends it.

        Raises:
            RagFailure: As the task raised it.
            ParseError: The task cost more than the limits allow, or the document made the child crash.
            CalledOff: It was stopped.
        """
        seconds = min(limits.seconds, _SECONDS + _SECONDS_A_MIB * len(content) / (1 << 20))
        facts = {"task": task, "arguments": arguments, "size": len(content), "seconds": seconds,
                 "memory": limits.memory + _OF_ITS_SIZE * len(content)}  # fmt: skip
        child = self._take()
        answer: dict[str, Any] | None = None
        try:
            answer = _attended(
                child, json.dumps(facts).encode() + b"\n", content, _START_SECONDS + _PATIENCE * seconds, stop
            )
        finally:
            self._give_back(child, alive=answer is not None)
        if answer is None:
            raise ParseError(TOO_COSTLY)
        if "code" in answer:
            failure = failure_codes().get(answer["code"], ParseError)
            raise failure(answer["message"]) if answer["message"] else failure()
        return answer["result"]

    def close(self) -> None:
        """End the children that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def forget(self) -> None:
        """Leave the children to the parent, in a process that was forked from it."""
        self._lock = threading.Lock()
        self._idle = []

    def _take(self) -> _Child:
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                return _Child()
            if child.is_alive():
                return child
            child.kill()

    def _give_back(self, child: _Child, *, alive: bool) -> None:
        with self._lock:
            keep = alive and len(self._idle) < _MOST_IDLE and child.tasks < _MOST_TASKS
            if keep:
                self._idle.append(child)
        if not keep:
            child.kill()


def _attended(
    child: _Child, header: bytes, content: bytes, seconds: float, stop: Callable[[], bool]
) -> dict[str, Any] | None:
    """Wait for an answer; None where the child died or took too long.

    Raises:
        CalledOff: It was stopped.
    """
    answers: list[dict[str, Any] | None] = []
    done = threading.Event()

    def exchange() -> None:
        answers.append(child.exchange(header, content))
        done.set()

    thread = threading.Thread(target=exchange, name="spanforge-reading", daemon=True)
    thread.start()
    deadline = _clock.monotonic() + seconds
    stopped = False
    while not (done.wait(_POLL_SECONDS) or (stopped := stop()) or _clock.monotonic() > deadline):
        pass
    if not done.is_set():
        child.kill()
    thread.join()
    if stopped and not (answers and answers[0]):
        raise CalledOff
    return answers[0]


WORKERS: Final = Workers()
"""The children of this process."""
atexit.register(WORKERS.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKERS.forget)
