"""The folder a pipeline lives in: catalogue, index, and the lock that writers take turns by."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from spanforge.reference._extras import load
from spanforge.reference.embedding import Embedder, open_embedder
from spanforge.reference.failures import EmbeddingFailed, IndexUnavailable, Translated, undoing
from spanforge.reference.index import Index, MemoryIndex
from spanforge.reference.index.lance import LanceIndex
from spanforge.reference.ingesting.catalog import Catalog
from spanforge.reference.ingesting.jobs import CATALOG_FILE

AUTO = "auto"
BUNDLED_EMBEDDER = "wordllama"

_NO_FOLDER = "The index's folder cannot be made; check the path and its permissions."


class WriteLock:
    """Writers of one folder take turns: those of this process first among themselves, without looking again and again.

    Whoever holds it may take it once more.
    """

    def __init__(self, home: Path) -> None:
        self._threads = threading.RLock()
        self._processes = load("filelock", "reference").FileLock(home / "write.lock", thread_local=False)

    def __enter__(self) -> Self:
        self._threads.acquire()
        with undoing(self._threads.release):
            self._processes.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.release()
        self._threads.release()


class Home:
    """Opens what belongs to a folder, or their counterparts in memory where there is none.

    Args:
        path: The folder; made where it does not exist.

    Raises:
        IndexUnavailable: The folder cannot be made or read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None:
            with Translated((OSError,), lambda _: IndexUnavailable(_NO_FOLDER)):
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.catalog = Catalog(None if path is None else path / CATALOG_FILE)
        self.write_lock: AbstractContextManager[Any] = threading.RLock() if path is None else WriteLock(path)

    def open_embedder(self, wanted: str | Embedder | None) -> Embedder | None:
        """Open the embedder asked for, and hold the folder to it.

        Args:
            wanted: A specification, an embedder, None, or ``auto``: what the folder was made with, else the
                bundled one, else none.

        Raises:
            EmbeddingFailed: It is missing.
            IndexUnavailable: The folder was made with another one.
        """
        embedder = self._auto() if wanted == AUTO else open_embedder(wanted) if isinstance(wanted, str) else wanted
        name = embedder.name if embedder is not None else ""
        if self.catalog.remember("embedder", name) != name:
            raise IndexUnavailable("The index was made with another embedding model; open it with that one.")
        return embedder

    def open_index(self, embedder: Embedder | None, max_rows: int | None) -> Index:
        """Open the folder's index, or an empty one in memory.

        Raises:
            IndexUnavailable: It cannot be opened.
        """
        if self.path is None:
            return MemoryIndex(max_rows=max_rows)
        dimensions = embedder.dimensions if embedder is not None else 0
        with self.write_lock:
            return LanceIndex(self.path / "index", dimensions, max_rows=max_rows)

    def _auto(self) -> Embedder | None:
        stored = self.catalog.setting("embedder")
        if stored == "":
            return None
        try:
            return open_embedder(stored or BUNDLED_EMBEDDER)
        except EmbeddingFailed:
            if stored:
                raise
            return None
