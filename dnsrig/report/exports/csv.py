"""The summary as CSV: one row a trial and metric."""

from __future__ import annotations

from pathlib import Path

from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import summarise


def write(run: Run, out: Path) -> list[Path]:
    path = out / "summary.csv"
    summarise(run).write_csv(path)
    return [path]
