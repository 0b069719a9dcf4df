"""CPU use of the server under test at rates that failed, in the search for its capacity.

If the server did not use its CPUs and did not wait for them either (PSI), something else lost the queries: a simulated
Internet that did not answer, or a path. Then the measured capacity is not the server's. At its limit a server uses all
its CPUs. The check does not count the start and the last timeouts, but queries that wait for others, so 80 % is enough.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.during import work_percent, work_series
from dnsrig.runs.trial import Trial

TITLE = "time in which the server was busy at rates that failed"
UNIT = "%"
LEAST_PERCENT = 80.0


def look(trial: Trial) -> Seen:
    failed = [
        (step["start_ns"], step["end_ns"])
        for step in trial.record.instruments.get("ramp", {}).get("steps", [])
        if not step["holds"] and not step["instrument_failed"]
    ]
    if not failed:
        return cannot_tell("no rate failed")
    share = work_percent(trial, trial.subject, sorted(failed))
    if share is None:
        return cannot_tell("there are no samples of its CPU time")
    return Seen(share, least=LEAST_PERCENT, series=work_series(trial.subject))
