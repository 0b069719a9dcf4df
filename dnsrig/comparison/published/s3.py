"""S3: long-distance AXFR versus database replication (L. Peltan, CZ.NIC, slides, 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dnsrig.comparison.published import Beside, Figure, Measured, beside, figures, holds, left_out, same_size
from dnsrig.comparison.summary import describe, main_metric, variant_row
from dnsrig.rundir import PathSpec, TrialSpec, Variant
from dnsrig.runs.run import Run
from dnsrig.stats import statistics
from dnsrig.text import digits

SOURCE, METRIC = "S3", "time"
CASES = {"tld": "long-distance-big-zone", "tiny-zones": "long-distance-many-zones"}
"""Kinds of datasets -> the source's two cases."""
CARRIERS = {"axfr": "axfr", "redis-replica": "replica", "redis-remote-load": "remote"}
"""The source's names -> the procedure's names."""
CELLS = [name + tls for name in CARRIERS for tls in ("", "+tls")]
RECORDS = 8_000_000
ZONES = 100_000
NO_CONGESTION_CONTROL = "The source does not state its congestion control."
SERVERS = ("knot", "redis")
REPEAT_BY_REPEAT = "A ratio of zones a second, repeat by repeat."
RATE_MBIT, DELAY_MS, JITTER_MS, LOSS_PERCENT = 20.0, 125.0, 50.0, 0.1
"""Properties of the source's link, in both directions."""


@dataclass(frozen=True)
class Size:
    """How many of what the time is a matter of."""

    here: int
    there: int
    what: str
    """In the singular."""

    @property
    def same(self) -> bool:
        return same_size(self.here, self.there)

    def sentence(self, here_s: float, there_s: float) -> str:
        """What one of them took, here and there: no extrapolation of either."""
        each = (
            f"{digits(1e6 * here_s / max(1, self.here))} µs a {self.what} against {digits(1e6 * there_s / self.there)}"
        )
        return f"{self.here:,} {self.what}s here, {self.there:,} in the source: {each}."

    def extrapolated(self, here_s: float) -> float:
        """``here_s`` as it would be at the source's size, by both of its laws: a time grows as the records do, or as
        the zones."""
        return here_s * self.there / max(1, self.here)


@holds(METRIC, CASES["tld"], *CELLS, run_of="long-distance")
@holds(METRIC, CASES["tiny-zones"], *CELLS, run_of="long-distance")
def _times(run: Run, figure: Figure) -> Iterator[Measured]:
    for variant in run.manifest.variants:
        spec = run.manifest.specs[variant.id]
        if figure_of(spec) != figure or figure.value is None:
            continue
        row = variant_row(run, variant, describe(main_metric(run)))
        if not row.outcomes:
            continue
        found = size(spec)
        elsewhere = [*path(spec), *_servers(spec)]
        differs = (
            []
            if found.same or row.samples.spread is None
            else [found.sentence(row.samples.spread.median, figure.value)]
        )
        yield Measured(
            figure,
            _subject(spec),
            row.samples.spread,
            "≥" if row.samples.censored else "",
            comparable=found.same and not elsewhere and "server-failed" not in row.outcomes,
            differs=[*differs, *left_out(row), *elsewhere, NO_CONGESTION_CONTROL],
        )


@beside
def _carriers(run: Run) -> Iterator[Beside]:
    """The figure of each variant's carrier, if servers and link are the source's; the size may differ."""
    for variant in run.manifest.variants:
        spec = run.manifest.specs[variant.id]
        figure = figure_of(spec)
        if figure is not None and not path(spec) and not _servers(spec):
            found = size(spec)
            yield Beside(variant, main_metric(run), figure, None if found.same else found.extrapolated)


