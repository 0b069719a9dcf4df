"""Median time from the acceptance of a change to the first answer with it by the server under test, for changes that it
served.

It must be shorter than the measurement. Resolution: zones are queried in turn, so about half a second.
"""

from __future__ import annotations

import statistics

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import changes
from dnsrig.runs.trial import Trial

TITLE = "delay of served changes"
UNIT = "ms"


def look(trial: Trial) -> Seen:
    phase = trial.measure
    delays = [(each.served_ns - each.made_ns) / 1e6 for each in changes.followed(trial) if each.served_ns is not None]
    if not delays or phase is None:
        return cannot_tell("no served change was observed")
    measured_ms = (phase.end.monotonic_ns - phase.start.monotonic_ns) / 1e6
    return Seen(statistics.median(delays), most=measured_ms, series=("followed.arrow/seen_ns",))
