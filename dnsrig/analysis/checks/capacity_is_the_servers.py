"""How busy the CPUs of the server under test were at rates that did not hold, when its capacity was searched.

Where it did not use its CPUs and did not wait for them either (PSI), something else lost the queries: a simulated
Internet that did not answer, or a path. Then the capacity is not the server's. A server that is at its limit uses all
of them; starting and the last time-outs are not in the time that is looked at, but queries that wait for others are, so
a fifth is left.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.during import work_percent, work_series
from dnsrig.analysis.read import Trial

TITLE = "time in which the server had work at rates that did not hold"
UNIT = "%"
LEAST_PERCENT = 80.0


def look(trial: Trial) -> Seen:
    failed = [
        (step["start_ns"], step["end_ns"])
        for step in trial.record.instruments.get("ramp", {}).get("steps", [])
        if not step["holds"] and not step["instrument_failed"]
    ]
    if not failed:
        return cannot_tell("every rate held")
    share = work_percent(trial, trial.subject, sorted(failed))
    if share is None:
        return cannot_tell("there are no samples of its CPU time")
    return Seen(share, least=LEAST_PERCENT, series=work_series(trial.subject))
