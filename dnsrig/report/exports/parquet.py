"""The summary as Parquet: one row a trial and metric."""

from __future__ import annotations

from pathlib import Path

from dnsrig.comparison.summary import summarise
from dnsrig.runs.run import Run


def write(run: Run, out: Path) -> list[Path]:
    path = out / "summary.parquet"
    summarise(run).write_parquet(path)
    return [path]
