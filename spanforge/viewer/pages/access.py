"""Signing in and out, and the gate before everything else."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from spanforge.viewer.shell import form_of, shell_of
from spanforge.viewer.visits import COOKIE, Visits

__all__ = ["SignedIn", "sign_in", "sign_out"]

_OPEN: Final = ("/sign-in", "/static/")
_ASKING: Final = ("/ask", "/passages/", "/sign-out")


class SignedIn:
    """Lets only signed-in browsers through, all but the sign-in page and what it is drawn with."""

    def __init__(self, app: ASGIApp, visits: Visits) -> None:
        self._app, self._visits = app, visits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        visit = await self._visits.find(request.cookies.get(COOKIE))
        request.state.visit = visit
        base = scope.get("root_path", "").rstrip("/")
        path = scope["path"].removeprefix(base)
        if path.startswith(_OPEN) or (visit is not None and (visit.guest.looks or path.startswith(_ASKING))):
            await self._app(scope, receive, send)
            return
        if visit is not None:
            # Who may ask and no more is led there, whatever the page would have shown.
            await RedirectResponse(f"{base}/ask", 303)(scope, receive, send)
            return
        if scope["method"] != "GET" or path == "/live":
            answer: Response = PlainTextResponse("Sign in first.\n", 401)
        else:
            wanted = urlencode({"next": path + (f"?{request.url.query}" if request.url.query else "")})
            answer = RedirectResponse(f"{base}/sign-in?{wanted}", 303)
        await answer(scope, receive, send)


async def sign_in(request: Request) -> Response:
    """Take a credential, and set the cookie that stands for it."""
    shell = shell_of(request)
    assert shell.visits is not None  # noqa: S101  the route exists only with it
    following = _local(request.query_params.get("next", ""))
    if request.method != "POST":  # HEAD goes with GET, and what it may carry is no form
        return shell.page(request, "sign-in.html", following=following, refused=False)
    fields = await form_of(request)
    token = await shell.visits.begin(fields.get("credential", "").strip())
    if token is None:
        return shell.page(request, "sign-in.html", 401, following=following, refused=True)
    links = shell.links(request)
    answer = RedirectResponse(f"{links.base}{following or '/sessions'}", 303)
    answer.set_cookie(
        COOKIE, token, path=links.base or "/", httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return answer


async def sign_out(request: Request) -> Response:
    """End the visit."""
    shell = shell_of(request)
    assert shell.visits is not None  # noqa: S101  the route exists only with it
    shell.check_form(request, await form_of(request))
    shell.visits.end(request.cookies.get(COOKIE))
    links = shell.links(request)
    answer = RedirectResponse(links("sign-in"), 303)
    answer.delete_cookie(COOKIE, path=links.base or "/", httponly=True, samesite="strict")
    return answer


def _local(path: str) -> str:
    """Return a path of our own pages; nothing for an address that leads elsewhere."""
    try:
        parts = urlsplit(path)
    except ValueError:
        return ""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if plain and not parts.netloc and not parts.scheme else ""
