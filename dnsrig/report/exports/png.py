"""All charts as PNG, one file a drawing."""

from __future__ import annotations

from pathlib import Path

from dnsrig.report import svg
from dnsrig.report.draw import draw_all
from dnsrig.runs.run import Run


def write(run: Run, out: Path) -> list[Path]:
    paths = []
    for rendered in draw_all(run):
        path = out / f"{rendered.name}.png"
        with run.failures.isolate("chart", rendered.name):
            path.write_bytes(svg.png(rendered.svg))
            paths.append(path)
    return paths
