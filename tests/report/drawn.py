"""What a report shows, as text that golden files hold: the words of its charts and of a terminal, and a digest of each
picture and of each part of the page.

If a change of them is meant, make the golden files anew with ``DNSRIG_BLESS=1``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode
from golden_files import same
from html_facts import parts
from rich.console import RenderableType
from test_terminal import printed

from dnsrig.report import page, terminal_bars, terminal_first, terminal_table
from dnsrig.report.charts import Chart, all_charts, chosen
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run

GOLDEN = Path(__file__).parent / "golden"
COLUMNS = 100
"""Width of the terminal."""
NUMBERED = re.compile(r"\b(view|param|concat|layer)_\d+")
"""Names that altair counts through all charts of a process."""


def rounded(value: Any) -> Any:
    """``value`` without the last digits of its numbers, which depend on the order of sums."""
    if isinstance(value, dict):
        return {NUMBERED.sub(r"\1", str(key)): rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(rounded, value))
    if isinstance(value, str):
        return NUMBERED.sub(r"\1", value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def text(value: Any, **style: Any) -> str:
    return json.dumps(rounded(value), indent=1, sort_keys=True, **style) + "\n"


def digest(shown: str) -> str:
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def of_chart(chart: alt.TopLevelMixin) -> str:
    """A digest of the specification of ``chart``, with all its data."""
    return digest(text(chart.to_dict(validate=False)))


def as_it_was(name: str, run: Run, *ids: str, findings: Sequence[Finding] = ()) -> bool:
    """Whether the golden file ``name`` has what the charts called ``ids`` show of ``run``; without any id, all charts
    of its report."""
    charts = [chart for chart in all_charts() if chart.id in ids] if ids else chosen(run)
    shown = text({chart.id: _shown(chart, run, findings) for chart in charts}, ensure_ascii=False)
    return same(GOLDEN / f"{name}.json", shown)


def pictures_as_they_were(name: str, charts: Mapping[str, alt.TopLevelMixin]) -> bool:
    """Whether the golden file ``name`` has these charts, which belong to no run."""
    return same(GOLDEN / f"{name}.json", text({chart: of_chart(drawn) for chart, drawn in charts.items()}))


def words_as_they_were(name: str, run: Run) -> bool:
    """Whether the golden file ``name`` has what a terminal shows of ``run``, and the digests of the page without charts
    and findings."""
    shown: list[RenderableType] = [
        terminal_first(run, [], "more: the report"),
        terminal_table(run, []),
        terminal_bars(run),
    ]
    digests = "".join(
        f"{digest(below)} {heading or 'the top'}\n" for heading, below in parts(page.render(run, [], [])).items()
    )
    return same(GOLDEN / f"{name}.txt", "\n".join([*(printed(each, COLUMNS) for each in shown), digests]))


def _shown(chart: Chart, run: Run, findings: Sequence[Finding]) -> dict[str, Any]:
    with debug_mode(False):
        drawn = chart.draw(run, findings)
    drawings = {
        each.name: {"title": each.title, "group": each.group, "open": each.open, "digest": of_chart(each.chart)}
        for each in drawn
    }
    return {"caption": chart.caption(run), "metrics": sorted(chart.metrics(run)), "drawings": drawings}
