"""What `dnsrig report` left in a run, where it is still true."""

from __future__ import annotations

from dnsrig.analysis.read import Run
from dnsrig.errors import DnsrigError
from dnsrig.rundir import Finding, Findings, read_json


def findings(run: Run) -> list[Finding] | None:
    """Those of findings.json; None where they are older than a trial, or cannot be read: the run is to be examined."""
    path = run.directory / "findings.json"
    try:
        written = path.stat().st_mtime_ns
        newest = max((t.directory.joinpath("trial.json").stat().st_mtime_ns for t in run.trials), default=0)
        return read_json(path, Findings).findings if written >= newest else None
    except (OSError, DnsrigError):
        return None
