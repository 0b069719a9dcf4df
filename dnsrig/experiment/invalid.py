"""Invalid trials of a run: which there are, and how they are measured again.

What an invalid trial measured is no result, so that measuring it again chooses nothing. It is kept beside its place,
for whoever looks for the cause.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from dnsrig import cached
from dnsrig.rundir import Manifest, TrialKey, TrialRecord, read_json, trial_dir

ASIDE = ".invalid"
"""After the name of a trial's directory."""


def invalid(manifest: Manifest, directory: Path) -> list[TrialKey]:
    """The finished trials of the run in ``directory`` that are invalid."""
    return [key for key in manifest.order if _outcome(directory, key) == "invalid"]


def set_aside(manifest: Manifest, directory: Path) -> None:
    """Make room for the invalid trials to be measured again. What an older one left is replaced."""
    with cached.only_one(directory, "somebody else is executing this run"):
        for key in invalid(manifest, directory):
            target = trial_dir(directory, key.variant, key.repeat)
            aside = target.with_name(f"{target.name}{ASIDE}")
            shutil.rmtree(aside, ignore_errors=True)
            target.rename(aside)


def _outcome(directory: Path, key: TrialKey) -> str:
    path = trial_dir(directory, key.variant, key.repeat) / "trial.json"
    return read_json(path, TrialRecord, inside=directory).outcome if path.exists() else ""
