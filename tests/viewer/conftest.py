"""A viewer over any store, as a client of its pages; its index has read everything before the first question."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from support.viewer import Look

from spanforge.viewer import Guest, create_viewer
from spanforge.viewer.visits import SignIn


@pytest.fixture
def look() -> Generator[Look]:
    """Return a maker of clients; every viewer is closed at the end."""
    apps: list[Any] = []

    def make(store: Path, *, read: bool = True, **options: Any) -> TestClient:
        app = create_viewer(store, **options)
        apps.append(app)
        if read:
            app.state.shell.store.catch_up()
        return TestClient(app, base_url="http://127.0.0.1")

    yield make
    for app in apps:
        app.state.close()


@pytest.fixture
def guest_of() -> Callable[[str], SignIn]:
    """Return what makes a way to sign in, with any credential, to an organisation."""

    def make(org: str) -> SignIn:
        async def sign_in(_: str) -> Guest | None:
            return Guest(org)

        return sign_in

    return make
