"""Files behind URLs: whatever fsspec reaches, with as much of a path as reading asks for."""

from __future__ import annotations

import errno
import io
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

from spanforge.exceptions import ConfigError, MissingExtraError

__all__ = ["RemoteFile", "find", "is_url"]

_MARK: Final = "://"
_BUFFER: Final = 1 << 18


class _Stat(NamedTuple):
    st_ino: int
    st_size: int


class RemoteFile:
    """One file behind a URL.

    Attributes:
        name: The last part of its address.

    Args:
        system: The file system of fsspec that holds it.
        path: Its path there.
    """

    def __init__(self, system: Any, path: str) -> None:
        self.name = path.rstrip("/").rpartition("/")[2]
        self._system, self._path = system, path

    def __str__(self) -> str:
        return self._path

    @property
    def parent(self) -> str:
        """The path of its folder."""
        return self._path.rpartition("/")[0]

    def open(self, _mode: str = "rb") -> io.BufferedReader:
        """Open it for reading in bytes."""
        return io.BufferedReader(self._system.open(self._path, "rb"), _BUFFER)

    def stat(self) -> _Stat:
        """Return its size, and a number that stands for what is there now."""
        size, key = self._system.size(self._path), self._system.ukey(self._path)
        return _Stat(crc32(str(key).encode()), size)

    def fetch(self, to: Path) -> None:
        """Copy it to a file of this machine."""
        self._system.get_file(self._path, str(to))


def is_url(path: object) -> bool:
    """Tell whether a path is an address that fsspec may know."""
    return isinstance(path, str) and _MARK in path


def find(url: str) -> list[Path | RemoteFile]:
    """Return the files at an address: one file, those of a folder, or those a pattern fits; in no order.

    Raises:
        FileNotFoundError: Nothing is there.
        MissingExtraError: fsspec is not installed.
        ConfigError: It knows no such address, or a package of its own for it is not installed.
    """
    try:
        core = import_module("fsspec.core")
    except ImportError:
        raise MissingExtraError("reading from a URL", "remote") from None
    scheme = url.partition(_MARK)[0]
    try:
        system, path = core.url_to_fs(url)
    except ValueError:
        raise ConfigError(f"{scheme}: no such kind of address; fsspec knows s3, gs, abfs, hdfs and others") from None
    except ImportError as error:
        raise ConfigError(f"{scheme}: {str(error).splitlines()[0]}") from None
    if system.exists(path):
        found = system.find(path, maxdepth=1) if system.isdir(path) else [path]
    else:
        found = [one for one in system.glob(path) if system.isfile(one)]
        if not found:
            raise FileNotFoundError(errno.ENOENT, "no such file of events", path)
    # What fsspec reaches on this machine is a file like any other.
    local = "file" in ([system.protocol] if isinstance(system.protocol, str) else system.protocol)
    return [Path(one) if local else RemoteFile(system, one) for one in found]
