"""Nothing synchronises the wall clock.

This does not affect dnsrig's own times, which are monotonic and from one machine, or a log that is compared with them,
because the monotonic clock drifts like the wall clock. So the trap reports an unsynchronised clock as `cannot-tell`,
never as found. It misleads if times are compared with another machine's. For a step during a trial see `clock-steps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.rundir import Manifest
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 80
GROUP = "the machine and its clocks"
TITLE = "the wall clock is not synchronised"
SOURCE = "adjtimex(2): STA_UNSYNC; clock_gettime(2): NTP and adjtime(3) slew CLOCK_MONOTONIC too"


def before(manifest: Manifest, conditions: Mapping[str, Any]) -> Conclusion:
    synchronised = conditions.get("clock_synchronised")
    if synchronised:
        return CLEAR
    if synchronised is None:
        return cannot_tell("The kernel did not report whether its clock is synchronised.")
    return cannot_tell(
        "The kernel reports that its clock is not synchronised (adjtimex: STA_UNSYNC), so its error is unknown. Times within "
        "this run are monotonic and not affected. Do not compare its wall-clock times with another machine's."
    )
