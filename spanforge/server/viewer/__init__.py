"""The viewer: stored sessions as pages to look at (extra `ui`)."""

from __future__ import annotations

from spanforge.exceptions import MissingExtraError

try:
    from spanforge.server.viewer.app import create_viewer
except ModuleNotFoundError as error:
    missing = error.name or ""
else:
    missing = ""
# Raised here, where no error that names our own modules hangs on it.
if missing.partition(".")[0] in {"starlette", "jinja2"}:
    raise MissingExtraError("The viewer", "ui")
if missing:
    raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

__all__ = ["create_viewer"]
