"""A run: its first screen, and below that its figures, charts, findings, trials, and people's notes about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dnsrig.browse import derived, drawings, notes
from dnsrig.browse.guard import access_of
from dnsrig.browse.security import MOST_BODY_BYTES
from dnsrig.browse.shared import Opened, shelf_of, shown, url
from dnsrig.comparison.summary import describe, main_metric
from dnsrig.errors import UsageError
from dnsrig.report import conditions, first, page
from dnsrig.report.charts import Chart

MOST_FIELDS = 10
"""Limit for a form; the form of a note has four."""


def run(request: Request) -> Response:
    shelf = shelf_of(request)
    entry = shelf.entry(request.path_params["run"])
    said = notes.read(shelf.index.directory(entry))
    if entry.damage.startswith("manifest.json"):
        return shown(request, "damaged.html.j2", entry=entry, notes=said)
    opened = shelf.opened(entry.id)
    with opened.lock:
        return shown(request, "run.html.j2", entry=entry, notes=said, **_context(opened))


def _context(opened: Opened) -> dict[str, Any]:
    run, reports = opened.run, opened.reports
    charts = drawings.charts(opened)
    if opened.first is None:
        opened.first = first.first(run, reports, charts, lambda name: drawings.first(opened, name))
    return {
        "first": opened.first,
        "run": run,
        "manifest": run.manifest,
        "axes": list(run.manifest.axes),
        "metric": describe(main_metric(run)),
        "answer": page.answer(run, reports),
        **page.said_of_answer(run),
        "run_wide": [report for report in reports if report.concerns(None)],
        "found": [report for report in reports if report.found],
        "unsure": [report for report in reports if report.unsure],
        "clear": [report for report in reports if report.is_clear],
        "charts": charts,
        "captions": lambda chart: _caption(opened, chart),
        "trials": run.trials,
        "damage": derived.damage_of(run),
        "conditions": conditions,
    }


def _caption(opened: Opened, chart: Chart) -> str:
    """Empty where it raises, which is noted."""
    said = [""]
    with opened.run.failures.isolate("chart", chart.id):
        said.append(chart.caption(opened.run.as_far_as_whole()))
    return said[-1]


def chart(request: Request) -> Response:
    """The drawings of one chart; `scale` is linear or log."""
    opened = shelf_of(request).opened(request.path_params["run"])
    scale = request.query_params.get("scale", "")
    wanted = [each for each in drawings.charts(opened) if each.id == request.path_params["chart"]]
    if not wanted or scale not in drawings.SCALES:
        raise HTTPException(404, "there is no such chart")
    return JSONResponse([drawing.as_json() for drawing in drawings.drawn(opened, wanted[0], scale)])


async def note(request: Request) -> Response:
    """Takes the form with note, tags and mark; all that this program writes."""
    body = await _body(request)
    try:
        form = {name: values[0] for name, values in parse_qs(body, max_num_fields=MOST_FIELDS).items()}
    except ValueError as error:
        raise HTTPException(400, f"more than {MOST_FIELDS} fields: this form is not ours") from error
    if not access_of(request).is_form_token(form.get("form_token", "")):
        raise HTTPException(403, "this form is not ours: load the page again")
    shelf = shelf_of(request)
    entry = await run_in_threadpool(shelf.entry, request.path_params["run"])
    try:
        made = notes.made(form.get("note", ""), form.get("tags", ""), form.get("baseline", "") == "yes")
        await run_in_threadpool(notes.write, shelf.index.directory(entry), made)
    except UsageError as error:
        raise HTTPException(422, f"{error.message}: {error.hint}") from error
    except OSError as error:
        raise HTTPException(403, f"the note cannot be written: {error.strerror}") from error
    shelf.index.changed()
    return RedirectResponse(url("run", entry.id), 303)


async def _body(request: Request) -> str:
    """At most as much as a form may have, whatever its header said."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY_BYTES:
            raise HTTPException(413, "too much for a form")
    return body.decode(errors="replace")


ROUTES = [
    Route("/run/{run}", run),
    Route("/run/{run}/notes", note, methods=["POST"]),
    Route("/run/{run}/chart/{chart}.json", chart),
]
