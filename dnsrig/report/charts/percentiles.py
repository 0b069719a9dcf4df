"""The generic chart of arrivals: so many percent had arrived after so long, a line a repeat. ``CHARTS`` has what a
report draws so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from dnsrig.metrics.fan_out import is_fan_out, spread
from dnsrig.report.charts import Chart, Drawing, _look, _split
from dnsrig.report.names import varying_axes
from dnsrig.rundir import Finding, TrialSpec, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

ROW_PX = 250
"""Height of two panels with their axis and headings."""
MOST_POINTS = 60
"""Most points of one line, the first among them."""
OUTCOMES = ("done", "timeout", "invalid")
SECONDARIES = "secondaries"
"""Label of an axis."""


@dataclass(frozen=True)
class Arrivals:
    """What arrived in one trial, and when."""

    times_ms: Sequence[float]
    """Times of all that arrived, sorted."""
    count: int
    """Number of all, arrived or not."""

    def points(self) -> list[tuple[float, float]]:
        """(percent of all, the time in ms that they did not exceed), rising, thinned."""
        found = len(self.times_ms)
        step = max(1, -(-found // MOST_POINTS))
        ranks = sorted({1, *range(step, found + 1, step), found}) if found else []
        return [(100 * rank / self.count, self.times_ms[rank - 1]) for rank in ranks]


@dataclass(frozen=True)
class Percentiles(Chart):
    says: str
    """The caption."""
    arrivals: Callable[[Trial], Arrivals]
    since: str
    """What the axis of time is called, without its unit."""
    arrived: str
    """What the percentage is called."""
    colour_axis: Callable[[Run], str | None] = _split.colour_axis
    """The axis that decides colours; each value of the others has a panel."""
    colour: Callable[[Run, Variant], str] = _split.colour_of

    def applies(self, run: Run) -> bool:
        return any(self.arrivals(trial).times_ms for trial in run.trials)

    def caption(self, run: Run) -> str:
        return f"{self.says} A pale line is an invalid trial."

    def draw(self, run: Run, findings: Sequence[Finding]) -> list[Drawing]:
        """All panels have the axes of the whole."""
        rows = pl.DataFrame(list(self._rows(run)), infer_schema_length=None)
        names = list(dict.fromkeys(self.colour(run, variant) for variant in run.manifest.variants))
        panels = [self._panel(rows, panel, names) for panel in dict.fromkeys(rows["panel"])]
        pairs = [alt.hconcat(*panels[i : i + 2], spacing=24) for i in range(0, len(panels), 2)]
        return _split.screens(pairs, ROW_PX)

    def _rows(self, run: Run) -> Iterable[dict[str, object]]:
        axes = [axis for axis in varying_axes(run) if axis != self.colour_axis(run)]
        for variant in run.manifest.variants:
            of_variant = {"panel": _split.label(variant, axes), "colour": self.colour(run, variant)}
            for trial in run.of_variant(variant.id):
                for percent, time_ms in self.arrivals(trial).points():
                    yield of_variant | {
                        "repeat": trial.record.spec.repeat,
                        "percent": percent,
                        "time_ms": time_ms,
                        "invalid": trial.record.outcome == "invalid",
                    }

    def _panel(self, rows: pl.DataFrame, panel: str, names: Sequence[str]) -> alt.Chart:
        only = panel == _split.ONLY
        title, scale = _look.measure(rows["time_ms"], f"{self.since}, ms")
        legend = alt.Legend() if len(names) > 1 else None
        x_axis = alt.Axis(tickCount=5, format=",~r", labelOverlap="greedy")
        y_scale, y_axis = alt.Scale(domain=[0, 100]), alt.Axis(tickCount=5)
        chart: alt.Chart = (
            alt.Chart(rows.filter(pl.col("panel") == panel))
            .mark_line(interpolate="step-after", strokeWidth=1.6)
            .encode(
                alt.X("time_ms:Q", title=title, scale=scale, axis=x_axis),
                alt.Y("percent:Q", title=f"{self.arrived}, %", scale=y_scale, axis=y_axis),
                alt.Color("colour:N", scale=_look.colours(names), legend=legend),
                alt.StrokeDash("colour:N", scale=_look.dashes(names), legend=legend),
                alt.Detail("repeat:N"),
                alt.Opacity("invalid:N", scale=alt.Scale(domain=[False, True], range=[0.8, 0.25]), legend=None),
                alt.Order("percent:Q"),
            )
            .properties(
                width=_look.WIDTH if only else (_look.WIDTH - 60) // 2,
                height=280 if only else 190,
                title="" if only else _look.heading(panel),
            )
        )
        return chart


def of_changes(trial: Trial) -> Arrivals:
    """Changes that the primary refused are left out; those that were not seen count among all."""
    made = trial.propagation.filter(pl.col("rcode").fill_null(0) == 0)
    times = (made["seen_ns"] - made["changed_ns"]).drop_nulls().sort().to_list()
    return Arrivals([ns / 1e6 for ns in times], made.height)


def at_secondaries(trial: Trial) -> Arrivals:
    """When each secondary had all its zones in the new version."""
    seen = spread(trial) if trial.record.outcome in OUTCOMES and is_fan_out(trial) else None
    if seen is None or seen.zero_ns is None:
        return Arrivals([], 0)
    times_ms = [max(1e-3, (ns - seen.zero_ns) / 1e6) for ns in seen.arrived_ns]
    return Arrivals(times_ms, max(_secondaries(trial.record.spec), len(times_ms)))


def _secondaries(spec: TrialSpec) -> int:
    return int(spec.options.get(SECONDARIES, 1))


def _told(run: Run, variant: Variant) -> str:
    count = _secondaries(run.manifest.specs[variant.id])
    return f"{count:,} secondaries" if count > 1 else "1 secondary"


CHARTS = [
    Percentiles(
        id="propagation",
        title="How long do changes take to reach the secondaries?",
        order=22,
        shows=("propagation_p50_ms", "propagation_p99_ms", "propagation_max_ms", "unseen_changes_percent"),
        arrivals=of_changes,
        since="time since the update was sent to the primary",
        arrived="arrivals so far",
        says="Each line is one repeat, with all its changes and secondaries. It shows which share of the arrivals took at most the time below, from"
        " the update at the primary to the first answer with the new serial. A step is a timer of a server. If a line ends below 100 %, the rest"
        " did not arrive before the trial gave up.",
    ),
    Percentiles(
        id="arrival-at-secondaries",
        title="How long does a change take to reach all secondaries?",
        order=23,
        shows=("last_done_s",),
        arrivals=at_secondaries,
        since="time since the first NOTIFY",
        arrived="secondaries that have the change",
        colour_axis=lambda run: SECONDARIES,
        colour=_told,
        says="Each line is one repeat. It shows which share of the secondaries had the new version, by the time since the first NOTIFY. If lines of"
        " few and of many secondaries lie side by side, the primary feeds all of them at the same time. If a line has stairs, the primary serves some"
        " secondaries, and the others come back when their retry timer ends. A line that ends below 100 % did not reach all.",
    ),
]
