"""How one change arrives at very many secondaries: the part that has it, against the time since the first NOTIFY."""

from __future__ import annotations

from collections.abc import Iterable

from dnsrig.analysis.metrics.fan_out import is_fan_out, spread
from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _arrivals, _split

TITLE = "Arrival of a change at all secondaries"
ORDER = 23
METRICS = ("last_done_s",)

SECONDARIES = "secondaries"
"""The axis told apart by colour."""
OUTCOMES = ("done", "timeout", "invalid")


def applies(run: Run) -> bool:
    return any(arrivals(trial) for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "Each line is one repeat: so many percent of the secondaries had the new version after so long, counted from the first NOTIFY."
        " Lines of few and of many secondaries side by side: as many are fed at a time. A line with stairs: the primary serves some,"
        " and the others come back when their retry timer says so. One that ends below 100 % did not reach all."
    )


def draw(run: Run) -> list[Drawing]:
    """A panel for the variants that differ in the number of secondaries alone."""
    counts = sorted({_secondaries(trial) for trial in run.trials if arrivals(trial)})
    names = [_told(count) for count in counts]
    return _arrivals.draw(_rows(run), names, time="since the first NOTIFY, ms", arrived="have it, %")


def _rows(run: Run) -> Iterable[dict[str, object]]:
    axes = [axis for axis in _split.varying_axes(run) if axis != SECONDARIES]
    for variant in run.manifest.variants:
        for trial in run.of_variant(variant.id):
            count = _secondaries(trial)
            for percent, time_ms in arrivals(trial):
                yield {
                    "panel": _arrivals.heading(variant, axes),
                    "colour": _told(count),
                    "repeat": trial.record.spec.repeat,
                    "percent": percent,
                    "time_ms": time_ms,
                }


def _told(count: int) -> str:
    return f"{count:,} secondaries" if count > 1 else "1 secondary"


def _secondaries(trial: Trial) -> int:
    return int(trial.record.spec.options.get(SECONDARIES, 1))


def arrivals(trial: Trial) -> list[tuple[float, float]]:
    """(percent of all secondaries, the time in ms by which they had all their zones in the new version), rising."""
    if trial.record.outcome not in OUTCOMES or not is_fan_out(trial):
        return []
    seen = spread(trial)
    if seen is None or seen.zero_ns is None or not seen.arrived_ns:
        return []
    times_ms = [max(1e-3, (ns - seen.zero_ns) / 1e6) for ns in seen.arrived_ns]
    return _arrivals.points(times_ms, max(_secondaries(trial), len(times_ms)))
