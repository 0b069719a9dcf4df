"""Applies the rules of `security` to every request, before any page sees it."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dnsrig.browse.connections import KNOWN
from dnsrig.browse.security import HEADERS, MOST_BODY_BYTES, Access

OPEN = ("/static/",)
"""Without a cookie: nothing of a run is there."""
ENTER = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>dnsrig</title>
<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0;url={target}"><p><a href="{target}">Go on</a></p></html>"""
"""A page, and no redirect: browsers send a strict cookie only where a page of ours leads."""


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refused(Request(scope))

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    if name.lower() not in headers:
                        headers[name] = value
            await send(message)

        await (refused or self._app)(scope, receive, hardened)

    def _refused(self, request: Request) -> Response | None:
        """The answer to what may not pass, or what brings the token; None lets it pass."""
        if not self._access.is_host(request.headers.get("host", "")):
            return PlainTextResponse("this is not a name of this server\n", 421)
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("only GET, HEAD and POST\n", 405)
        if (given := request.query_params.get("token")) is not None and request.method == "GET":
            return self._entered(request) if self._access.is_token(given) else _who()
        if request.url.path.startswith(OPEN):
            return None
        if not self._access.is_token(request.cookies.get(self._access.cookie, "")):
            return _who()
        request.scope.setdefault("state", {})[KNOWN] = True
        if request.method == "POST":
            return self._refused_form(request)
        return None

    def _refused_form(self, request: Request) -> Response | None:
        if not self._access.is_origin(request.headers):
            return PlainTextResponse("this form came from another site\n", 403)
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
            return PlainTextResponse("too much for a form\n", 413)
        return None

    def _entered(self, request: Request) -> Response:
        """Gives the cookie, and leads to the same address without the token."""
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        path = "/" + request.url.path.lstrip("/")  # `//host/` would lead to another server
        target = path + (f"?{urlencode(rest)}" if rest else "")
        escaped = target.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
        response = HTMLResponse(ENTER.format(target=escaped))
        cookie = self._access.cookie
        response.set_cookie(cookie, self._access.token, httponly=True, samesite="strict", path="/")
        return response


def _who() -> Response:
    return PlainTextResponse("open the address that `dnsrig browse` printed: it has the token\n", 403)


def access_of(connection: HTTPConnection) -> Access:
    found: Access = connection.app.state.access
    return found
