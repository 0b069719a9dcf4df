"""What an outlier did over time, beside the middle repeat of its variant.

A cold page cache, for one, shows as time spent waiting for reads (S1: P. Spacek, the first of ten loads of a zone,
2024).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dnsrig.comparison.summary import describe
from dnsrig.report import figures
from dnsrig.report.charts import MAIN, Drawing, _series, _split
from dnsrig.report.charts._over_time import Panel, Picture
from dnsrig.report.outliers import Outlier, outliers
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "What did an outlier do differently?"
ORDER = 14
METRICS = (MAIN, "io_wait_s")

MOST = 6
"""Outliers drawn: those furthest from the middle of their variant."""


def applies(run: Run) -> bool:
    return any(_panels(outlier) for outlier in _furthest(run, []))


def caption(run: Run) -> str:
    return (
        "Each repeat with a ring in the chart of outliers, beside the median repeat of its variant."
        " Time was lost where one line is flat while the other works. Waiting for reads or writes means a cold"
        f" page cache or a busy disk. At most {MOST} outliers are drawn, those furthest from the median. Seconds count"
        f" from the start of the {_split.subject(run)}."
    )


def explain(run: Run, findings: Sequence[Finding]) -> list[Drawing]:
    return [
        Picture(
            f"{outlier.variant.id}-{outlier.repeat:02d}",
            panels,
            list(_trials(outlier)),
            _split.since(outlier.trial),
            _title(outlier),
        ).drawing()
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


def _trials(outlier: Outlier) -> dict[str, Trial]:
    typical = outlier.typical.record.spec.repeat
    return {f"repeat {typical}, the middle": outlier.typical, f"repeat {outlier.repeat}, the outlier": outlier.trial}


def _panels(outlier: Outlier) -> list[Panel]:
    """CPU and waiting of the server under test."""
    subject = outlier.trial.subject
    panels = [
        Panel(f"CPU of the {subject}, % of one core", _lines(outlier, "cgroup", "cpu_usage_us")),
        Panel(f"The {subject} waited for reads and writes, % of the time", _lines(outlier, "psi", "io_some_us")),
    ]
    return [panel for panel in panels if not panel.rows.is_empty()]


def _lines(outlier: Outlier, source: str, name: str) -> pl.DataFrame:
    """In percent: of microseconds a second."""
    frames = [
        _series.rate(trial, trial.subject, source, name).select(
            pl.col("time_s").round(3), value=(pl.col("value") / 1e4).round_sig_figs(4), line=pl.lit(line)
        )
        for line, trial in _trials(outlier).items()
    ]
    return pl.concat(frames)
