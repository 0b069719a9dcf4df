"""Share of the loaded generations with which the primary answered, as seen by an observer near it. A secondary cannot
transfer a generation that the primary does not have.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.replication import INSTRUMENT
from dnsrig.runs.trial import Trial

TITLE = "generations published by the primary"
UNIT = "% of generations"


def look(trial: Trial) -> Seen:
    made = trial.record.instruments.get(INSTRUMENT, {}).get("generations") or []
    if not made:
        return cannot_tell("no generation was made")
    published = sum(each["published_ns"] is not None for each in made)
    return Seen(100 * published / len(made), least=100.0, asked=len(made), why=f"{published} of {len(made)}")
