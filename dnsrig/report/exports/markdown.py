"""The tables of a run as Markdown, to paste into an issue or a pull request.

The main metric is in sight; the next ones, the most telling first, are folded away. JSON and CSV have all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dnsrig import traps
from dnsrig.comparison.summary import VariantRow, main_metric, metric_tables
from dnsrig.metrics import Metric
from dnsrig.report import figures, wording
from dnsrig.report.comparison import better
from dnsrig.report.gather import gather
from dnsrig.report.markdown import code, table, text
from dnsrig.report.setting import setting
from dnsrig.runs.run import Run

MOST_OTHERS = 12
"""Metrics beside the main one: an issue holds 65,536 characters."""


def write(run: Run, out: Path) -> list[Path]:
    path = out / "run.md"
    path.write_text(document(run), encoding="utf-8")
    return [path]


def document(run: Run) -> str:
    tables = metric_tables(run)
    main = [(metric, rows) for metric, rows in tables if metric.name == main_metric(run)]
    others = [(metric, rows) for metric, rows in tables if metric.name != main_metric(run)]
    of = f"{figures.count(run.manifest.repeats, 'repeat')}, {setting(run)}"
    said = [text(part) for part in (run.manifest.question, of) if part.strip()]
    lines = [f"### {text(run.manifest.title)}", "", *(line for part in said for line in (part, ""))]
    for metric, rows in main:
        lines += [*_table(run, metric, rows), *_notes(run, rows), ""]
    lines += [*_not_done(run), *_found(run)]
    if others:
        shown = others[:MOST_OTHERS]
        more = f" (of {len(others)})" if len(others) > len(shown) else ""
        lines += ["", f"<details><summary>{figures.count(len(shown), 'other metric')}{more}</summary>", ""]
        for metric, rows in shown:
            lines += [*_table(run, metric, rows), ""]
        lines += ["</details>"]
    return "\n".join(lines).rstrip() + "\n"


def _table(run: Run, metric: Metric, rows: Sequence[VariantRow]) -> list[str]:
    axes = list(run.manifest.axes)
    compared = any(row.baseline is not None for row in rows)
    columns = ["repeats", "median", "min..max", "mean", *(["of baseline", "interval", "judgement"] if compared else [])]
    cells = [[*_axes(run, row, axes), *_figures(row), *(_compared(run, row) if compared else [])] for row in rows]
    title = f"**{text(metric.title)}** ({code(metric.name)}){better(metric)}"
    return [title, "", *table([*map(text, axes), *columns], cells, len(axes))]


def _axes(run: Run, row: VariantRow, axes: Iterable[str]) -> list[str]:
    return [text(wording.parameter(run, row.variant.parameters[axis])) for axis in axes]


def _figures(row: VariantRow) -> list[str]:
    unit, spread = row.metric.unit, row.samples.spread
    median, range_ = wording.median_and_range(row.samples, unit)
    mean = figures.figure(spread.mean if spread else None, unit)
    bound = "≥ " if row.samples.censored and spread else ""
    return [text(wording.outcomes(row.outcomes)), text(median), text(range_), text(bound + mean)]


def _compared(run: Run, row: VariantRow) -> list[str]:
    return [text(part) for part in (wording.relative(run, row), wording.beneath(run, row), wording.judgement(row))]


def _notes(run: Run, rows: Sequence[VariantRow]) -> list[str]:
    if all(row.baseline is None for row in rows):
        return []
    reach = wording.reach(run, rows)
    notes = [f"of baseline: {wording.of_what(rows)}", "interval: 95 %, of the same"]
    notes += [f"{row.variant.label}: {said}" for row in rows if (said := wording.disagreement(row.comparison))]
    return ["", *(f"- {text(note)}" for note in [*notes, *([f"chance: {reach}, after Holm"] if reach else [])])]


def _not_done(run: Run) -> list[str]:
    reasons = [(variant.label, wording.progress(run, variant)) for variant in run.manifest.variants]
    return [f"- {text(label)}: {text(why)}" for label, why in reasons if why]


def _found(run: Run) -> list[str]:
    """What the traps found: figures without it mislead."""
    found = [report for report in gather(run, traps.examine(run)) if report.found]
    return [
        f"- found: {text(report.title)} ({code(report.id)}), {figures.count(len(report.found), 'variant')}:"
        f" {text(report.found[0].summary)}"
        for report in found
    ]
