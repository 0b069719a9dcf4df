"""Findings, each with the series that show it; and the conditions of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dnsrig.browse.shared import Opened, shelf_of, shown, url
from dnsrig.report import conditions, ran
from dnsrig.report.gather import Entry, TrapReport


@dataclass(frozen=True)
class Proof:
    """Where the series of an entry are drawn: its first repeat, on the time axis of that trial."""

    trial: str
    """Address of its page."""
    axis: str
    """Address of its panels."""
    what: str


def findings(request: Request) -> Response:
    opened = shelf_of(request).opened(request.path_params["run"])
    with opened.lock:
        found = [report for report in opened.reports if report.found]
        proofs = dict(_proofs(opened, found))
        return shown(
            request,
            "proofs.html.j2",
            entry=opened.entry,
            manifest=opened.run.manifest,
            found=found,
            proof=lambda entry: proofs.get(id(entry)),
            conditions=conditions,
        )


def _proofs(opened: Opened, found: list[TrapReport]) -> Iterator[tuple[int, Proof]]:
    """The proof of each entry that names series of a trial."""
    for entry in (entry for report in found for entry in report.found):
        repeat = _repeat(opened, entry)
        if entry.series and entry.variant is not None and repeat is not None:
            where = ("run", opened.entry.id, "trial", entry.variant, repeat)
            asked = "&".join(url(series=name).removeprefix("/?") for name in entry.series)
            proof = Proof(
                f"{url(*where)}?{asked}", f"{url(*where, 'axis.json')}?only=series&{asked}", f"repeat {repeat}"
            )
            yield id(entry), proof


def _repeat(opened: Opened, entry: Entry) -> int | None:
    """The repeat that the entry describes, or else the first one."""
    told = [finding.repeat for finding in entry.findings if finding.repeat is not None]
    there = [trial.record.spec.repeat for trial in opened.run.of_variant(entry.variant or "")]
    return next((repeat for repeat in [*told, *there] if repeat in there), None)


def shown_conditions(request: Request) -> Response:
    """The conditions under which the trials of a run were measured."""
    opened = shelf_of(request).opened(request.path_params["run"])
    with opened.lock:
        run = opened.run
        columns = conditions.by_machine(run.manifest)
        return shown(
            request,
            "conditions.html.j2",
            entry=opened.entry,
            manifest=run.manifest,
            facts=conditions.alike(columns),
            differing=conditions.differing(columns),
            links=conditions.links(run),
            instruments=conditions.instruments(run),
            around=conditions.around(run),
            servers=ran.servers(run),
            document=conditions.flatten(run.manifest.document),
            conditions=conditions,
        )


ROUTES = [Route("/run/{run}/findings", findings), Route("/run/{run}/conditions", shown_conditions)]
