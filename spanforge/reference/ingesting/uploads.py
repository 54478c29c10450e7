"""Documents between whoever brought them and the job that reads them: files that only their owner can read."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from spanforge.reference.failures import IndexFull, IndexUnavailable, RagFailure, Translated, undoing
from spanforge.reference.ingesting.loading import Waiting
from spanforge.reference.models import Document

_MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class Spooled(Waiting):
    """A document whose turn has not come, in a file, and what else was said of it."""

    facts: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def modified(self) -> datetime | None:
        """Return nothing: its file is as old as the upload, not as the document."""
        return None

    def load(self) -> Document:
        """Read the document.

        Raises:
            ParseError: Its file is gone.
        """
        content = self.content("The upload is gone; send the document again.")
        facts = dict(self.facts)
        is_text = facts.pop("is_text")
        stamp = facts.pop("timestamp")
        return Document(
            document_id=self.document_id,
            text=content.decode() if is_text else None,
            content=None if is_text else content,
            timestamp=None if stamp is None else datetime.fromisoformat(stamp),
            **facts,
        )


def spool(folder: Path, documents: Iterable[Document]) -> int:
    """Write documents into a new folder, and return how many; all of them are on the disk when this returns.

    Of two with the same id the last counts.

    Raises:
        IndexFull: The disk is full.
        IndexUnavailable: The folder cannot be written.
    """
    with undoing(lambda: remove(folder)), Translated((OSError,), _failure):
        return _spool(folder, documents)


def _spool(folder: Path, documents: Iterable[Document]) -> int:
    folder.mkdir(mode=0o700, parents=True)
    facts: dict[str, dict[str, Any]] = {}
    for number, document in enumerate(documents):
        is_text = document.text is not None
        _write(folder / str(number), (document.text or "").encode() if is_text else document.content or b"")
        facts[document.document_id] = {
            "file": str(number),
            "is_text": is_text,
            "name": document.name,
            "media_type": document.media_type,
            "timestamp": None if document.timestamp is None else document.timestamp.isoformat(),
            "quality": document.quality,
            "metadata": document.metadata,
        }
    _write(folder / _MANIFEST, json.dumps(facts).encode())
    return len(facts)


def spooled(folder: Path) -> Iterator[Spooled]:
    """Yield the documents in a folder, in order; none where the folder is gone."""
    manifest = folder / _MANIFEST
    if not manifest.is_file():
        return
    for document_id, facts in json.loads(manifest.read_bytes()).items():
        yield Spooled(document_id, facts["name"] or document_id, folder / facts.pop("file"), facts=facts)


def size(folder: Path) -> int:
    """Return how many bytes of documents wait in the folders of a folder."""
    return sum(file.stat().st_size for file in folder.glob("*/*"))


def remove(folder: Path) -> None:
    """Delete a folder of documents, where it is there."""
    shutil.rmtree(folder, ignore_errors=True)


def _failure(error: Exception) -> RagFailure:
    if getattr(error, "errno", 0) in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return IndexFull()
    return IndexUnavailable("The upload cannot be kept; check the folder and its permissions.")


def _write(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123  a descriptor
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
