"""Nothing that these tests cause in their own process is traced to anywhere but memory."""

from __future__ import annotations

import pytest

from spanforge.testing import capture


@pytest.fixture(autouse=True)
def _events_to_memory():
    with capture():
        yield
