"""Kernel of the trial: the machine's own, or a stock kernel in User-mode Linux."""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "kernel of the trial"


def look(trial: Trial) -> Seen:
    kind = trial.record.conditions.get("kernel", {}).get("kind")
    return Seen(kind, asked=trial.record.spec.kernel) if kind else cannot_tell("it was not recorded")
