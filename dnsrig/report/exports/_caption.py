"""What a figure's caption says away from the report: what is shown, of how many repeats, how they spread, and where."""

from __future__ import annotations

from collections import Counter

from dnsrig.comparison.summary import measured_metrics, variant_table
from dnsrig.report import figures, wording
from dnsrig.report.draw import Rendered
from dnsrig.report.setting import setting
from dnsrig.rundir import Outcome
from dnsrig.runs.run import Run
from dnsrig.text import visible

MOST_VARIANTS = 8
"""Whose medians a caption names; summary.csv has all."""


def of(run: Run, figure: Rendered) -> str:
    """Sentences on one line."""
    title = ": ".join(dict.fromkeys(part for part in (figure.chart.title, figure.drawing.title) if part))
    sentences = [f"{title}.", figure.caption, _repeats(run), _spread(run, figure), f"Measured at {setting(run)}."]
    # A character at a time, because a caption may be longer than one text from outside.
    return "".join(map(visible, " ".join(sentence for sentence in sentences if sentence)))


def _repeats(run: Run) -> str:
    """``5 repeats of each variant (19 done, 1 timeout)``."""
    outcomes: Counter[Outcome] = Counter(trial.record.outcome for trial in run.trials)
    return f"{figures.count(run.manifest.repeats, 'repeat')} of each variant ({_counted(outcomes)})."


def _counted(outcomes: Counter[Outcome]) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items())) or "none done"


def _spread(run: Run, figure: Rendered) -> str:
    """Of the first metric that it shows: median, smallest and largest repeat of each variant."""
    shown = next((metric for metric in measured_metrics(run) if metric.name in figure.metrics), None)
    if shown is None:
        return ""
    rows = [row for row in variant_table(run, shown.name) if row.samples.spread is not None]
    told = [f"{row.variant.label} {wording.measured(row)}" for row in rows[:MOST_VARIANTS]]
    more = f"; and {len(rows) - MOST_VARIANTS} more" if len(rows) > MOST_VARIANTS else ""
    return f"Median [smallest..largest] repeat, {shown.title}: {'; '.join(told)}{more}."
