"""From paths to documents, one at a time: nothing is read before its turn, nothing outside what was named."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spanforge.reference.failures import ParseError
from spanforge.reference.models import Document
from spanforge.reference.parsing import media_type_of
from spanforge.reference.parsing.base import MAX_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_NAME = 300


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
        unreadable = self.path is None
        content = b""
        try:
            if self.path is not None:
                if self.path.stat().st_size > MAX_FILE_BYTES:
                    raise ParseError(f"A file larger than {MAX_FILE_BYTES} bytes is refused; split it.")
                content = self.path.read_bytes()
        except OSError:
            unreadable = True
        if unreadable:
            raise ParseError("The file cannot be read; check that it exists and its permissions.")
        return Document(
            document_id=self.document_id,
            content=content,
            name=self.source,
            media_type=media_type_of(self.source),
        )


def waiting(items: Iterable[Document | Path | str]) -> list[Waiting]:
    """List what is to be ingested, in a stable order, each document once.

    Folders are walked; hidden entries and links that lead out of the folder are left out. A file's id is
    its absolute path, so that naming it directly or by its folder means the same document.
    """
    found: dict[str, Waiting] = {}
    for item in items:
        if isinstance(item, Document):
            found[item.document_id] = Waiting(item.document_id, _printable(item.name or item.document_id), None, item)
            continue
        root = Path(item)
        for path in _files(root):
            shown = path.relative_to(root).as_posix() if root.is_dir() else path.name
            identity = _identity(path)
            found.setdefault(identity, Waiting(identity, _printable(shown), path))
    return list(found.values())


def _identity(path: Path) -> str:
    return path.resolve().as_posix().encode("utf-8", "backslashreplace").decode()[-512:]


def _files(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return
    boundary = root.resolve()
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.resolve().is_relative_to(boundary) and path.is_file():
                yield path


def _printable(name: str) -> str:
    clean = name.encode("utf-8", "replace").decode()
    return "".join(" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in clean)[:_MAX_NAME]
