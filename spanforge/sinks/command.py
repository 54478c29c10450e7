"""The command sink: a program is run for each escalation."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.namespaces.stages import ESCALATED
from spanforge.sinks._files import code_of
from spanforge.sinks.base import BaseSink

__all__ = ["CommandSink"]

_LONGEST_S: Final = 60.0


class CommandSink(BaseSink):
    """Runs a program for each `llm.rag.escalated`, with the event as a line on its standard input.

    It is run without a shell, its output goes nowhere, and one that fails is run again, as what any sink does not take.
    A signal that a terminal sends does not reach it.

    Args:
        command: The program and its arguments.
        timeout_s: Seconds after which it is killed, with what it has started, up to 60.

    Raises:
        ConfigError: There is no program, or the time is none.
    """

    def __init__(self, command: Sequence[str], *, timeout_s: float = 10.0) -> None:
        if isinstance(command, str) or not command or not command[0] or "\0" in "".join(command):
            raise ConfigError("command: give the program and its arguments, as a list")
        if not 0 < timeout_s <= _LONGEST_S:
            raise ConfigError("timeout_s: give seconds, above 0 and up to 60")
        self._command = list(command)
        self._timeout_s = timeout_s
        self.name = "command"

    def write(self, events: Sequence[Event], /) -> None:
        """Run the program for the escalations among some events.

        Raises:
            SinkWriteError: It failed for one; those before it are done.
        """
        for place, event in enumerate(events):
            if event.event_type == ESCALATED and (problem := self._problem(event)):
                raise SinkWriteError(problem, delivered=place)

    def _problem(self, event: Event) -> str:
        try:
            process = subprocess.Popen(  # noqa: S603  whoever configures the process says what it runs
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            return code_of(error)
        with process:
            try:
                process.communicate(event.encode() + b"\n", self._timeout_s)
            except subprocess.TimeoutExpired:
                return "timeout"
            finally:
                if process.poll() is None:
                    _kill(process)
        return f"exit_{process.returncode}" if process.returncode else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program, and what it has started and left in its group."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
