"""How long after a change was accepted the server under test served it, in the median of the changes that it did serve.

It must be less than the trial measured. How finely it is known: zones are asked for in turn, so to some half a second.
"""

from __future__ import annotations

import statistics

from dnsrig.analysis import changes
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "delay of the changes that were served"
UNIT = "ms"


def look(trial: Trial) -> Seen:
    phase = trial.measure
    delays = [(each.served_ns - each.made_ns) / 1e6 for each in changes.followed(trial) if each.served_ns is not None]
    if not delays or phase is None:
        return cannot_tell("no change was seen to be served")
    measured_ms = (phase.end.monotonic_ns - phase.start.monotonic_ns) / 1e6
    return Seen(statistics.median(delays), most=measured_ms, series=("followed.arrow/seen_ns",))
