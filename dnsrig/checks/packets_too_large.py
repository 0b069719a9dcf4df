"""Number of packets that were dropped because they exceeded the MTU of the path, which is smaller than the interface
MTU. Without such packets, the path MTU had no effect.
"""

from __future__ import annotations

import polars as pl

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "packets dropped because of their size"


def look(trial: Trial) -> Seen:
    rows, phase = [rows for rows in trial.links().values() if not rows.is_empty()], trial.measure
    if not rows or phase is None:
        return cannot_tell("the link did not count them (only `tun` does)")
    measured = pl.col("time_ns").is_between(phase.start.monotonic_ns, phase.end.monotonic_ns)
    return Seen(sum(int(each.filter(measured)["too_big"].sum()) for each in rows), least=1, series=("link/too_big",))
