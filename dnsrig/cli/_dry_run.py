"""The output of `dnsrig run --dry-run`: matrix, order of trials, an estimate of the time. It needs neither root nor
network."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

from rich.console import Console

from dnsrig.cli import _console
from dnsrig.comparison.summary import comparisons_planned
from dnsrig.experiment import estimate, model, own_servers, preparation, trial_specs
from dnsrig.report.fitting import FittingTable
from dnsrig.rundir import TrialKey, TrialSpec, Variant
from dnsrig.servers import sources
from dnsrig.stats import significance
from dnsrig.text import digits, visible

ORDER_SHOWN = 24


def show(request: preparation.Request) -> None:
    drafted = preparation.draft(request)
    document, points, specs, repeats = drafted.document, drafted.points, drafted.specs, drafted.repeats
    machines = max(1, len(request.where.machines))
    seed = request.seed if request.seed is not None else secrets.randbelow(1 << 32)
    order = trial_specs.order([spec.variant.id for spec in specs], repeats, seed)
    console = _console.out()
    console.print(visible(f"{document.title}: {document.question}"))
    axes = [*map(visible, model.labels(document) or ["variant"])]
    console.print(
        FittingTable(
            title=f"matrix: {len(points)} variants × {repeats} repeats = {len(order)} trials",
            columns=[*axes, "expected a trial", "limit"],
            axes=len(axes),
            rows=[_row(spec) for spec in specs],
        )
    )
    if machines > 1:
        names = ", ".join(machine.name for machine in request.where.machines)
        console.print(f"{names} take turns, so that each executes {repeats // machines} rounds")
    console.print(f"order (seed {seed}):")
    show_order(console, order, [spec.variant for spec in specs])
    show_time(console, specs * (repeats // machines))
    comparisons = comparisons_planned([spec.variant for spec in specs], document.baseline)
    if comparisons:
        console.print(
            f"chance: {significance.reach(repeats, repeats, comparisons, machines=machines)} (after Holm)", markup=False
        )
    if any(host.settings for spec in specs for host in spec.hosts.values()):
        console.print(
            "settings of servers are read when the servers start: the first trial shows whether they are correct"
        )
    own = own_servers.installable(points)
    for name in trial_specs.wanted_servers(points):
        if sources.look(name, own) is None:
            console.print(f"{name} is not installed yet: {sources.how(name, own)}")


def _row(spec: TrialSpec) -> list[str]:
    values = [visible(str(value)) for value in spec.variant.parameters.values()] or ["only"]
    return [*values, _time(estimate.of_trial(spec).expected_s), _time(spec.limit_s)]


def show_order(console: Console, order: Sequence[TrialKey], variants: Iterable[Variant]) -> None:
    labels = {variant.id: variant.label for variant in variants}
    for number, key in enumerate(order[:ORDER_SHOWN], start=1):
        console.print(visible(f"  {number:3d}. {labels[key.variant]} repeat {key.repeat}"))
    if len(order) > ORDER_SHOWN:
        console.print(f"  … and {len(order) - ORDER_SHOWN} more")


def show_time(console: Console, specs: list[TrialSpec]) -> None:
    """Print the time that the trials with ``specs`` take."""
    whole = estimate.of_run(specs)
    console.print(
        f"time: about {_time(whole.expected_s)} on a machine that does nothing else; {_time(whole.at_most_s)} if every"
        " trial reaches its limit; installing, building and making data first takes extra time"
    )


def _time(seconds: float) -> str:
    """Seconds below 600 s, otherwise minutes or hours with as many digits as they need."""
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{digits(seconds / 60)} min" if seconds < 7200 else f"{digits(seconds / 3600)} h"
