"""A history for people and for programs: table, charts, a page, JSON."""

from __future__ import annotations

import json
from pathlib import Path

from dnsrig import files
from dnsrig.comparison.history import History
from dnsrig.report import svg
from dnsrig.report.history import chart, data, page, table

as_text = table.as_text


def write_history(history: History, out: Path) -> list[Path]:
    """Write history.json, history.html and a chart a metric, as SVG, into the folder ``out``; returns what was
    written."""
    out.mkdir(parents=True, exist_ok=True)
    charts = {metric.name: svg.render(chart.draw(series)) for metric, series in history.metrics}
    written = {
        out / "history.json": json.dumps(data.as_json(history, out), indent=2) + "\n",
        out / "history.html": page.render(history, charts, out),
        **{out / f"history-{name}.svg": text for name, text in charts.items()},
    }
    for path, text in written.items():
        files.write(path, text.encode())
    return list(written)
