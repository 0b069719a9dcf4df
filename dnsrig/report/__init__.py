"""Draws a run for people: tables, charts, one HTML page, files for other programs.

What lives here reads run directories and nothing else, so that a report can be drawn on another machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from dnsrig import files, paths, traps
from dnsrig.comparison.summary import summarise
from dnsrig.report import page
from dnsrig.report.bars import terminal_bars
from dnsrig.report.draw import draw_all
from dnsrig.report.exports import export
from dnsrig.report.gather import gather
from dnsrig.report.terminal import terminal_failures, terminal_findings, terminal_first, terminal_table
from dnsrig.rundir import Finding, Findings, write_json
from dnsrig.runs.run import Run

__all__ = [
    "export",
    "place",
    "terminal_bars",
    "terminal_failures",
    "terminal_findings",
    "terminal_first",
    "terminal_table",
    "write_report",
]


@dataclass(frozen=True)
class Written:
    """A report, and what it says."""

    path: Path
    run: Run
    findings: list[Finding]


def place(run_dir: Path, out: Path | None = None) -> Path:
    """Where what is derived from a run is written: ``out``, or else the run itself; if the run is somebody else's, a
    folder of the cache."""
    if out is not None or not files.other_owner(run_dir):
        return out or run_dir
    digest = blake2b(bytes(run_dir.resolve()), digest_size=4).hexdigest()
    return paths.cache() / "reports" / f"{run_dir.resolve().name}-{digest}"


def write_report(run_dir: Path, out: Path | None = None) -> Written:
    """Write what is derived from a run into ``out``, by default `place`: findings.json, summary.parquet, report.html.

    What fails on the way is left out, noted in ``run.failures``, and said in the page and in findings.json.
    """
    run = Run.open(run_dir)
    findings = traps.examine(run)
    folder = place(run_dir, out)
    folder.mkdir(parents=True, exist_ok=True)
    with run.failures.isolate("export", "summary.parquet"), files.writing(folder / "summary.parquet") as file:
        summarise(run).write_parquet(file)
    path = folder / "report.html"
    files.write(path, page.render(run, gather(run, findings), draw_all(run, findings)).encode())
    write_json(folder / "findings.json", Findings(findings=findings, failures=list(run.failures)))
    return Written(path, run, findings)
