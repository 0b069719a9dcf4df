"""A metric over the versions of a server, from the runs chosen: as `dnsrig history` draws it."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dnsrig.browse import drawings
from dnsrig.browse.shared import refuse, shown, url
from dnsrig.browse.views.compare import named
from dnsrig.comparison.history import History, history
from dnsrig.errors import DnsrigError
from dnsrig.report.charts import Drawing
from dnsrig.report.history import chart, table

MOST_RUNS = 200
MOST_METRICS = 12


def _history(request: Request) -> tuple[History, dict[int, str]]:
    """What the address asks for, and the id of each run by its identity. Raises HTTPException."""
    opened = named(request, MOST_RUNS)
    metrics = [name for name in request.query_params.getlist("metric")[:MOST_METRICS] if name]
    try:
        found = history([each.run for each in opened], metrics=metrics)
    except DnsrigError as error:
        refuse(error)
    return found, {id(each.run): each.entry.id for each in opened}


def page(request: Request) -> Response:
    """`run`, several times; `metric`, several times, by default the main one."""
    found, ids = _history(request)
    query = request.url.query
    return shown(
        request,
        "versions.html.j2",
        history=found,
        table=table,
        caption=chart.CAPTION,
        source=lambda metric: f"/history/{url(metric.name)[1:]}.json?{query}",
        trial_at=lambda value: url("run", ids[id(value.run)], "trial", value.trial.key.variant, value.trial.key.repeat),
        run_at=lambda run: url("run", ids[id(run)]),
    )


def chart_json(request: Request) -> Response:
    found, _ = _history(request)
    for metric, series in found.metrics:
        if metric.name == request.path_params["metric"]:
            drawing = Drawing("history", chart.draw(series))
            return JSONResponse([drawings.answering(drawing, _scale(request)).as_json()])
    raise HTTPException(404, "the history does not have this metric")


def _scale(request: Request) -> str:
    scale = request.query_params.get("scale", "")
    return scale if scale in drawings.SCALES else ""


ROUTES = [Route("/history", page), Route("/history/{metric}.json", chart_json)]
