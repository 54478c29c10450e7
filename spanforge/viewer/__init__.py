"""The viewer: stored sessions as pages to look at (extra `ui`)."""

from __future__ import annotations

from spanforge.exceptions import MissingExtraError

try:
    from spanforge.viewer.app import create_viewer
    from spanforge.viewer.filters import Filter
    from spanforge.viewer.overview import Overview
    from spanforge.viewer.report import Report, report
    from spanforge.viewer.visits import Guest
except ModuleNotFoundError as error:
    missing = error.name or ""
else:
    missing = ""
# Raised here, where no error that names our own modules hangs on it.
if missing.partition(".")[0] in {"starlette", "jinja2"}:
    raise MissingExtraError("The viewer", "ui")
if missing:
    raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

__all__ = ["Filter", "Guest", "Overview", "Report", "create_viewer", "report"]
