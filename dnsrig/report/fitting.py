"""A table for terminals of any width: no word of it is ever broken."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDEST = 1_000
"""Columns of a terminal, for measuring a table as wide as it wants to be."""


@dataclass(frozen=True)
class FittingTable:
    """A table where each cell fits without breaking a word; else a paragraph a row."""

    title: str
    columns: list[str]
    axes: int
    """So many of the columns, the first, say what a row is about."""
    rows: list[list[str]]
    """A cell a column; a cell may have several lines."""
    notes: list[str] = field(default_factory=list)
    apart: str = ""
    """The column of which each line has a line of its own in a paragraph."""
    title_style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table()
        if Measurement.get(console, options.update(max_width=WIDEST), table).maximum <= options.max_width:
            yield table
            return
        yield Text(self.title, style=self.title_style)
        for cells in self.rows:
            yield self._paragraph(cells)
        if self.notes:
            yield Text("\n".join(self.notes))

    def _table(self) -> Table:
        table = Table(
            title=Text(self.title, style=self.title_style),
            title_justify="left",
            title_style="",
            caption=Text("\n".join(self.notes)) if self.notes else None,
            caption_justify="left",
            caption_style="",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            padding=0,
        )
        for column in self.columns:
            table.add_column(Text(column), no_wrap=True)
        for cells in self.rows:
            table.add_row(*map(Text, cells))
        return table

    def _paragraph(self, cells: list[str]) -> Group:
        told = [(name, cell.splitlines()) for name, cell in zip(self.columns, cells, strict=True) if cell]
        row = " ".join(f"{name}={' '.join(lines)}" for name, lines in told[: self.axes])
        values = [f"{name} {' '.join(lines)}" for name, lines in told[self.axes :] if name != self.apart]
        apart = [f"{name}: {line}" for name, lines in told if name == self.apart for line in lines]
        return Group(Text(row or "only"), Padding(Text("\n".join(["; ".join(values), *apart])), (0, 0, 0, 2)))
