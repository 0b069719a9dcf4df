"""S1: what zone transfers cost (P. Špaček, ISC, CSNOG slides, 2024)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dnsrig.comparison.published import Figure, Measured, holds, left_out, same_size
from dnsrig.comparison.summary import VariantRow, describe, main_metric, percent_of, variant_row
from dnsrig.rundir import Outcome, TrialSpec, Variant
from dnsrig.runs.profile import PORT_SEARCH_FRAMES, share
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats import statistics
from dnsrig.stats.statistics import Bound, PercentSpread, Spread

PORT_FAILURE = "no free port"
"""The kind of failure that drivers name so: connect() found none."""
PORT_SEARCH = (
    "The source has the share of all time in one place of a flame graph, connect() searching for a free port; here it is the "
    "share of CPU samples with a frame of that search anywhere on their stack."
)
RECORDS = 14_000_000
ZONES = 30_000
PORTS = "32768-60999"
BUCKETS = "tcp_max_tw_buckets"


@holds("transfer_delay", "smallest-zone", "log clock 1 s")
def _smallest_zone(run: Run, figure: Figure) -> Iterator[Measured]:
    """Time from exec to the last completion in the secondary's log."""
    for variant in run.manifest.variants:
        trials = _with_outcome(run, variant, "done")
        spread = _spread(trial.since_exec_s(trial.log.last_realtime_ns) for trial in trials if trial.log)
        if spread is not None:
            clock = f"The log's clock resolves {max(map(_log_resolution_s, trials)):g} s here, 1 s in the source."
            yield Measured(figure, _server(run, variant), spread, differs=[clock])


@holds("time", "tld-transfer", "tcp")
def _tld_time(run: Run, figure: Figure) -> Iterator[Measured]:
    """Time of the plain AXFR; at another size, beside what a record took."""
    for variant in _with_transport(run, "tcp"):
        sign, spread = _time_s(run, variant)
        records = run.manifest.specs[variant.id].dataset.records
        if spread is None:
            yield from _without(run, variant, figure)
            continue
        if figure.value is None:
            continue
        same = same_size(records, RECORDS)
        here, there = 1e9 * spread.median / max(1, records), 1e9 * figure.value / RECORDS
        size = f"{records:,} records here, {RECORDS:,} in the source: {here:,.0f} ns a record against {there:,.0f}."
        yield Measured(figure, _server(run, variant), spread, sign, comparable=same, differs=[size])


@holds("relative_time", "tld-transfer", "tcp", "tcp+tsig", "xot", "xot+tsig")
def _tld_relative(run: Run, figure: Figure) -> Iterator[Measured]:
    for variant in _with_transport(run, figure.variant):
        sign, percent = _percent(run, variant, _with(run, variant, "transport", "tcp"))
        if percent is not None:
            records = run.manifest.specs[variant.id].dataset.records
            differs = [] if same_size(records, RECORDS) else [f"{records:,} records here, {RECORDS:,} in the source."]
            yield Measured(figure, _server(run, variant), percent, sign, differs=differs)


@holds("time", "many-zones", "30k zones")
def _many_zones_time(run: Run, figure: Figure) -> Iterator[Measured]:
    for variant in _of_30k_zones(run):
        sign, spread = _time_s(run, variant)
        if spread is None:
            yield from _without(run, variant, figure)
            continue
        yield Measured(figure, _server(run, variant), spread, sign, differs=_settings(run, variant))


@holds("first_connect_failure", "many-zones", "30k zones")
def _first_failure(run: Run, figure: Figure) -> Iterator[Measured]:
    """Time from exec to the first line in the log about a lack of free ports."""
    for variant in _of_30k_zones(run):
        trials = [t for t in _with_outcome(run, variant, "done", "timeout") if _first_failure_ns(t) is not None]
        spread = _spread(trial.since_exec_s(_first_failure_ns(trial)) for trial in trials)
        if spread is not None:
            clock = f"Known to ±{max(map(_log_resolution_s, trials)):g} s, as the log's clock is."
            yield Measured(figure, _server(run, variant), spread, differs=[clock, *_settings(run, variant)])


@holds("cpu_share_of_hottest_frame", "many-zones", "30k zones")
def _port_search(run: Run, figure: Figure) -> Iterator[Measured]:
    """Samples of the server's CPU inside the kernel's search for a free port."""
    for variant in _of_30k_zones(run):
        trials = _with_outcome(run, variant, "done", "timeout")
        shares = [share(trial.stacks, PORT_SEARCH_FRAMES) for trial in trials]
        spread = _spread(None if found is None else 100 * found for found in shares)
        if spread is not None:
            yield Measured(figure, _server(run, variant), spread, differs=[PORT_SEARCH, *_settings(run, variant)])


