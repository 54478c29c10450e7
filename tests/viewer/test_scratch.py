"""The scratch store of a viewer that was killed is deleted by the next one; those of living viewers never are."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.processes import environment

from spanforge.viewer.store import ViewedStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing proves there that a folder has no owner")

OWNER = """
import sys, time
from spanforge.viewer.store import ViewedStore
store = ViewedStore("events.db")
print("made", flush=True)
time.sleep(60)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of these tests alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _folders(place: Path) -> set[Path]:
    return set(place.glob("spanforge-viewer-*"))


def test_what_a_killed_viewer_left_is_deleted_and_what_lives_is_not(place: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment(TMPDIR=str(place)), stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "made\n"
        (theirs,) = _folders(place)
        first = ViewedStore("events.db")
        second = ViewedStore("events.db")
        assert len(_folders(place)) == 3
        assert theirs in _folders(place)
    finally:
        other.kill()
        other.communicate()
    third = ViewedStore("events.db")
    assert theirs not in _folders(place)
    assert len(_folders(place)) == 3
    for store in (first, second, third):
        store.close()
    assert not _folders(place)


def test_what_only_looks_like_ours_is_left_alone(place: Path) -> None:
    without_owner, elsewhere = place / "spanforge-viewer-a", place / "elsewhere"
    without_owner.mkdir()
    elsewhere.mkdir()
    (elsewhere / "owner").touch()
    (place / "spanforge-viewer-b").symlink_to(elsewhere)
    linked = place / "spanforge-viewer-c"
    linked.mkdir()
    (linked / "owner").symlink_to(elsewhere / "owner")
    (place / "spanforge-viewer-d").touch()
    before = _folders(place)
    ViewedStore("events.db").close()
    assert _folders(place) == before
    assert (elsewhere / "owner").exists()
