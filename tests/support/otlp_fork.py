"""Traces a session, forks, and traces one in the child: run with a receiver's URL and protocol as arguments."""

from __future__ import annotations

import os
import sys

from spanforge.sdk import sf_rag
from spanforge.sinks.otlp import OtlpSink


def one_session(name: str) -> None:
    session_id = sf_rag.trace_query("q", session_id=name)
    sf_rag.trace_generation(session_id, "m")
    sf_rag.end_session(session_id)


if __name__ == "__main__":
    url, protocol = sys.argv[1:]
    sf_rag.configure(sinks=[OtlpSink(url, protocol=protocol, signals=(), timeout_s=5)], exit_timeout_s=10)
    one_session("parent")
    sf_rag.flush(10)
    pid = os.fork()
    one_session("parent-after" if pid else "child")
    left = sf_rag.flush(10)
    if not pid:
        os._exit(left)
    sys.exit(left or os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
