"""The figures of all sessions within a range of time, beside those of others where that is asked for."""

from __future__ import annotations

import sqlite3
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from spanforge import _clock
from spanforge.exceptions import MissingExtraError
from spanforge.viewer.charts import drawn
from spanforge.viewer.filters import NAMES, Filter
from spanforge.viewer.names import choices, version
from spanforge.viewer.overview import overview
from spanforge.viewer.shell import shell_of
from spanforge.viewer.shown import visible

__all__ = ["overview_page"]

_MINUTE_NS = 60_000_000_000


def overview_page(request: Request) -> Response:
    """Show the figures; the address is the whole filter."""
    shell, wanted = shell_of(request), Filter.parse(request.query_params)
    org = shell.org(request)
    with shell.asking() as connection:
        stamp = version(connection, org)
        # A range ends now, so the minute belongs to the question.
        asked = org, wanted, wanted.range and _clock.wall_ns() // _MINUTE_NS
        shown = shell.overviews.get(asked, stamp, lambda: _shown(connection, org, wanted))
        names = choices(connection, org)
    tags = sorted({tag.partition("=")[0] for tag in names["tag"]})
    others = [f"{kind}={name}" for kind in NAMES for name in names[kind]] + names["tag"]
    others = [name for name in others if visible(name) == name]  # a browser shows them as they are
    return shell.page(
        request,
        "overview.html",
        active="overview",
        wanted=wanted,
        names=names,
        groupings=[*(kind for kind in NAMES if names[kind]), *tags],
        others=["before", *others],
        **shown,
    )


def _shown(connection: sqlite3.Connection, org: str | None, wanted: Filter) -> dict[str, Any]:
    shown = drawn(overview(connection, org, wanted))
    if wanted.against:
        try:
            from spanforge.viewer.changes import Baseline, compare_within  # noqa: PLC0415  needs the extra

            compared = compare_within(connection, org, wanted, Baseline.of(wanted.against, wanted))
            shown |= {"problem": compared.problem} if compared.problem else {"compared": compared}
        except (MissingExtraError, ValueError) as error:
            shown["problem"] = str(error).rstrip(".")
    return shown
