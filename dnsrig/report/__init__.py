"""Draws a run for people: tables, charts, one HTML page, files for other programs.

What lives here reads run directories and nothing else, so that a report can be drawn on another machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dnsrig import traps
from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import summarise
from dnsrig.report import page
from dnsrig.report.draw import draw_all
from dnsrig.report.exports import export
from dnsrig.report.gather import gather
from dnsrig.report.terminal import terminal_failures, terminal_findings, terminal_table
from dnsrig.rundir import Finding, Findings, write_json

__all__ = ["export", "terminal_failures", "terminal_findings", "terminal_table", "write_report"]


@dataclass(frozen=True)
class Written:
    """A report, and what it says."""

    path: Path
    run: Run
    findings: list[Finding]


def write_report(run_dir: Path) -> Written:
    """Write what is derived from a run: findings.json, summary.parquet, report.html.

    What fails on the way is left out, noted in ``run.failures``, and said in the page and in findings.json.
    """
    run = Run.open(run_dir)
    findings = traps.examine(run)
    with run.failures.isolate("export", "summary.parquet"):
        summarise(run).write_parquet(run_dir / "summary.parquet")
    path = run_dir / "report.html"
    path.write_text(page.render(run, gather(run, findings), draw_all(run, findings)), encoding="utf-8")
    write_json(run_dir / "findings.json", Findings(findings=findings, failures=list(run.failures)))
    return Written(path, run, findings)
