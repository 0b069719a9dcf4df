"""Whether the simulated Internet lost nothing, and how much of the time it had work while the resolver was measured.

What it does not answer in time the resolver asks again, or answers with SERVFAIL: then the world is what is measured.
It has work while it uses a CPU, and while it waits for one that others use (PSI), as they may on two CPUs. With work
for 70 % of the time a query waits for somewhat more than two others on average (M/M/1: share / (1 - share)), or some
0.1 ms, which is little beside a network; above that it grows fast.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.during import growth_in
from dnsrig.analysis.read import Trial

TITLE = "time in which the world had work"
UNIT = "%"
MOST_PERCENT = 70.0
USED, WAITED = ("cgroup", "cpu_usage_us"), ("psi", "cpu_some_us")
LOST = {
    "receive_buffer_drops": "queries found a full buffer",
    "unsent": "answers could not be sent",
    "seconds_dropped": "seconds of counts found no room",
}


def look(trial: Trial) -> Seen:
    told, name, phase = trial.record.instruments.get("world", {}), trial.record.spec.world, trial.measure
    if not told or name is None or phase is None:
        return cannot_tell("the world said no summary")
    lost = [f"{told[key]:,} {what}" for key, what in LOST.items() if told.get(key)]
    if lost:
        return Seen(", ".join(lost), asked="nothing lost")
    measured = [(phase.start.monotonic_ns, phase.end.monotonic_ns)]
    used_us, waited_us = (growth_in(trial, (name, *counter), measured) for counter in (USED, WAITED))
    if used_us is None:
        return cannot_tell("there are no samples of its CPU time")
    on_each_us = used_us / len(trial.record.spec.hosts[name].cpus) + (waited_us or 0.0)
    share = 100 * on_each_us * 1e3 / (measured[0][1] - measured[0][0])
    return Seen(share, most=MOST_PERCENT, series=tuple("/".join((name, *counter)) for counter in (USED, WAITED)))
