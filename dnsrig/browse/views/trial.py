"""A trial on one axis of time, its phases, the logs of its servers, its profile."""

from __future__ import annotations

import math

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dnsrig.browse import axis, derived, drawings
from dnsrig.browse.logs import logs
from dnsrig.browse.shared import Opened, shelf_of, shown, url
from dnsrig.comparison.summary import describe
from dnsrig.report.charts import _split, flame_graph
from dnsrig.runs.rows import DamagedFile
from dnsrig.runs.trial import Trial


def trial(request: Request) -> Response:
    """`from` and `to`: seconds; `series`: host/source/metric, several times; `q`: words in lines of logs."""
    opened, found = _asked(request)
    spec = found.record.spec
    words = request.query_params.get("q", "")
    with opened.lock:
        damage = derived.damage(found)
        result = None if damage else found.result
        repeats = [each.record.spec.repeat for each in opened.run.of_variant(spec.variant.id)]
    where = ("run", opened.entry.id, "trial", spec.variant.id, spec.repeat)
    query = {name: request.query_params.get(name, "") for name in ("from", "to")}
    return shown(
        request,
        "trial.html.j2",
        entry=opened.entry,
        trial=found,
        spec=spec,
        metric=describe(spec.main_metric),
        result=result,
        damage=damage,
        repeats=repeats,
        since=_split.since(found),
        has_profile=bool(found.record.profiles) or any(found.directory.glob("profile-*.folded")),
        axis_at=url(*where, "axis.json") + _series_of(request),
        profile_at=url(*where, "profile.json"),
        range=query,
        words=words,
        logs=list(logs(found, words)),
    )


def _series_of(request: Request) -> str:
    asked = request.query_params.getlist("series")[: axis.MOST_SERIES]
    return "?" + "&".join(url(series=each).removeprefix("/?") for each in asked) if asked else ""


def _asked(request: Request) -> tuple[Opened, Trial]:
    """The trial that the address names, among those that the manifest does."""
    opened = shelf_of(request).opened(request.path_params["run"])
    variant, repeat = request.path_params["variant"], request.path_params["repeat"]
    for each in opened.run.trials:
        if each.record.spec.variant.id == variant and str(each.record.spec.repeat) == repeat:
            return opened, each
    raise HTTPException(404, "there is no such trial; it may not be finished, or its record cannot be read")


def axis_json(request: Request) -> Response:
    """The panels, as far as the trial's files are whole."""
    opened, found = _asked(request)
    within = axis.of_trial(found, _seconds(request, "from"), _seconds(request, "to"))
    if within is None:
        raise HTTPException(422, "the trial has no phases")
    series = [tuple(name.split("/", 2)) for name in request.query_params.getlist("series")]
    asked = [(each[0], each[1], each[2]) for each in series if len(each) == 3]
    only = request.query_params.get("only") == "series"
    with opened.lock:
        drawn = drawings.answering(axis.drawing(found.as_far_as_whole(), within, asked, nothing_else=only))
    return JSONResponse([drawn.as_json() | {"range": within.extent}])


def _seconds(request: Request, name: str) -> float | None:
    try:
        found = float(request.query_params.get(name, ""))
    except ValueError:
        return None
    return found if math.isfinite(found) and abs(found) < 1e9 else None


def profile_json(request: Request) -> Response:
    """The flame graph of the server under test; no drawing without samples."""
    opened, found = _asked(request)
    with opened.lock:
        try:
            drawn = [drawings.answering(flame_graph.of_trial(found))] if found.stacks else []
        except DamagedFile as error:
            raise HTTPException(422, error.message) from error
    return JSONResponse([each.as_json() for each in drawn])


ROUTES = [
    Route("/run/{run}/trial/{variant}/{repeat}", trial),
    Route("/run/{run}/trial/{variant}/{repeat}/axis.json", axis_json),
    Route("/run/{run}/trial/{variant}/{repeat}/profile.json", profile_json),
]
