"""Whether the simulated Internet lost nothing, and how much of the time it was busy during the measurement.

If the world does not answer in time, the resolver repeats its query or answers SERVFAIL: then the world limits the
result. The world is busy while it uses a CPU, and while it waits for one that others use (PSI), as may happen on two
CPUs. If it is busy for 70 % of the time, a query waits for slightly more than two others on average (M/M/1: share / (1
- share)), or about 0.1 ms, which is little compared with a network; above that the wait grows fast.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.during import work_percent, work_series
from dnsrig.runs.trial import Trial

TITLE = "time in which the world was busy"
UNIT = "%"
MOST_PERCENT = 70.0
LOST = {
    "receive_buffer_drops": "queries found a full buffer",
    "unsent": "answers could not be sent",
    "seconds_dropped": "seconds of counts found no room",
}


def look(trial: Trial) -> Seen:
    told, name, phase = trial.record.instruments.get("world", {}), trial.record.spec.world, trial.measure
    if not told or name is None or phase is None:
        return cannot_tell("the world wrote no summary")
    lost = [f"{told[key]:,} {what}" for key, what in LOST.items() if told.get(key)]
    if lost:
        return Seen(", ".join(lost), asked="nothing lost")
    share = work_percent(trial, name, [(phase.start.monotonic_ns, phase.end.monotonic_ns)])
    if share is None:
        return cannot_tell("there are no samples of its CPU time")
    return Seen(share, most=MOST_PERCENT, series=work_series(name))