@holds("speedup", "workers", "2x workers", run_of="workers")
def _twice_the_workers(run: Run, figure: Figure) -> Iterator[Measured]:
    """Zones a second with twice the workers, over those without, for each pair that the run has."""
    for variant in run.manifest.variants:
        twice = _with_twice_the_workers(run, variant)
        spread = statistics.spread(_ratios(run, variant, twice)) if twice else None
        if twice is not None and spread is not None:
            few, many = variant.parameters["workers"], twice.parameters["workers"]
            rest = [f"{name} {value}" for name, value in variant.parameters.items() if name != "workers"]
            subject = ", ".join([f"{few} to {many} workers", *rest])
            yield Measured(figure, subject, spread, differs=[REPEAT_BY_REPEAT, *path(run.manifest.specs[variant.id])])


def figure_of(spec: TrialSpec) -> Figure | None:
    """The published time of the carrier and the case of ``spec``."""
    carrier = next((name for name, ours in CARRIERS.items() if ours == spec.options.get("carrier")), None)
    case = CASES.get(spec.dataset.kind)
    if carrier is None or case is None:
        return None
    wanted = (SOURCE, case, carrier + ("+tls" if spec.transfer.tls else ""), METRIC)
    return next((f for f in figures() if (f.source.id, f.experiment, f.variant, f.metric) == wanted), None)


def size(spec: TrialSpec) -> Size:
    if spec.dataset.kind == "tld":
        return Size(spec.dataset.records, RECORDS, "record")
    return Size(spec.dataset.zones, ZONES, "zone")


def path(spec: TrialSpec) -> list[str]:
    """A sentence for what makes the link between the sites another than the source's. Nothing else would be as wrong to
    compare."""
    link = next((link for link in spec.links if link.emulated), None)
    if link is None:
        return ["No far link was emulated here."]
    ways = [way or PathSpec() for way in (link.forward, link.reverse)]
    if all(_is_the_sources(way) for way in ways):
        return []
    forward, reverse = (_described(way) for way in ways)
    return [f"The far link here has {forward}" + ("." if forward == reverse else f"; back {reverse}.")]


def _is_the_sources(way: PathSpec) -> bool:
    found = (way.rate_mbit, way.delay_ms, way.jitter_ms, way.loss_percent)
    return found == (RATE_MBIT, DELAY_MS, JITTER_MS, LOSS_PERCENT) and way.ordered and not way.loss_over_time


def _described(way: PathSpec) -> str:
    rate = "no limit of its rate" if way.rate_mbit is None else f"{way.rate_mbit:g} Mbit/s"
    loss = "a loss that changes" if way.loss_over_time else f"{way.loss_percent:g} % loss"
    order = "" if way.ordered else " out of order"
    return f"{rate}, {way.delay_ms:g} ± {way.jitter_ms:g} ms{order} and {loss}"


def _servers(spec: TrialSpec) -> list[str]:
    """A sentence if a server is not one of the source's."""
    kinds = [host.server.kind for host in spec.hosts.values() if host.server is not None]
    return [] if set(kinds) <= set(SERVERS) else ["The source had Knot DNS with Redis."]


def _subject(spec: TrialSpec) -> str:
    """The secondary, the database if there is one, the congestion control if it was asked for."""
    hosts = [spec.hosts[name] for name in ("secondary", "database") if name in spec.hosts]
    servers = " and ".join(f"{host.server.name} {host.server.version}" for host in hosts if host.server)
    congestion = spec.hosts["primary"].congestion if "primary" in spec.hosts else None
    return f"{servers}, {congestion}" if congestion else servers


def _with_twice_the_workers(run: Run, variant: Variant) -> Variant | None:
    workers = str(variant.parameters.get("workers", ""))
    if not workers.isdecimal():
        return None
    wanted = {**variant.parameters, "workers": str(2 * int(workers))}
    return next((other for other in run.manifest.variants if other.parameters == wanted), None)


def _ratios(run: Run, few: Variant, many: Variant) -> list[float]:
    """One for each repeat that counts with both: the same repeat of all variants meets the same losses."""
    metric = describe("zones_per_s")
    rates = [
        {
            trial.record.spec.repeat: rate
            for trial in run.of_variant(variant.id)
            if metric.counts(trial) and (rate := trial.value(metric.name))
        }
        for variant in (few, many)
    ]
    return [rates[1][repeat] / rate for repeat, rate in rates[0].items() if repeat in rates[1]]
