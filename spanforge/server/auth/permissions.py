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

OPERATORS: Final[frozenset[str]] = frozenset({"metrics"})
"""Roles that only a key gives, which the operator of the server makes."""

ANYONE: Final[frozenset[Role]] = frozenset()
"""In place of roles: answered without a credential."""

_READERS: Final[frozenset[Role]] = frozenset({"reader", "editor", "admin"})
_EDITORS: Final[frozenset[Role]] = frozenset({"editor", "admin"})

ADMINS: Final[frozenset[Role]] = frozenset({"admin"})
"""Who may say with whom a source of somebody else's is shared."""

TABLE: Final[Mapping[tuple[str, str], frozenset[Role]]] = {
    ("POST", "/api/rag/ingest"): _EDITORS,
    ("GET", "/api/rag/ingest/{jobId}"): _EDITORS,
    ("DELETE", "/api/rag/ingest/{jobId}"): _EDITORS,
    ("GET", "/api/rag/sources"): _READERS,
    ("POST", "/api/rag/sources"): _EDITORS,
    ("DELETE", "/api/rag/sources/{id}"): _EDITORS,
    ("PATCH", "/api/rag/sources/{id}"): _EDITORS,
    ("GET", "/api/rag/sources/{id}/documents"): _READERS,
    ("DELETE", "/api/rag/sources/{id}/documents"): _EDITORS,
    ("POST", "/api/rag/query"): _READERS,
    ("POST", "/api/rag/retrieve"): _READERS,
    ("POST", "/api/rag/sessions/{id}/feedback"): _READERS,
    ("GET", "/metrics"): frozenset({"metrics"}),
    ("GET", "/healthz"): ANYONE,
    ("GET", "/readyz"): ANYONE,
    ("GET", "/openapi.json"): ANYONE,
    ("GET", "/docs"): ANYONE,
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
