"""One trial on one axis of time: zones done, connections, TIME_WAIT and CPU, so that causes stand under effects."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from dnsrig.comparison.summary import describe
from dnsrig.report import figures
from dnsrig.report.charts import MAIN, Drawing, _series, _split
from dnsrig.report.charts._over_time import Panel, Picture
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "What happened during a trial?"
ORDER = 30
METRICS = (MAIN, "connections_opened", "time_wait_peak", "secondary_cpu_s", "primary_cpu_s")

MOST_VARIANTS = 12
"""With more, only the median repeat of each is drawn: the page stays small enough to mail."""


def applies(run: Run) -> bool:
    return any(not trial.samples.is_empty() or not trial.zones.is_empty() for trial in run.trials)


def caption(run: Run) -> str:
    which = (
        "the fastest, the median and the slowest repeat"
        if len(run.manifest.variants) <= MOST_VARIANTS
        else "only the median repeat, because there are many variants"
    )
    return (
        f"For each variant {which}. Seconds count from the start of the {_split.subject(run)}. Look for a plateau in the zones done,"
        " and below it for what was full, busy or idle at that time. CPU time is in percent of one core. Each line has at most"
        f" {_series.MOST_POINTS} points: a rate is the mean between two points, any other value the largest between them."
    )


def draw(run: Run) -> list[Drawing]:
    first_open = _slowest_variant(run)
    drawings = []
    for variant in run.manifest.variants:
        chosen = _chosen(run, run.of_variant(variant.id))
        until_s = max((_split.elapsed_s(trial) or 0.0 for _, trial in chosen), default=0.0)
        for role, trial in chosen:
            title = f"Repeat {trial.record.spec.repeat}, {role}: {_result(trial)}"
            name = f"{variant.id}-{trial.record.spec.repeat:02d}"
            panels, lines, since = _panels(trial), list(_hosts(trial)), _split.since(trial)
            if panels:
                picture = Picture(name, panels, lines, since, title, variant.label, variant.id == first_open, until_s)
                drawings.append(picture.drawing())
    return drawings


def _chosen(run: Run, trials: list[Trial]) -> list[tuple[str, Trial]]:
    """The fastest, the median and the slowest."""
    ranked = _split.best_first(trials)
    roles: dict[int, str] = {}
    if ranked:
        roles = {(len(ranked) - 1) // 2: "the median"}
        if len(run.manifest.variants) <= MOST_VARIANTS and len(ranked) > 1:
            roles = {0: "the fastest", len(ranked) - 1: "the slowest"} | (roles if len(ranked) > 2 else {})
    return [(roles[index], ranked[index]) for index in sorted(roles)]


def _result(trial: Trial) -> str:
    if trial.record.outcome == "done":
        return figures.figure(trial.result, describe(trial.record.spec.main_metric).unit)
    return f"{trial.record.outcome}, {trial.record.reason}" if trial.record.reason else trial.record.outcome


def _slowest_variant(run: Run) -> str | None:
    """The one variant unfolded at first: there is most to see where most time went."""
    took = [(_split.elapsed_s(trial) or 0.0, trial.record.spec.variant.id) for trial in run.trials]
    return max(took)[1] if took else None


def _panels(trial: Trial) -> list[Panel]:
    """The panels that have data."""
    hosts, spec = _hosts(trial), trial.record.spec

    def lines(read: Callable[[str], pl.DataFrame]) -> dict[str, pl.DataFrame]:
        return {name: _series.total([read(host) for host in members]) for name, members in hosts.items()}

    transfers = {
        "TCP connections opened, a second": lines(lambda h: _series.rate(trial, h, "tcp", "active_opens")),
        "Sockets in TIME_WAIT": lines(lambda h: _series.gauge(trial, h, "sockets", "tcp_time_wait")),
    }
    contents = {
        **({"Zones done": {"": _series.zones_done(trial)}} if describe(spec.main_metric).unit == "s" else {}),
        **(transfers if spec.primaries else {}),
        "CPU, % of one core": lines(lambda h: _percent(_series.rate(trial, h, "cgroup", "cpu_usage_us"))),
    }
    return [Panel(title, rows) for title, lines in contents.items() if not (rows := _joined(lines)).is_empty()]


def _hosts(trial: Trial) -> dict[str, list[str]]:
    """Name of a line -> its hosts: the server under test first, for it gets the unbroken line; primaries together, and
    so are generators."""
    spec = trial.record.spec
    primaries, generators = spec.primaries, [host for host in spec.hosts if spec.hosts[host].asks]
    others = [host for host in spec.hosts if host not in (spec.subject, *primaries, *generators)]
    return (
        {spec.subject: [spec.subject]}
        | _together(primaries, "primaries")
        | _together(generators, "generators")
        | {host: [host] for host in others}
    )


def _together(hosts: list[str], what: str) -> dict[str, list[str]]:
    return {hosts[0] if len(hosts) == 1 else f"{len(hosts)} {what}": hosts} if hosts else {}


def _percent(rows: pl.DataFrame) -> pl.DataFrame:
    """Microseconds of CPU a second, as percent of one core."""
    return rows.with_columns(pl.col("value") / 1e4)


def _joined(lines: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Series by host, one below the other, rounded to what a screen shows."""
    frames = [rows.with_columns(line=pl.lit(host)) for host, rows in lines.items()]
    return pl.concat(frames).with_columns(pl.col("time_s").round(3), pl.col("value").round_sig_figs(5))
