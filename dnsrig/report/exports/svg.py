"""All charts as SVG, one file a drawing."""

from __future__ import annotations

from pathlib import Path

from dnsrig.report.draw import draw_all
from dnsrig.runs.run import Run


def write(run: Run, out: Path) -> list[Path]:
    paths = []
    for rendered in draw_all(run):
        path = out / f"{rendered.name}.svg"
        path.write_text(rendered.svg, encoding="utf-8")
        paths.append(path)
    return paths
