"""The role table is the routes: generated from it, and a route without a row fails."""

from __future__ import annotations

import re

import pytest
from fastapi.routing import APIRoute
from support.api import Api

from spanforge.server.app import ROUTERS
from spanforge.server.auth.permissions import ANYONE, ROLES, TABLE, methods_of

_BODIES = {
    "/api/rag/ingest": {"dataSourceId": "none", "documents": [{"documentId": "a", "text": "a"}]},
    "/api/rag/sources": {"name": "Notes"},
    "/api/rag/query": {"query": "anything"},
    "/api/rag/retrieve": {"query": "anything"},
    "/api/rag/sessions/{id}/feedback": {"rating": "star_5"},
}


def _call(api: Api, method: str, route: str, headers: dict[str, str] | None):
    body = _BODIES[route] if method == "POST" else None
    return api.client.request(method, re.sub(r"\{\w+\}", "none", route), json=body, headers=headers)


def test_every_route_has_a_row_and_every_row_a_route(api: Api) -> None:
    declared = [*api.app.routes, *(route for router in ROUTERS for route in router.routes)]
    routes = {(method, route.path) for route in declared if isinstance(route, APIRoute) for method in route.methods}
    assert routes == set(TABLE)


@pytest.mark.parametrize("role", [*ROLES, "auditor"])
def test_each_role_may_what_its_row_says(api: Api, role: str) -> None:
    headers = api.key(roles=[role])
    for (method, route), roles in TABLE.items():
        answer = _call(api, method, route, headers)
        refused = answer.status_code == 403 and answer.json()["code"] == "FORBIDDEN"
        assert refused is (roles is not ANYONE and role not in roles), (method, route)


@pytest.mark.parametrize(("method", "route"), list(TABLE))
def test_without_a_credential(api: Api, method: str, route: str) -> None:
    answer = _call(api, method, route, None)
    if TABLE[method, route] is ANYONE:
        assert answer.status_code in {200, 503}, "it answers, ready or not"
    else:
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="spanforge"'
        assert answer.json()["code"] == "UNAUTHENTICATED"


def test_a_key_without_roles_may_nothing(api: Api) -> None:
    headers = api.key(roles=[])
    for (method, route), roles in TABLE.items():
        if roles is not ANYONE:
            assert _call(api, method, route, headers).status_code == 403, (method, route)


def test_other_methods_are_told_which_there_are(api: Api) -> None:
    for path in {route for _, route in TABLE}:
        target = re.sub(r"\{\w+\}", "x", path)
        answer = api.client.request("PUT", target)
        assert answer.status_code == 405
        assert answer.headers["allow"].split(", ") == methods_of(target)
        assert answer.json()["code"] == "METHOD_NOT_ALLOWED"
