"""A viewer over any store, as a client of its pages; its index has read everything before the first question."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from support.viewer import Look

from spanforge.server.viewer import create_viewer


@pytest.fixture
def look() -> Generator[Look]:
    """Return a maker of clients; every viewer is closed at the end."""
    apps: list[Any] = []

    def make(store: Path, *, read: bool = True, **options: Any) -> TestClient:
        app = create_viewer(store, **options)
        apps.append(app)
        if read:
            app.state.shell.index.catch_up()
        return TestClient(app, base_url="http://127.0.0.1")

    yield make
    for app in apps:
        app.state.close()
