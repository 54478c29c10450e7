"""The figures of all sessions within a range of time."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from spanforge import _clock
from spanforge.server.viewer.charts import columns, decades, nice_top
from spanforge.server.viewer.filters import RANGES, Filter
from spanforge.server.viewer.overview import overview
from spanforge.server.viewer.queries import choices, version
from spanforge.server.viewer.shell import shell_of

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
        figures = shell.overviews.get(asked, stamp, lambda: overview(connection, org, wanted))
        names = choices(connection, org)
    top = nice_top(max((bucket.sessions for bucket in figures.volume), default=1))
    return shell.page(
        request,
        "overview.html",
        active="overview",
        wanted=wanted,
        figures=figures,
        names=names,
        ranges=list(RANGES),
        top=top,
        columns=columns(figures.volume, top),
        axis=decades(figures.latency),
        grounding_top=max(figures.grounding) or 1,
        source_top=max((source.chunks for source in figures.sources), default=1),
    )
