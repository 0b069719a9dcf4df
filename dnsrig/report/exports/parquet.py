"""The summary as Parquet: one row a trial and metric."""

from __future__ import annotations

from pathlib import Path

from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import summarise


def write(run: Run, out: Path) -> list[Path]:
    path = out / "summary.parquet"
    summarise(run).write_parquet(path)
    return [path]
