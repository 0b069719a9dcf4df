"""A bar for each variant on a terminal: its end is the median of the main metric, with the interval around it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from dnsrig.comparison.summary import VariantRow, main_metric, variant_table
from dnsrig.report import figures, names, wording
from dnsrig.runs.run import Run

WIDEST = 40
"""Most columns of a bar."""
NARROWEST = 8
SURE, BELOW, ABOVE = "█", "▓", "░"
"""Up to the lower end of the interval, from there to the median, and from the median to the upper end."""


@dataclass(frozen=True)
class Bar:
    """A line; lengths are parts of the longest bar."""

    name: str
    figure: str
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Bars:
    """All bars of a run, as wide as the terminal allows."""

    title: str
    bars: list[Bar]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names_wide = max((len(bar.name) for bar in self.bars), default=0)
        figures_wide = max((len(bar.figure) for bar in self.bars), default=0)
        room = min(WIDEST, max(NARROWEST, options.max_width - names_wide - figures_wide - 4))
        yield Text(self.title)
        for bar in self.bars:
            low, median, high = (round(end * room) for end in (bar.low, bar.median, bar.high))
            drawn = SURE * low + BELOW * (median - low) + ABOVE * (high - median)
            yield Text(f"  {bar.name:{names_wide}} {drawn:{room}} {bar.figure}".rstrip())


def terminal_bars(run: Run) -> Bars:
    """The bars of the main metric of ``run``, in the order of the matrix."""
    rows = variant_table(run, main_metric(run))
    longest = max((_ends(row)[-1] for row in rows), default=0.0) or 1.0
    axes = names.varying_axes(run)
    return Bars(
        figures.capital(rows[0].metric.title) if rows else "",
        [_bar(names.name(run, row.variant, axes) or row.variant.label, row, longest) for row in rows],
    )


def _bar(name: str, row: VariantRow, longest: float) -> Bar:
    low, median, high = (end / longest for end in _ends(row))
    spread, interval = row.samples.spread, row.samples.interval
    if spread is not None and interval is not None:
        figure = figures.spread(replace(spread, low=interval.low, high=interval.high), row.metric.unit)
    else:
        figure = wording.median_and_range(row.samples, row.metric.unit)[0]
    return Bar(name, figure if spread else "no valid repeat", low, median, high)


def _ends(row: VariantRow) -> tuple[float, float, float]:
    """Where the parts of a bar end: the interval around the median, or the median alone without an interval."""
    spread, interval = row.samples.spread, row.samples.interval
    if spread is None:
        return 0.0, 0.0, 0.0
    low, high = (interval.low, interval.high) if interval is not None else (spread.median, spread.median)
    return low, spread.median, high
