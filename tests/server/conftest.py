"""An API for each test, over a folder of its own."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from support.api import Api, running

from spanforge.testing import spanforge_events  # the plugin brings it where the package is installed

__all__ = ["spanforge_events"]


@pytest.fixture(autouse=True)
def _events_to_memory(spanforge_events: object) -> None:
    """Nothing is traced to anywhere but memory."""


@pytest.fixture
def api(tmp_path: Path) -> Generator[Api]:
    with running(tmp_path / "home") as opened:
        yield opened
