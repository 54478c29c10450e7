"""What each role may do: the one table. A route that has no row here is refused to everybody.

Roles say which routes may be called; which documents are seen is decided apart, by the visibility of data sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

Role = Literal["reader", "editor", "admin", "viewer", "metrics"]

ROLES: Final[tuple[Role, ...]] = ("reader", "editor", "admin", "viewer", "metrics")
"""`reader` asks; `editor` also ingests and keeps sources; `viewer` looks at traces; `admin` does all of that inside its
organisation; `metrics` reads the figures of the whole server, which no organisation's role may."""

ANYONE: Final[frozenset[Role]] = frozenset()
"""In place of roles: answered without a credential."""

_READERS: Final[frozenset[Role]] = frozenset({"reader", "editor", "admin"})
_EDITORS: Final[frozenset[Role]] = frozenset({"editor", "admin"})

TABLE: Final[Mapping[tuple[str, str], frozenset[Role]]] = {
    ("POST", "/api/rag/ingest"): _EDITORS,
    ("GET", "/api/rag/ingest/{jobId}"): _EDITORS,
    ("DELETE", "/api/rag/ingest/{jobId}"): _EDITORS,
    ("GET", "/api/rag/sources"): _READERS,
    ("POST", "/api/rag/sources"): _EDITORS,
    ("DELETE", "/api/rag/sources/{id}"): _EDITORS,
    ("POST", "/api/rag/query"): _READERS,
    ("POST", "/api/rag/retrieve"): _READERS,
    ("GET", "/metrics"): frozenset({"metrics"}),
    ("GET", "/healthz"): ANYONE,
    ("GET", "/readyz"): ANYONE,
    ("GET", "/openapi.json"): ANYONE,
}

_PATTERNS: Final = {route: re.compile(re.sub(r"\{\w+\}", "[^/]+", route)) for _, route in TABLE}

VIEWERS: Final[frozenset[Role]] = frozenset({"viewer", "admin"})
"""Who may sign in to the pages under `/ui`."""


def may(roles: frozenset[str], method: str, route: str) -> bool:
    """Tell whether any of the roles may call a route.

    Args:
        roles: Of the credential; those that this table does not know decide nothing here.
        method: In capitals.
        route: Path as it is declared, with its parameters in braces.
    """
    allowed = TABLE.get((method, route))
    return allowed is not None and not roles.isdisjoint(allowed)


def methods_of(path: str) -> list[str]:
    """Return the methods that the path of a request has, sorted."""
    return sorted(method for method, route in TABLE if _PATTERNS[route].fullmatch(path))


def is_open(method: str, route: str) -> bool:
    """Tell whether a route is answered without a credential."""
    return TABLE.get((method, route)) is ANYONE
