"""What is derived from a run, where it is cheap: what `dnsrig report` left and is still true, damage of small files."""

from __future__ import annotations

from pathlib import Path

from dnsrig import checksums
from dnsrig.errors import DnsrigError
from dnsrig.rundir import Finding, Findings, read_json
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

MOST_CHECKED_BYTES = 32 << 20
"""Most bytes of a trial's files that are checked, and four times as much for a run: they are read as a whole."""


def findings(run: Run) -> list[Finding] | None:
    """The findings in findings.json; None if they are older than a trial, or cannot be read: examine the run then."""
    path = run.directory / "findings.json"
    try:
        written = path.stat().st_mtime_ns
        newest = max((t.directory.joinpath("trial.json").stat().st_mtime_ns for t in run.trials), default=0)
        return read_json(path, Findings).findings if written >= newest else None
    except (OSError, DnsrigError):
        return None


def damage(trial: Trial, most_bytes: int = MOST_CHECKED_BYTES) -> dict[str, str]:
    """What is wrong with its files, by name; a trial with more than ``most_bytes`` of them is not checked."""
    return trial.damage if _bytes(trial) <= most_bytes else {}


def damage_of(run: Run) -> dict[Path, dict[str, str]]:
    """The folders of trials with damaged files; of a run that is too large nothing: `dnsrig report` tells it."""
    if sum(map(_bytes, run.trials)) > 4 * MOST_CHECKED_BYTES:
        return {}
    return {trial.directory: found for trial in run.trials if (found := damage(trial))}


def _bytes(trial: Trial) -> int:
    try:
        return sum((trial.directory / name).stat().st_size for name in checksums.names(trial.directory))
    except OSError:
        return 0
