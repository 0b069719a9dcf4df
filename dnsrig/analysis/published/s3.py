"""S3: long-distance AXFR versus database replication (L. Peltan, CZ.NIC, slides, 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dnsrig.analysis import statistics
from dnsrig.analysis.published import Figure, Measured, holds
from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import describe, main_metric, variant_row
from dnsrig.rundir import TrialSpec, Variant

CARRIERS = {"axfr": "axfr", "redis-replica": "replica", "redis-remote-load": "remote"}
"""The source's names -> those of the procedure."""
CELLS = [name + tls for name in CARRIERS for tls in ("", "+tls")]
RECORDS = 8_000_000
ZONES = 100_000
SAME_SIZE = 0.05
"""Share by which a size may differ from the source's and still be called the same."""
NO_CONGESTION_CONTROL = "The source does not state its congestion control."


@dataclass(frozen=True)
class Size:
    """How many of what the time is a matter of."""

    here: int
    there: int
    what: str
    """In the singular."""

    @property
    def same(self) -> bool:
        return abs(self.here - self.there) <= SAME_SIZE * self.there

    def sentence(self, here_s: float, there_s: float) -> str:
        """What one of them took, here and there: no extrapolation of either."""
        each = f"{1e6 * here_s / max(1, self.here):,.3g} µs a {self.what} against {1e6 * there_s / self.there:,.3g}"
        return f"{self.here:,} {self.what}s here, {self.there:,} in the source: {each}."


@holds("time", "long-distance-big-zone", *CELLS, run_of="long-distance")
def _large_zone(run: Run, figure: Figure) -> Iterator[Measured]:
    yield from _times(run, figure, "tld")


@holds("time", "long-distance-many-zones", *CELLS, run_of="long-distance")
def _many_zones(run: Run, figure: Figure) -> Iterator[Measured]:
    yield from _times(run, figure, "tiny-zones")


@holds("speedup", "workers", "2x workers", run_of="workers")
def _twice_the_workers(run: Run, figure: Figure) -> Iterator[Measured]:
    """Zones a second with twice the workers, over those without: medians of both, for each pair that the run has."""
    for variant in run.manifest.variants:
        twice = _with_twice_the_workers(run, variant)
        ratio = _ratio(run, variant, twice) if twice else None
        spread = None if ratio is None else statistics.spread([ratio])
        if twice is not None and spread is not None:
            few, many = variant.parameters["workers"], twice.parameters["workers"]
            rest = [f"{name} {value}" for name, value in variant.parameters.items() if name != "workers"]
            subject = ", ".join([f"{few} to {many} workers", *rest])
            yield Measured(figure, subject, spread, differs=["A ratio of medians, of zones a second."])


def _times(run: Run, figure: Figure, dataset: str) -> Iterator[Measured]:
    name, _, tls = figure.variant.partition("+")
    for variant in run.manifest.variants:
        spec = run.manifest.specs[variant.id]
        is_cell = spec.options.get("carrier") == CARRIERS[name] and spec.transfer.tls == bool(tls)
        if not is_cell or spec.dataset.kind != dataset or figure.value is None:
            continue
        row = variant_row(run, variant, describe(main_metric(run)))
        if row.spread is None or "server-failed" in row.outcomes:
            continue
        size = _size(spec)
        differs = [] if size.same else [size.sentence(row.spread.median, figure.value)]
        yield Measured(
            figure,
            _subject(spec),
            row.spread,
            "≥" if row.censored else "",
            comparable=size.same,
            differs=[*differs, NO_CONGESTION_CONTROL, *_link(spec)],
        )


def _size(spec: TrialSpec) -> Size:
    if spec.dataset.kind == "tld":
        return Size(spec.dataset.records, RECORDS, "record")
    return Size(spec.dataset.zones, ZONES, "zone")


def _subject(spec: TrialSpec) -> str:
    """The secondary, the database if there is one, the congestion control if it was asked for."""
    hosts = [spec.hosts[name] for name in ("secondary", "database") if name in spec.hosts]
    servers = " and ".join(f"{host.server.name} {host.server.version}" for host in hosts if host.server)
    congestion = spec.hosts["primary"].congestion if "primary" in spec.hosts else None
    return f"{servers}, {congestion}" if congestion else servers


def _link(spec: TrialSpec) -> list[str]:
    """Trials without the far link say so: nothing else would be as wrong to compare."""
    return [] if any(link.emulated for link in spec.links) else ["No far link was emulated here."]


def _with_twice_the_workers(run: Run, variant: Variant) -> Variant | None:
    workers = str(variant.parameters.get("workers", ""))
    if not workers.isdecimal():
        return None
    wanted = {**variant.parameters, "workers": str(2 * int(workers))}
    return next((other for other in run.manifest.variants if other.parameters == wanted), None)


def _ratio(run: Run, few: Variant, many: Variant) -> float | None:
    rates = []
    for variant in (few, many):
        found = [trial.record.metrics.get("zones_per_s") for trial in run.of_variant(variant.id)]
        spread = statistics.spread([rate for rate in found if rate is not None])
        if spread is None or not spread.median:
            return None
        rates.append(spread.median)
    return rates[1] / rates[0]
