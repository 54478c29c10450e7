"""From paths to documents, one at a time: nothing is read before its turn, nothing outside what was named."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.models import Document
from spanforge.reference.parsing import media_type_of
from spanforge.reference.parsing.base import MAX_FILE_BYTES

_MAX_NAME = 300
_MAX_IDENTITY = 512


@dataclass(frozen=True, slots=True)
class Waiting:
    """A document whose turn has not come: its id, and how to get it."""

    document_id: str
    source: str
    path: Path | None = None
    document: Document | None = None

    def load(self) -> Document:
        """Read the document.

        Raises:
            ParseError: The file is gone, too large, or may not be read.
        """
        if self.document is not None:
            return self.document
        content = self.content("It cannot be read; check that it exists and its permissions.")
        return Document(
            document_id=self.document_id,
            content=content,
            name=self.source,
            media_type=media_type_of(self.source),
        )

    def content(self, unreadable: str) -> bytes:
        """Read the file.

        Raises:
            ParseError: It is too large; or, in the words given, it cannot be read.
        """
        with Translated((OSError,), lambda _: ParseError(unreadable)):
            if self.path is None or not stat.S_ISREG(self.path.stat().st_mode):
                # Pipes and devices may never end.
                raise FileNotFoundError
            if self.path.stat().st_size > MAX_FILE_BYTES:
                raise ParseError(f"A file larger than {MAX_FILE_BYTES} bytes is refused; split it.")
            return self.path.read_bytes()

    def modified(self) -> datetime | None:
        """Return when the file was last written, None for what is no file or says a time beyond all years."""
        with suppress(OSError, OverflowError, ValueError):
            return None if self.path is None else datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
        return None


def waiting(items: Iterable[Document | Path | str], home: Path | None = None) -> list[Waiting]:
    """List what is to be ingested, in a stable order, each document once.

    Args:
        items: Documents, and paths of files and folders.
        home: The index's own folder, which is left out of a folder that it stands in.

    Folders are walked; hidden entries and links that lead out of the folder or nowhere are left out. A file's id is
    its absolute path, so that naming it directly or by its folder means the same document. A folder that cannot be
    listed is itself among what waits, and fails when its turn comes.
    """
    found: dict[str, Waiting] = {}
    for item in items:
        if isinstance(item, Document):
            found[item.document_id] = Waiting(item.document_id, _printable(item.name or item.document_id), None, item)
            continue
        root = Path(item)
        for path in _files(root, None if home is None else home.resolve()):
            shown = path.relative_to(root).as_posix() if root.is_dir() else path.name
            name = identity(path)
            found.setdefault(name, Waiting(name, _printable(shown), path))
    return list(found.values())


def folders(items: Iterable[Document | Path | str]) -> list[str]:
    """Return the identities of the folders among what is ingested, with which those of their files begin."""
    paths = [Path(item) for item in items if not isinstance(item, Document)]
    return [f"{identity(path).rstrip('/')}/" for path in paths if path.is_dir()]


def identity(path: Path) -> str:
    """Return the id of the document in a file, and of the folder that its files' ids begin with."""
    # Not `Path.resolve`, which raises where links go round in a circle.
    name = Path(os.path.realpath(path)).as_posix().encode("utf-8", "backslashreplace").decode()
    digest = f"~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return name if len(name) <= _MAX_IDENTITY else name[: _MAX_IDENTITY - len(digest)] + digest


def is_gone(document_id: str) -> bool:
    """Tell whether the file of an id is there no more, as far as anybody can see."""
    path = Path(document_id)
    try:
        # Behind a folder that became a link it is another document.
        return not path.is_file() or identity(path) != document_id
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG


def _files(root: Path, home: Path | None) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return
    boundary = root.resolve()
    unlisted: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=lambda error: unlisted.append(Path(error.filename))):
        if home is not None and Path(folder).resolve() == home:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and _may_be_file(path) and path.resolve().is_relative_to(boundary):
                yield path
    yield from unlisted


def _may_be_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        # What may not be looked at may be one, which is said when its turn comes.
        return isinstance(error, PermissionError)


def _printable(name: str) -> str:
    clean = name.encode("utf-8", "replace").decode()
    return "".join(" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in clean)[:_MAX_NAME]
