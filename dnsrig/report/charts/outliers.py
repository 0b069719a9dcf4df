"""What an outlier did over time, beside the middle repeat of its variant.

A cold page cache, for one, shows as time spent waiting for reads (S1: P. Spacek, the first of ten loads of a zone, 2024).
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from dnsrig.analysis.read import Run, Trial
from dnsrig.analysis.summary import describe
from dnsrig.report import figures
from dnsrig.report.charts import MAIN, Drawing, _look, _series, _split
from dnsrig.report.outliers import Outlier, outliers
from dnsrig.rundir import Finding

TITLE = "What an outlier did differently"
ORDER = 14
METRICS = (MAIN, "io_wait_s")

MOST = 6
"""Outliers drawn: those furthest from the middle of their variant."""
PANEL_PX = 70


def applies(run: Run) -> bool:
    return any(_panels(outlier) for outlier in _furthest(run, []))


def caption(run: Run) -> str:
    return (
        "Each repeat with a ring in the chart above, beside the repeat in the middle of its variant."
        " A line that lies flat where the other works shows when time was lost; waiting for reads or writes means a cold"
        f" page cache or a busy disk. At most {MOST} outliers, those that are furthest from the middle; seconds count"
        f" from exec of the {_split.subject(run)}."
    )


def explain(run: Run, findings: Sequence[Finding]) -> list[Drawing]:
    return [
        Drawing(f"{outlier.variant.id}-{outlier.repeat:02d}", _look.stack(panels, 8), _title(outlier))
        for outlier in _furthest(run, findings)
        if (panels := _panels(outlier))
    ]


def _furthest(run: Run, findings: Sequence[Finding]) -> list[Outlier]:
    return sorted(outliers(run, findings), key=lambda outlier: abs(outlier.apart_percent), reverse=True)[:MOST]


def _title(outlier: Outlier) -> str:
    unit = describe(outlier.trial.record.spec.main_metric).unit
    values = [figures.figure(value, unit) for value in (outlier.value, outlier.typical_value)]
    took = f"{values[0]}, {outlier.apart} against {values[1]}"
    return f"{outlier.variant.label}, repeat {outlier.repeat}, {took}: {outlier.cause}"


def _panels(outlier: Outlier) -> list[alt.Chart]:
    """CPU and waiting of the server under test; only the lowest says what the axis of time is."""
    typical = outlier.typical.record.spec.repeat
    trials = {f"repeat {outlier.repeat}, the outlier": outlier.trial, f"repeat {typical}, the middle": outlier.typical}
    subject = outlier.trial.subject
    contents = {
        f"CPU of the {subject}, % of one core": _lines(trials, "cgroup", "cpu_usage_us"),
        f"The {subject} waited for reads and writes, % of the time": _lines(trials, "psi", "io_some_us"),
    }
    present = [(title, rows) for title, rows in contents.items() if not rows.is_empty()]
    end_s = max((_look.extent(rows["time_s"])[1] for _, rows in present), default=0.0)
    below = [""] * (len(present) - 1) + [f"seconds since {_split.since(outlier.trial)}"]
    return [_panel(title, rows, list(trials), end_s, x) for (title, rows), x in zip(present, below)]


def _lines(trials: dict[str, Trial], source: str, name: str) -> pl.DataFrame:
    """Columns time_s, value in percent (of microseconds a second), line."""
    frames = [
        _series.rate(trial, trial.subject, source, name).select(
            pl.col("time_s").round(3), value=(pl.col("value") / 1e4).round_sig_figs(4), line=pl.lit(line)
        )
        for line, trial in trials.items()
    ]
    return pl.concat(frames)


def _panel(title: str, rows: pl.DataFrame, lines: list[str], end_s: float, time_title: str) -> alt.Chart:
    """Without ``time_title`` its axis of time is that of the panel beneath."""
    below = bool(time_title)
    chart: alt.Chart = (
        alt.Chart(rows)
        .mark_line(strokeWidth=1.5, clip=True)
        .encode(
            alt.X(
                "time_s:Q",
                title=time_title or None,
                scale=alt.Scale(domain=[0, end_s], nice=False),
                axis=alt.Axis(labels=below, ticks=below, tickCount=10),
            ),
            alt.Y(
                "value:Q",
                title=None,
                scale=_look.from_zero(rows["value"]),
                axis=alt.Axis(tickCount=3, format=",~r", minExtent=42),
            ),
            alt.Color(
                "line:N", scale=alt.Scale(domain=lines, range=[_look.COLOURS[1], _look.COLOURS[0]]), legend=alt.Legend()
            ),
            alt.StrokeDash("line:N", scale=_look.dashes(lines), legend=alt.Legend()),
        )
        .properties(width=_look.WIDTH, height=PANEL_PX, title=_look.heading(title))
    )
    return chart
