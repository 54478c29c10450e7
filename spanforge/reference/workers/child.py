"""The process in which documents are read: it may be killed, and takes nobody else with it.

It is given a task at a time through its standard input, works within limits that the system holds it to, and answers
in JSON, so that whatever a document makes of it, its parent only ever reads text. It ends when its parent does, and
when it has been idle for a while.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from spanforge.reference.failures import ParseError, RagFailure
from spanforge.reference.workers.pool import TOO_COSTLY

_IDLE_SECONDS: Final = 60
_WATCH_SECONDS: Final = 0.05


def main() -> None:
    """Do tasks until the standard input ends."""
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _step_back()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        _end_in(_IDLE_SECONDS)
        header = sys.stdin.buffer.readline()
        _end_in(0)
        if not header:
            return
        request = json.loads(header)
        content = sys.stdin.buffer.read(request["size"])
        _hold_to(request["memory"], request["seconds"])
        _send(answers, _answer(request, content))


def _answer(request: dict[str, Any], content: bytes) -> dict[str, Any]:
    try:
        module, _, name = str(request["task"]).partition(":")
        task: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return {"result": task(content, **request["arguments"])}
    except RagFailure as failure:
        return {"code": failure.code, "message": str(failure.args[0]) if failure.args else ""}
    except (MemoryError, RecursionError):
        return {"code": ParseError.code, "message": TOO_COSTLY}


def _send(answers: BinaryIO, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    answers.write(b"%d\n" % len(body))
    answers.write(body)
    answers.flush()


if sys.platform == "win32":

    def _step_back() -> None:
        """Nothing: it works beside whoever asks."""

    def _end_in(seconds: int) -> None:
        """Nothing: it ends when its parent does."""

    def _hold_to(memory: int, seconds: float) -> None:
        """Nothing: the parent kills by the clock."""

else:
    import resource

    _NICENESS: Final = 10

    def _step_back() -> None:
        """Let whoever asks a question now be served before what is read to be asked later."""
        os.nice(_NICENESS)

    def _end_in(seconds: int) -> None:
        """End when so many seconds have gone by, 0 for never."""
        signal.alarm(seconds)

    def _hold_to(memory: int, seconds: float) -> None:
        """Allow so much more memory and processor time than were used so far."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + seconds) + 1)
        if sys.platform == "linux":
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
            _lower(resource.RLIMIT_DATA, pages * resource.getpagesize() + memory)
        else:
            # Held to no memory by the system: a thread watches what it takes.
            threading.Thread(target=_watch, args=(used.ru_maxrss + memory,), daemon=True).start()

    def _lower(kind: int, limit: int) -> None:
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))

    def _watch(most: int) -> None:
        while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss <= most:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)
