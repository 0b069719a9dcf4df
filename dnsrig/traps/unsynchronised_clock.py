"""Nothing keeps the wall clock right.

Of no consequence for dnsrig's own times, which are monotonic and of one machine, nor for a log that is held against
them: the monotonic clock drifts as the wall clock does. So an unsynchronised clock is told, and never found. It
misleads where times are held against another machine's; a step during a trial is for the trap clock-steps to find.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.rundir import Manifest
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 80
TITLE = "the wall clock is not synchronised"
SOURCE = "adjtimex(2): STA_UNSYNC; clock_gettime(2): NTP and adjtime(3) slew CLOCK_MONOTONIC too"


def before(manifest: Manifest, conditions: Mapping[str, Any]) -> Conclusion:
    synchronised = conditions.get("clock_synchronised")
    if synchronised:
        return CLEAR
    if synchronised is None:
        return cannot_tell("The kernel did not say whether its clock is synchronised.")
    return cannot_tell(
        "The kernel says that its clock is not synchronised (adjtimex: STA_UNSYNC), so how wrong it is nobody knows. Times within "
        "this run are monotonic and unaffected; do not hold its wall-clock times against another machine's."
    )
