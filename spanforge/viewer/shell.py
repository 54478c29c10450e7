"""What every page has in common: the store it asks, whom it asks for, and the frame it is shown in."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from spanforge._hashing import Hasher
from spanforge._text import well_formed
from spanforge._version import __version__
from spanforge.viewer.documents import AskableDocuments, Documents
from spanforge.viewer.exports import FORMS
from spanforge.viewer.memo import Memo
from spanforge.viewer.names import version
from spanforge.viewer.queries import SessionRow
from spanforge.viewer.shown import FILTERS, percent
from spanforge.viewer.store import ViewedStore
from spanforge.viewer.visits import Visit, Visits

__all__ = ["Links", "Shell", "form_of", "shell_of", "templates"]

_MOST_BODY: Final = 64 << 10
_MOST_FIELDS: Final = 10


def templates() -> Environment:
    """Return the templates, with how values are written in them."""
    made = Environment(
        loader=PackageLoader("spanforge.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    everywhere: dict[str, Any] = {"percent": percent, "forms": FORMS, "product_version": __version__}
    made.globals.update(everywhere)
    return made


class Links:
    """The addresses of the pages, below wherever the viewer is mounted."""

    def __init__(self, base: str) -> None:
        self.base = base.rstrip("/")

    def __call__(self, page: str, query: str = "") -> str:
        """Return the address of a page by its path, with a query where there is one."""
        return f"{self.base}/{page}" + (f"?{query}" if query else "")

    def session(self, row: SessionRow, below: str = "", *, named: bool = False) -> str:
        """Return the address of a session; `named` adds its organisation, where all may be seen."""
        query = f"org={quote(row.org, safe='')}" if named and row.org else ""
        return self(f"sessions/{quote(row.ref, safe='~')}{below}", query)

    def compared(self, row: SessionRow, other: SessionRow, *, named: bool = False) -> str:
        """Return the address of a session beside another."""
        address, chosen = self.session(row, "/compare", named=named), urlencode({"with": other.ref})
        return f"{address}{'&' if '?' in address else '?'}{chosen}"


class Shell:
    """The frame of the pages.

    Args:
        store: What they ask.
        hasher: Turns a searched text into its digest.
        visits: Who is signed in; None where everybody on this machine may see everything.
        documents: Those behind the traces, where they are at hand; some can be asked, too.
    """

    def __init__(
        self, store: ViewedStore, hasher: Hasher, visits: Visits | None, documents: Documents | None = None
    ) -> None:
        self.store, self.hasher, self.visits, self.documents = store, hasher, visits, documents
        self.overviews: Memo[dict[str, Any]] = Memo()
        self._templates = templates()

    def org(self, request: Request) -> str | None:
        """Return the one organisation that may be seen; None for all."""
        return None if self.visits is None else _visit(request).org

    def asks(self, request: Request) -> bool:
        """Tell whether the visitor may ask the documents, or look a passage up."""
        visit: Visit | None = getattr(request.state, "visit", None)
        return self.documents is not None and (self.visits is None or (visit is not None and visit.guest.asks))

    def looks(self, request: Request) -> bool:
        """Tell whether the visitor may look at what was traced."""
        visit: Visit | None = getattr(request.state, "visit", None)
        return self.visits is None or (visit is not None and visit.guest.looks)

    @contextmanager
    def asking(self) -> Generator[sqlite3.Connection]:
        """Give a connection to the store, which begins to be read with the first question."""
        self.store.start()
        with self.store.reading() as connection:
            yield connection

    def links(self, request: Request) -> Links:
        """Return the addresses of the pages as this request sees them."""
        return Links(request.scope.get("root_path", ""))

    def page(self, request: Request, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
        """Return a page in its frame."""
        visit: Visit | None = getattr(request.state, "visit", None)
        named = self.visits is None
        progress = self.store.progress()
        stamp = 0
        if self.looks(request):
            with self.store.reading() as connection:
                stamp = version(connection, None if visit is None else visit.org)
        text = self._templates.get_template(template).render(
            link=self.links(request),
            store=self.store.name,
            all_orgs=named,
            visit=visit,
            progress=progress,
            stamp=stamp,
            looks=self.looks(request),
            passages=self.asks(request),
            answers=self.asks(request) and isinstance(self.documents, AskableDocuments),
            **shown,
        )
        # Ids may hold lone surrogates, which no page can.
        return HTMLResponse(well_formed(text), status)

    def check_form(self, request: Request, fields: dict[str, str]) -> None:
        """Refuse a form that is not one of our own pages'.

        Raises:
            HTTPException: 403, where somebody is signed in and the form lacks the token of that visit.
        """
        if self.visits is not None and fields.get("token") != _visit(request).form_token:
            raise HTTPException(403, "This form is out of date: go back, load the page again, and send it once more.")


def shell_of(request: Request) -> Shell:
    """Return the shell of the application that a request came to."""
    shell: Shell = request.app.state.shell
    return shell


async def form_of(request: Request) -> dict[str, str]:
    """Read a posted form.

    Raises:
        HTTPException: 413 where it is too large, 400 where it is no form.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BODY:
            raise HTTPException(413, "This is too long: use at most 64 kB.")
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        fields = None
    if fields is None:
        raise HTTPException(400, "This form cannot be read.")
    return fields


def _visit(request: Request) -> Visit:
    visit: Visit = request.state.visit
    return visit
