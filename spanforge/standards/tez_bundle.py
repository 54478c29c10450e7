"""Reads and writes Tezit bundles, as a folder or as a ZIP file.

An existing bundle gains the transparency extension and is not changed otherwise. A file is replaced as a whole
and at once; a bundle is never left half written.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final, NoReturn, Protocol

from spanforge.standards import tez
from spanforge.standards.tez import ContextItem
from spanforge.standards.transparency import TransparencyError, transparency
from spanforge.standards.tree.session import Session

__all__ = ["read_record", "write_bundle"]

_MANIFEST: Final = "manifest.json"
_MAX_JSON: Final = 16 << 20
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a new ZIP: the same session makes the same bytes."""


class _Bundle(Protocol):
    """A bundle that is there, of either form."""

    def read(self, name: str) -> bytes | None: ...
    def has(self, folder: str) -> bool: ...
    def add(self, files: Mapping[str, bytes]) -> None: ...


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> bytes | None:
        file = self._path / name
        return file.read_bytes()[:_MAX_JSON] if file.is_file() else None

    def has(self, folder: str) -> bool:
        return (self._path / folder).is_dir()

    def add(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            target = self._path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(target, content)


class _Zip:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> bytes | None:
        with zipfile.ZipFile(self._path) as archive:
            try:
                with archive.open(name) as member:
                    return member.read(_MAX_JSON)
            except KeyError:
                return None

    def has(self, folder: str) -> bool:
        with zipfile.ZipFile(self._path) as archive:
            return any(name.startswith(f"{folder}/") for name in archive.namelist())

    def add(self, files: Mapping[str, bytes]) -> None:
        with _beside(self._path) as temporary, zipfile.ZipFile(temporary, "w") as new:
            with zipfile.ZipFile(self._path) as old:
                new.comment = old.comment
                for info in old.infolist():
                    if info.filename not in files:
                        with old.open(info) as source, new.open(copy(info), "w") as target:
                            shutil.copyfileobj(source, target)
            _write_members(new, files)


def write_bundle(session: Session, out: Path, context: Path | None = None, creator: str = "spanforge") -> list[str]:
    """Write a session's bundle, or add the extension to the bundle that is there.

    Args:
        session: The session.
        out: `NAME.tez`: a folder where it is one or the name ends in a slash, else a ZIP file.
        context: Folder whose files become context items, where a source of the session is a path in it.
        creator: Who made the bundle; for a new one.

    Returns:
        The sources whose file was written after the session read it; the manifest marks them.

    Raises:
        TransparencyError: The trace does not support a record, or a source is not in the existing bundle.
        OSError: A file cannot be read or written.
    """
    existing = _existing(out)
    if existing is not None:
        existing.add(_extension_files(session, existing))
        return []
    items, contents = _collect(session, context)
    record = transparency(session, lambda chunk: tez.item_id(tez.source_of(chunk)), {item.item_id for item in items})
    files = {
        _MANIFEST: _json(tez.manifest(session, items, creator)),
        "tez.md": tez.page(session, record).encode(),
        **contents,
        **_extension(tez.VENDOR_ID, record, tez.content_hashes(session), with_manifest=True),
    }
    if str(out).endswith(("/", os.sep)) or out.is_dir():
        out.mkdir(parents=True, exist_ok=True)
        _Folder(out).add(files)
    else:
        with _beside(out) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            _write_members(archive, files)
    return [item.source for item in items if item.changed]


def read_record(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the id under which a bundle has its transparency record, the vendor's or the standard's, and the record.

    Raises:
        TransparencyError: There is no bundle, no record, or one that is not JSON.
    """
    bundle = _existing(path)
    if bundle is None:
        _refuse("there is no bundle at that path")
    for extension_id in (tez.STANDARD_ID, tez.VENDOR_ID):
        content = bundle.read(f"extensions/{extension_id}/{tez.EXTENSION_FILE}")
        if content is not None:
            return extension_id, _object(content, tez.EXTENSION_FILE)
    return _refuse("the bundle has no transparency extension")


def _refuse(why: str) -> NoReturn:
    raise TransparencyError(f"tez: {why}")


def _existing(path: Path) -> _Bundle | None:
    if path.is_dir():
        return _Folder(path) if (path / _MANIFEST).is_file() else None
    if not path.exists():
        return None
    if not zipfile.is_zipfile(path):
        _refuse("the file is there and is not a bundle; name another one")
    bundle = _Zip(path)
    if bundle.read(_MANIFEST) is None:
        _refuse("the file is there and has no manifest.json; name another one")
    return bundle


def _extension_files(session: Session, bundle: _Bundle) -> dict[str, bytes]:
    ids = tez.source_ids(_items(_object(bundle.read(_MANIFEST) or b"", _MANIFEST)))
    record = transparency(session, lambda chunk: ids.get(tez.source_of(chunk), ""), set(ids.values()))
    standard = bundle.has(f"extensions/{tez.STANDARD_ID}")
    extension_id = tez.STANDARD_ID if standard else tez.VENDOR_ID
    there = bundle.read(f"extensions/{extension_id}/{_MANIFEST}") is not None
    return _extension(extension_id, record, tez.content_hashes(session), with_manifest=not there)


def _items(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    try:
        items: list[dict[str, Any]] = list(manifest["context"]["items"])
        if all(isinstance(item["id"], str) for item in items):
            return items
    except (KeyError, TypeError):
        # Some other shape than the protocol's.
        items = []
    return _refuse("manifest.json names no context items")


def _extension(
    extension_id: str, record: Mapping[str, Any], hashes: Mapping[str, str], *, with_manifest: bool
) -> dict[str, bytes]:
    folder = f"extensions/{extension_id}"
    files = {f"{folder}/{_MANIFEST}": _json(tez.extension_manifest(extension_id))} if with_manifest else {}
    if hashes:
        files[f"{folder}/{tez.HASHES_FILE}"] = _json(hashes)
    return {**files, f"{folder}/{tez.EXTENSION_FILE}": _json(record)}


def _collect(session: Session, context: Path | None) -> tuple[list[ContextItem], dict[str, bytes]]:
    """Return the session's items with the files that belong to them, found by their source below `context`."""
    read_ns = max((stage.end_ns for stage in session.retrievals), default=0)
    hashes = {digest.rpartition(":")[2] for digest in tez.content_hashes(session).values()}
    found: list[ContextItem] = []
    contents: dict[str, bytes] = {}
    for item in tez.context_items(session):
        file = _file_of(item.source, context) if context else None
        if file is None:
            found.append(item)
            continue
        content = file.read_bytes()
        digest = sha256(content).hexdigest()
        name = tez.file_name(item.item_id, file.suffix)
        contents[name] = content
        # What was retrieved whole, and reads as it did, has not changed whatever its date says.
        changed = digest not in hashes and file.stat().st_mtime_ns > read_ns
        found.append(replace(item, file=name, size_bytes=len(content), digest=f"sha256:{digest}", changed=changed))
    return found, contents


def _file_of(source: str, context: Path) -> Path | None:
    """Return the file a source names below a folder; never one outside it, not through a link either."""
    if "\0" in source:
        return None
    root = context.resolve()
    for name in (source, PurePosixPath(source).name):
        with suppress(OSError):
            file = (root / name).resolve()
            if file.is_relative_to(root) and file.is_file():
                return file
    return None


def _object(content: bytes, name: str) -> dict[str, Any]:
    value: object = None
    with suppress(ValueError, RecursionError):
        value = json.loads(content)
    if not isinstance(value, dict):
        _refuse(f"{name} is not a JSON object")
    return value  # pyright: ignore[reportUnknownVariableType]  JSON objects have string keys


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2, allow_nan=False).encode("ascii") + b"\n"


def _write_members(archive: zipfile.ZipFile, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        info = zipfile.ZipInfo(name, _EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        archive.writestr(info, content)


class _beside:  # noqa: N801  used as a function
    """A new file beside another, which takes its place when the block ends well and is gone when it does not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = Path()

    def __enter__(self) -> Path:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        os.close(fd)
        self._temporary = Path(name)
        return self._temporary

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._temporary.unlink(missing_ok=True)
            return
        if self._path.exists():
            shutil.copymode(self._path, self._temporary)
        self._temporary.replace(self._path)


def _replace(path: Path, content: bytes) -> None:
    with _beside(path) as temporary:
        temporary.write_bytes(content)
