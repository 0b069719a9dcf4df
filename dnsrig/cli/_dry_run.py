"""What `dnsrig run --dry-run` prints: matrix, order of trials, an estimate of the time. Needs neither root nor network."""

from __future__ import annotations

import secrets

from rich.console import Console
from rich.table import Table

from dnsrig import datasets
from dnsrig.experiment import estimate, model, plan, runner
from dnsrig.rundir import DatasetSpec, ServerSource, TrialSpec
from dnsrig.servers import sources

ORDER_SHOWN = 24


def show(request: runner.Request) -> None:
    document, points, repeats = runner.draft(request)
    specs = [_provisional(request.experiment, point) for point in points]
    seed = request.seed if request.seed is not None else secrets.randbelow(1 << 32)
    order = plan.order([spec.variant.id for spec in specs], repeats, seed)
    console = Console(highlight=False)
    console.print(f"{document.title}: {document.question}")
    table = Table(title=f"matrix: {len(points)} variants × {repeats} repeats = {len(order)} trials")
    for label in model.labels(document) or ["variant"]:
        table.add_column(label)
    table.add_column("expected a trial", justify="right")
    table.add_column("limit", justify="right")
    for spec in specs:
        each = estimate.of_trial(spec)
        table.add_row(
            *map(str, spec.variant.parameters.values() or ["only"]), _time(each.expected_s), _time(spec.limit_s)
        )
    console.print(table)
    labels = {spec.variant.id: spec.variant.label for spec in specs}
    console.print(f"order (seed {seed}):")
    for number, key in enumerate(order[:ORDER_SHOWN], start=1):
        console.print(f"  {number:3d}. {labels[key.variant]} repeat {key.repeat}", markup=False)
    if len(order) > ORDER_SHOWN:
        console.print(f"  … and {len(order) - ORDER_SHOWN} more")
    whole = estimate.of_run(specs)
    console.print(f"time: about {_time(whole.expected_s * repeats)}, at most {_time(whole.at_most_s * repeats)}")
    for name in plan.wanted_servers(points):
        if sources.find(name) is None:
            console.print(f"{name} is not installed yet: its packages would be fetched first")


def _provisional(experiment: str, point: model.Point) -> TrialSpec:
    """The spec as it would be, without installing a server or making a dataset."""
    servers = {}
    for name in plan.wanted_servers([point]):
        kind, source = sources.parse(name)
        servers[name] = ServerSource(kind=kind.kind, source=source, version="not resolved")
    kind_name, values = plan.wanted_dataset(point.document)
    zones, records = datasets.size(kind_name, values)
    dataset = DatasetSpec(kind=kind_name, path="", zones=zones, records=records, serial=0, parameters=values)
    return plan.spec("dry-run", experiment, point, servers, dataset, [0, 1])


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
