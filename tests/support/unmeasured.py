"""Coverage, paused in tests of what stands above the SDK: measuring doubles their time, and the SDK is what counts."""

from __future__ import annotations

import os
from typing import Final

import coverage
import pytest

_VARIABLE: Final = "COVERAGE_PROCESS_START"
_ABOVE: Final = {"architecture", "docs", "reference", "server", "server_siege", "typing", "viewer"}


class Unmeasured:
    """A plugin that stops and starts the coverage of this process, and of those it starts."""

    def __init__(self) -> None:
        self._config = os.environ[_VARIABLE]
        self._coverage = coverage.Coverage.current()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Measure, or do not, before a test and its fixtures."""
        wanted = _ABOVE.isdisjoint(nodeid.split("/")[:-1])
        if self._coverage is None or wanted == (_VARIABLE in os.environ):
            return
        if wanted:
            os.environ[_VARIABLE] = self._config
            self._coverage.start()
        else:
            del os.environ[_VARIABLE]
            self._coverage.stop()
