"""Which axes decide colours, panels and the names of rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import Plan, build

from dnsrig.report.charts import _split
from dnsrig.runs.run import Run


@pytest.mark.parametrize(
    ("axes", "baseline", "colour", "others", "rows"),
    [
        ({"server": 2, "zones": 3, "transport": 2}, "", "server", ["transport"], ["server", "transport"]),
        ({"zones": 3, "transport": 2, "site": 2}, "", "transport", ["site"], ["transport", "site"]),
        ({"zones": 3, "transport": 2, "site": 2}, "site", "site", ["transport"], ["transport", "site"]),
        ({"transport": 2, "server": 2}, "transport", "server", ["transport"], ["transport", "server"]),
        ({"zones": 3, "server": 1, "site": 1}, "", None, [], ["server", "site"]),
        ({"zones": 3}, "", None, [], []),
    ],
)
def test_axes(
    tmp_path: Path, axes: dict[str, int], baseline: str, colour: str | None, others: list[str], rows: list[str]
) -> None:
    """``axes``: how many values each has."""
    run = Run.open(build(tmp_path / "run", Plan(repeats=1, samples=False)))
    run.manifest.axes = {axis: list(range(count)) for axis, count in axes.items()}
    run.manifest.baseline = {baseline: 0} if baseline else {}
    assert _split.colour_axis(run) == colour
    assert _split.other_axes(run) == others
    assert _split.row_axes(run) == rows
