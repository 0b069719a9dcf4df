"""Storage of the servers: a tmpfs for memory, another file system for disk."""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "storage of the servers"


def look(trial: Trial) -> Seen:
    system = trial.record.instruments.get("storage", {}).get("file_system")
    if not system:
        return cannot_tell("the file system was not examined")
    return Seen("memory" if system == "tmpfs" else "disk", asked=trial.record.spec.storage, why=f"it is {system}")
