"""Puts the application together."""

from __future__ import annotations

import itertools
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dnsrig import discovery
from dnsrig.browse import vega
from dnsrig.browse.guard import Guard
from dnsrig.browse.index import Index
from dnsrig.browse.security import Access
from dnsrig.browse.shared import Shelf, shown, style

STATIC = Path(__file__).with_name("static")
SCRIPTS = ("page.js", "charts.js", "live.js")
KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}
"""Headers of files that have their version in their name."""


def application(root: Path, access: Access, index: Index | None = None) -> Starlette:
    """The pages of the runs below ``root``."""
    views = discovery.modules("dnsrig.browse.views")
    routes = [Route("/static/{name}", _static), *itertools.chain.from_iterable(view.ROUTES for view in views)]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={HTTPException: _error, Exception: _failure},
    )
    app.state.access = access
    app.state.shelf = Shelf(index or Index(root))
    return app


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "style.css":
        return Response(style(), media_type="text/css")
    if name == f"vega-{vega.version()}.js":
        return Response(await run_in_threadpool(vega.bundle), media_type="text/javascript", headers=KEPT)
    if name in SCRIPTS:
        return Response((STATIC / name).read_text(encoding="utf-8"), media_type="text/javascript")
    raise HTTPException(404)


def _error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _said(request, error.status_code, error.detail)


def _failure(request: Request, error: Exception) -> Response:
    """The page for a fault of dnsrig's own; its traceback is on standard error."""
    return _said(request, 500, f"{type(error).__name__}: this should not happen")


def _said(request: Request, status: int, what: str) -> Response:
    if request.url.path.endswith(".json"):
        return JSONResponse({"error": what}, status)
    return shown(request, "error.html.j2", status, what=what)
