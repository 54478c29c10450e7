"""Where the public test sets are, for the tests that measure on them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def contradictions() -> Path:
    return DATA / "contradictions.jsonl"


@pytest.fixture(scope="session")
def public_grounding_sets() -> Path:
    folder = os.environ.get("SPANFORGE_EVAL_DATA", "")
    if not folder:
        pytest.skip("SPANFORGE_EVAL_DATA is not set: the public sets are not part of this repository (licences vary)")
    found = Path(folder) / "grounding"
    if not found.is_dir():
        pytest.fail("SPANFORGE_EVAL_DATA names a folder without a 'grounding' folder in it")
    return found
