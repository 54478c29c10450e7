"""A command as a sink: how it is given. What it is given is tried where rules are watched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spanforge.exceptions import ConfigError
from spanforge.sinks.command import CommandSink


@pytest.mark.parametrize("command", ["logger", [], [""], ["logger", "a\0b"]])
def test_a_command_is_a_program_and_its_arguments(command: Sequence[str]) -> None:
    with pytest.raises(ConfigError, match=r"^command: "):
        CommandSink(command)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 61.0, float("nan")])
def test_a_command_has_a_time_that_is_some(seconds: float) -> None:
    with pytest.raises(ConfigError, match=r"^timeout_s: "):
        CommandSink(["logger"], timeout_s=seconds)
