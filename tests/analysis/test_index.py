"""An index that goes on from where it was says what one says that is made anew."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from support.many_sessions import many_events

from spanforge.analysis.engines import connect
from spanforge.analysis.index import Index


def refreshed(log: Path, folder: Path) -> Index:
    index = Index(log, folder, connect(scratch=folder.parent))
    index.refresh()
    return index


def rows_of(index: Index) -> list[dict[str, Any]]:
    return index.sessions().order_by("org_id", "session_id").to_pyarrow().to_pylist()


def test_a_log_that_grows(tmp_path: Path) -> None:
    log, folder = tmp_path / "events.jsonl", tmp_path / "index"
    lines = [event.encode() + b"\n" for org in ("", "acme") for event in many_events(60, org=org)]
    # Summaries of sessions that were read before, sessions that are new, repeats and a damaged line.
    late = [*lines[5::300], *lines[-20:]]
    log.write_bytes(b"".join(line for line in lines if line not in late))
    refreshed(log, folder)
    for some in (late[:9], [*late[9:], late[0], lines[0], b"no event\n"]):
        with log.open("ab") as file:
            file.writelines(some)
        grown = refreshed(log, folder)
        assert grown.manifest.delta
        assert rows_of(grown) == rows_of(refreshed(log, tmp_path / f"anew-{len(some)}"))
    assert grown.manifest.damaged == {"not JSON": 1}
    assert not list(folder.glob("changed-*")), "what was made on the way is gone"


def test_what_the_application_froze_stays_frozen(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_bytes(b"".join(event.encode() + b"\n" for event in many_events(3)))
    gc.freeze()
    try:
        refreshed(log, tmp_path / "index")
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    refreshed(log, tmp_path / "another")
    assert gc.get_freeze_count() == 0