@holds("relative_time", "many-zones", f"{BUCKETS}=1000", f"{BUCKETS}=262144", run_of="time-wait")
def _fewer_buckets(run: Run, figure: Figure) -> Iterator[Measured]:
    """The experiment's `fewer-buckets` against its `defaults`."""
    host = "fewer-buckets" if figure.variant == f"{BUCKETS}=1000" else "defaults"
    for variant in run.manifest.variants:
        if variant.parameters.get("host") != host:
            continue
        sign, percent = _percent(run, variant, _with(run, variant, "host", "defaults"))
        if percent is not None:
            zones = run.manifest.specs[variant.id].dataset.zones
            same = same_size(zones, ZONES)
            size = [] if same else [f"{zones:,} zones here, {ZONES:,} in the source."]
            yield Measured(
                figure, _server(run, variant), percent, sign, same, [*size, *_settings(run, variant, figure.variant)]
            )


def _with_outcome(run: Run, variant: Variant, *outcomes: Outcome) -> list[Trial]:
    return [trial for trial in run.of_variant(variant.id) if trial.record.outcome in outcomes]


def _row(run: Run, variant: Variant) -> VariantRow:
    return variant_row(run, variant, describe(main_metric(run)))


def _time_s(run: Run, variant: Variant) -> tuple[Bound, Spread | None]:
    """The main metric's spread; nothing where a server failed, for the other repeats are a biased choice."""
    row = _row(run, variant)
    return "≥" if row.samples.censored else "", None if "server-failed" in row.outcomes else row.samples.spread


def _without(run: Run, variant: Variant, figure: Figure) -> Iterator[Measured]:
    """What replaces a time that is missing, if any repeat was tried."""
    row = _row(run, variant)
    if row.outcomes:
        biased = ["The others are a biased choice."] if row.samples.spread is not None else []
        yield Measured(figure, _server(run, variant), None, comparable=False, differs=[*left_out(row), *biased])


def _percent(run: Run, variant: Variant, baseline: Variant | None) -> tuple[Bound, PercentSpread | None]:
    found = percent_of(_row(run, variant), _row(run, baseline)) if baseline else None
    return found or ("", None)


def _with_transport(run: Run, transport: str) -> list[Variant]:
    return [v for v in run.manifest.variants if run.manifest.specs[v.id].transfer.transport == transport]


def _of_30k_zones(run: Run) -> list[Variant]:
    """Whether the zones are as in the source: listed in the secondary's configuration, fetched over TCP."""

    def fits(spec: TrialSpec) -> bool:
        transfer = spec.transfer
        return spec.dataset.zones == ZONES and transfer.transport == "tcp" and transfer.provisioning == "static"

    return [variant for variant in run.manifest.variants if fits(run.manifest.specs[variant.id])]


def _server(run: Run, variant: Variant) -> str:
    """The server under test with its version, and what else sets the variant apart from others of that server."""
    spec = run.manifest.specs[variant.id]
    server = spec.server
    name = f"{server.name} {server.version}" if server else variant.label
    shown = {"server", "host", "transport"}
    varying = [axis for axis, values in run.manifest.axes.items() if len(values) > 1 and axis not in shown]
    rest = [f"{axis} {variant.parameters[axis]}" for axis in varying if axis in variant.parameters]
    return ", ".join([name, *rest])


def _settings(run: Run, variant: Variant, published: str = "") -> list[str]:
    """The settings of the kernel that decide when ports run out, where the experiment has others than the source; and
    what else it sets, of which the source says nothing."""
    spec = run.manifest.specs[variant.id]
    host = spec.hosts.get(spec.subject)
    sysctls, settings = (host.sysctls, host.settings) if host else ({}, {})
    ports = "-".join(sysctls.get("net.ipv4.ip_local_port_range", "").split())
    buckets = sysctls.get(f"net.ipv4.{BUCKETS}", "")
    found = [f"Ports {ports} here, {PORTS} in the source."] if ports and ports != PORTS else []
    if buckets and published and published != f"{BUCKETS}={buckets}":
        found.append(f"{BUCKETS} = {buckets} here, {published.partition('=')[2]} in the source.")
    if settings:
        given = ", ".join(f"{name} = {value}" for name, value in settings.items())
        found.append(
            f"The {spec.subject}'s own limits are lifted here ({given}); the source does not state its settings."
        )
    if spec.storage == "memory":
        found.append("Servers store in memory here; the source does not state where.")
    return found


def _with(run: Run, variant: Variant, axis: str, value: str) -> Variant | None:
    """The variant that differs from ``variant`` in nothing but ``axis``."""
    wanted = variant.parameters | {axis: value}
    return next((other for other in run.manifest.variants if other.parameters == wanted), None)


def _first_failure_ns(trial: Trial) -> int | None:
    return trial.log.first_failure_realtime_ns.get(PORT_FAILURE) if trial.log else None


def _log_resolution_s(trial: Trial) -> float:
    return trial.log.resolution_ns / 1e9 if trial.log else 0.0


def _spread(values: Iterable[float | None]) -> Spread | None:
    return statistics.spread([value for value in values if value is not None])
