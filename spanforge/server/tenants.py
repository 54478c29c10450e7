"""One folder, one index and one catalogue for each organisation.

Not one index with a filter: word statistics, quotas, ids and times would then depend on what other organisations keep.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from spanforge.reference import Pipeline
from spanforge.reference.answering import open_answerer
from spanforge.reference.home_files import own_folder
from spanforge.reference.workers import Limits
from spanforge.server.upgrading import HOME, folder_name, upgrade

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from spanforge._hashing import Hasher
    from spanforge.reference.embedding import Embedder
    from spanforge.sdk import ServerSettings

_FOLDER: Final = "orgs"


@dataclass(slots=True)
class Tenant:
    """What one organisation has.

    Attributes:
        org_id: The organisation.
        folder: Where everything of it is.
        pipeline: Its reference RAG.
    """

    org_id: str
    folder: Path
    pipeline: Pipeline
    users: int = 0


class Tenants:
    """Opens organisations when they are first asked for, and keeps the most recently used ones open.

    Args:
        home: Folder of the server.
        make: Makes the pipeline of an organisation, in a folder.
        keep: How many stay open while nobody uses them.
        hasher: Names the folders of organisations.
    """

    def __init__(self, home: Path, make: Callable[[Path], Pipeline], keep: int, hasher: Hasher) -> None:
        self._root = home / _FOLDER
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._make = make
        self._hasher = hasher
        self._keep = keep
        self._doors: dict[str, threading.Lock] = {}
        self._modes_lock = threading.Lock()
        self._modes: dict[str, str] = {}
        self._open: OrderedDict[str, Tenant] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def use(self, org_id: str) -> Generator[Tenant]:
        """Open an organisation for the length of a block.

        Raises:
            IndexUnavailable: Its folder cannot be used.
            EmbeddingFailed: Its embedding model is missing.
        """
        tenant = self._take(org_id)
        try:
            yield tenant
        finally:
            self._give_back(tenant)

    def upgrade(self) -> None:
        """Bring what an earlier version, or another key, left into the form of this one."""
        own_folder(self._root)
        upgrade(self._root, self._hasher)

    def homes(self) -> list[Path]:
        """Return the homes of the pipelines of all organisations there are."""
        return sorted(path / HOME for path in self._root.iterdir() if path.is_dir())

    def forget_answers(self) -> None:
        """Forget the answers that open pipelines remember."""
        with self._lock:
            for tenant in self._open.values():
                tenant.pipeline.forget_answers()

    def modes(self) -> dict[str, str]:
        """Return which engine does what in every organisation's pipeline; slow the first time."""
        with self._modes_lock:
            if not self._modes:
                # All are made alike, so that any one tells.
                with TemporaryDirectory(prefix="spanforge-") as folder:
                    pipeline = self._make(Path(folder) / "index")
                    self._modes = pipeline.modes
                    pipeline.close()
            return self._modes

    def readable(self) -> bool:
        """Tell whether the folder of all organisations is there and may be used."""
        return os.access(self._root, os.R_OK | os.W_OK | os.X_OK)

    def close(self) -> None:
        """Close all that nobody uses."""
        with self._lock:
            self._close_idle(0)

    def _take(self, org_id: str) -> Tenant:
        with self._lock:
            door = self._doors.setdefault(org_id, threading.Lock())
        # One organisation's opening, which reads its files, does not hold up the others.
        with door:
            with self._lock:
                tenant = self._open.get(org_id)
                if tenant is not None:
                    return self._entered(tenant)
            tenant = self._opened(org_id)
            with self._lock:
                self._open[org_id] = tenant
                return self._entered(tenant)

    def _entered(self, tenant: Tenant) -> Tenant:
        self._open.move_to_end(tenant.org_id)
        tenant.users += 1
        return tenant

    def _opened(self, org_id: str) -> Tenant:
        folder = self._root / folder_name(self._hasher, org_id)
        folder.mkdir(exist_ok=True, mode=0o700)
        return Tenant(org_id, folder, self._make(folder / HOME))

    def _give_back(self, tenant: Tenant) -> None:
        with self._lock:
            tenant.users -= 1
            self._close_idle(self._keep)

    def _close_idle(self, keep: int) -> None:
        idle = [tenant for tenant in self._open.values() if not tenant.users]
        for tenant in idle[: max(0, len(self._open) - keep)]:
            del self._open[tenant.org_id]
            tenant.pipeline.close()


def pipeline_maker(settings: ServerSettings) -> Callable[[Path], Pipeline]:
    """Return what makes pipelines by default: the bundled parts, one embedding model for all, a quota for each."""
    shared: list[Embedder | None] = []
    lock = threading.Lock()
    bounds: dict[str, Any] = {
        "max_chunks": settings.max_chunks_per_org,
        "limits": Limits.within(settings.max_unfolded_bytes),
    }

    def make(folder: Path) -> Pipeline:
        answerer = open_answerer(settings.model, settings.base_url or None)
        with lock:
            if not shared:
                pipeline = Pipeline(folder, answerer=answerer, **bounds)
                shared.append(pipeline.embedder)
                return pipeline
        return Pipeline(folder, embedder=shared[0], answerer=answerer, **bounds)

    return make
