"""A run in progress: the trial now, how long it will take, the last results, what failed."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dnsrig.browse import progress
from dnsrig.browse.shared import shelf_of, shown, url


def _now(request: Request) -> dict[str, object]:
    opened = shelf_of(request).opened(request.path_params["run"])
    with opened.lock:
        return progress.as_json(progress.read(opened.run), url("run", opened.entry.id, "trial"))


def live(request: Request) -> Response:
    """The page asks for `live.json` again and again; without scripts it shows how things were."""
    entry = shelf_of(request).entry(request.path_params["run"])
    return shown(request, "live.html.j2", entry=entry, now=_now(request), source=url("run", entry.id, "live.json"))


def live_json(request: Request) -> Response:
    return JSONResponse(_now(request))


ROUTES = [Route("/run/{run}/live", live), Route("/run/{run}/live.json", live_json)]
