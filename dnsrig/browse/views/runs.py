"""All runs: filtered, and chosen for a comparison or a history."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dnsrig.browse.scan import Entry
from dnsrig.browse.shared import shelf_of, shown, url

PAGE_RUNS = 100
"""On a page: as many rows as are drawn at once without a wait."""


def runs(request: Request) -> Response:
    """The list; `q`, `experiment`, `server` and `tag` filter, `page` counts from 1."""
    entries = shelf_of(request).index.entries()
    asked = {name: request.query_params.get(name, "") for name in ("q", "experiment", "server", "tag")}
    found = [e for e in entries if e.matches(asked["q"], asked["experiment"], asked["server"], asked["tag"])]
    number = request.query_params.get("page", "1")
    page = max(1, int(number[:6]) if number.isdecimal() else 1)
    return shown(
        request,
        "runs.html.j2",
        root=str(shelf_of(request).index.root),
        entries=found[(page - 1) * PAGE_RUNS : page * PAGE_RUNS],
        matching=len(found),
        total=len(entries),
        damaged=sum(bool(entry.damage) for entry in entries),
        choices=_choices(entries),
        filters=asked,
        page=page,
        pages=max(1, -(-len(found) // PAGE_RUNS)),
    )


def chosen(request: Request) -> Response:
    """Leads from what was ticked in the list to its page, whose address can be sent."""
    query = request.query_params
    named, base = list(dict.fromkeys(query.getlist("run"))), query.get("base", "")
    if base:
        named = [base, *(run for run in named if run != base)]
    to = "history" if query.get("to") == "history" else "compare"
    asked = "&".join(url(run=run).removeprefix("/?") for run in named)
    return RedirectResponse(f"/{to}?{asked}", 303)


def _choices(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """What can be chosen from, by filter."""
    listed = list(entries)
    return {
        "experiment": sorted({entry.experiment for entry in listed if entry.experiment}),
        "server": sorted({server for entry in listed for server in entry.servers}),
        "tag": sorted({tag for entry in listed for tag in entry.tags}),
    }


ROUTES = [Route("/", runs), Route("/chosen", chosen)]
