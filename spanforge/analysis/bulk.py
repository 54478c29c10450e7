"""Stored events in bulk: from any input to one table of sessions."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from spanforge.analysis.engines import connect
from spanforge.analysis.index import Index, Manifest
from spanforge.reader import Paths

__all__ = ["Rebuilt", "rebuild"]


class Rebuilt(NamedTuple):
    """What `rebuild` made.

    Attributes:
        manifest: What was read, and what was left out.
        sessions: Sessions written.
        open: How many of them no summary says the end of.
    """

    manifest: Manifest
    sessions: int
    open: int


def rebuild(paths: Paths, out: Path, folder: Path, *, engine: str = "duckdb", master: str | None = None) -> Rebuilt:
    """Write the sessions of stored events to a Parquet file, the one that began first first.

    Stages that ran in different processes, on different machines and in different files come together by organisation
    and session; an event that is stored more than once counts once.

    Args:
        paths: Files, folders and patterns, as of `read_events`.
        out: The file to write; with Spark, a folder of parts.
        folder: Where the index is kept that makes the next time fast.
        engine: `duckdb`, or `spark` for what one machine cannot hold.
        master: Address of the Spark cluster.

    Raises:
        FileNotFoundError: A path leads to nothing.
        MissingExtraError: The engine's packages are not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    connection = connect(engine, master=master, scratch=folder)
    index = Index(paths, folder, connection)
    manifest = index.refresh()
    table = index.sessions()
    connection.to_parquet(table.order_by("began_at", "org_id", "session_id"), str(out))
    [counts] = table.agg(sessions=table.count(), open=table.count(where=~table.ended)).to_pyarrow().to_pylist()
    return Rebuilt(manifest, counts["sessions"], counts["open"])
