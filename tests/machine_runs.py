"""Runs over machines of which something is lost: trials that pretend, a lease that ends soon, and what came of it."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

from dnsrig.rundir import Manifest, read_json

LEASE_S = 10.0
"""Long enough for a machine on which other tests run."""
PRETEND_S = 0.4
PROGRAM = Path(__file__).with_name("pretend_trial.py")
IMPATIENT = [
    sys.executable,
    "-c",
    "from dnsrig.experiment import spread; from dnsrig.machines import leases\n"
    f"leases.LEASE_S, leases.RENEWAL_S, spread.ENDING_LIMIT_S = {LEASE_S}, {LEASE_S / 6}, 10\n"
    "from dnsrig.__main__ import main; main()",
]
"""`dnsrig` with a lease that ends soon."""
PRETENDING = """
import sys
from dnsrig.experiment import children
from dnsrig.machines import arrival, leases
children.TRIAL_COMMAND = [sys.executable, {program!r}]
leases.LEASE_S, leases.RENEWAL_S = {lease_s}, {lease_s} / 6
arrival.SILENCE_LIMIT_S = {lease_s}
"""
"""Of workers whose trials only pretend to measure."""


def preload(folder: Path) -> Path:
    """What a worker loads first, so that its trials pretend."""
    path = folder / "preload.py"
    path.write_text(PRETENDING.format(program=str(PROGRAM), lease_s=LEASE_S))
    return path


def manifest_of(folder: Path) -> Manifest:
    (directory,) = folder.glob("runs/*/*")
    return read_json(directory / "manifest.json", Manifest)


def finished(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*/trials/*/*/trial.json")}


def pretending_trials(folder: Path) -> list[int]:
    """Processes of trials whose results would come into ``folder``."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if str(PROGRAM) in words and any(str(folder) in word for word in words):
            found.append(process.pid)
    return found
