"""The overview of a store by itself: its figures once, and as one file that needs no server."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from spanforge._text import well_formed
from spanforge.analysis.prices import Pricing
from spanforge.viewer.charts import drawn
from spanforge.viewer.filters import Filter
from spanforge.viewer.overview import Overview, overview
from spanforge.viewer.shell import Links, templates
from spanforge.viewer.store import Progress, ViewedStore
from spanforge.viewer.stored_events import lay_prices

__all__ = ["Report", "one_page", "report"]

_STYLE: Final = Path(__file__).with_name("static") / "viewer.css"
_HREF: Final = re.compile(r' href="[^"]*"')


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of the overview.

    Attributes:
        store: What the store is called.
        wanted: Which sessions are counted.
        progress: What could not be read, and whether the rest was read whole.
    """

    store: str
    wanted: Filter
    figures: Overview
    progress: Progress

    @property
    def sessions(self) -> int:
        """How many are counted."""
        return self.figures.sessions

    def as_data(self) -> dict[str, Any]:
        """Return the figures as JSON values, with what was damaged."""
        return {"damaged": self.progress.damaged, "complete": self.progress.complete, **asdict(self.figures)}

    def html(self) -> str:
        """Return the overview as one page: the viewer's own template, with everything it needs inside."""
        return one_page("overview.html", self.store, self.wanted, self.progress, **drawn(self.figures))


def one_page(template: str, store: str, wanted: Filter, progress: Progress, **values: Any) -> str:
    """Return a page by itself: a template of the viewer's in a frame that has everything inside it.

    Args:
        template: Its name.
        store: What the store is called.
        wanted: Which sessions are counted.
        progress: What could not be read.
        **values: What the template asks for beside.
    """
    made = templates().get_template(template)
    style = _STYLE.read_text(encoding="utf-8")
    shown = {"store": store, "wanted": wanted, "progress": progress, "names": None, "link": Links(""), **values}
    page = made.render(frame="report.html", style=style, all_orgs=True, visit=None, **shown)
    # Its links lead to pages that are not there. Quotes in text are escaped, so nothing else looks like one.
    return well_formed(_HREF.sub("", page))


def report(store: str | Path, wanted: Filter, pricing: Pricing | None = None) -> Report:
    """Read a store whole and return its figures.

    Args:
        store: A database of the sqlite sink, a jsonl file, a folder or a pattern.
        wanted: Which sessions, and what they are grouped by.
        pricing: Prices for generations that do not say their cost.
    """
    with closing(ViewedStore(store)) as viewed:
        viewed.catch_up()
        with viewed.reading() as connection:
            if pricing is not None:
                lay_prices(connection, pricing)
            return Report(viewed.name, wanted, overview(connection, None, wanted), viewed.progress())
