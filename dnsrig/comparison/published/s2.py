"""S2: in search of latency (P. Špaček, ISC, slides, 2023)."""

from __future__ import annotations

from collections.abc import Iterator

from dnsrig.comparison.published import Figure, Measured, holds, same_size
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats import statistics

PERCENT = 99.98
QPS = 100_000
ZONES = 100_000
ECHO = (
    "The instrument and its reflector are dnsrig's own here, dnsperf and another echo server in the source; from the due "
    "time here, from sending there."
)


@holds("p99.98_latency", "echo-baseline", "dnsperf vs echo")
def _echo(run: Run, figure: Figure) -> Iterator[Measured]:
    """The instrument's floor over UDP."""
    for variant in run.manifest.variants:
        if run.manifest.specs[variant.id].options.get("transport", "udp") != "udp":
            continue
        trials = _done(run, variant)
        spread = statistics.spread([value for trial in trials if (value := _percentile_us(trial)) is not None])
        if spread is not None:
            same, rate = _rate(trials)
            yield Measured(figure, variant.label, spread, comparable=same, differs=[ECHO, *rate])


@holds("cpu", "catalog-churn", "100k zones static")
def _cpu(run: Run, figure: Figure) -> Iterator[Measured]:
    """CPU of the secondary while nothing changes, in percent of a core."""
    for variant in run.manifest.variants:
        spec = run.manifest.specs[variant.id]
        if spec.options.get("changes", "none") != "none" or not spec.dataset.zones:
            continue
        trials = _done(run, variant)
        spread = statistics.spread([value for trial in trials if (value := _cpu_percent(trial)) is not None])
        if spread is not None:
            same, rate = _rate(trials)
            many = same_size(spec.dataset.zones, ZONES)
            size = [] if many else [f"{spec.dataset.zones:,} zones here, {ZONES:,} in the source."]
            yield Measured(figure, variant.label, spread, comparable=same and many, differs=[*rate, *size])


def _done(run: Run, variant: Variant) -> list[Trial]:
    return [trial for trial in run.done(variant.id) if trial.load.ran]


def _percentile_us(trial: Trial) -> float | None:
    found = trial.latency.total("due").percentile(PERCENT) if trial.latency else None
    return None if found is None else found / 1000


def _cpu_percent(trial: Trial) -> float | None:
    """CPU time of the server's host over the time of `measure`."""
    used_us = trial.growth(trial.subject, "cgroup", "cpu_usage_us")
    rows = trial.during_measure(trial.subject, "cgroup", "cpu_usage_us")
    span_ns = 0 if rows.height < 2 else rows["time_ns"][-1] - rows["time_ns"][0]
    return None if used_us is None or not span_ns else 100 * used_us * 1000 / span_ns


def _rate(trials: list[Trial]) -> tuple[bool, list[str]]:
    """Whether the rate is the source's, and a sentence where it is not."""
    asked = [qps for trial in trials if (qps := trial.load.asked_qps)]
    same = bool(asked) and all(same_size(qps, QPS) for qps in asked)
    low, high = (min(asked), max(asked)) if asked else (0.0, 0.0)
    told = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
    return same, [] if same else [f"{told} queries a second here, {QPS:,} in the source."]
