"""Largest segment of the main sender (TCP_INFO): at most the size that a host requested or that a router on the path
allows.

The kernel counts a segment without its options, so it may be some bytes smaller. The size that a host requests applies
to data sent to it. A short transfer may be listed when only its question was acknowledged; then the other side sent
most, and the check cannot decide.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial

TITLE = "largest segment of the sender"
UNIT = "bytes"


def look(trial: Trial) -> Seen:
    flow = sockets.largest(trial)
    if flow is None:
        return cannot_tell("no listed socket sent anything (sockets.arrow)")
    seen = flow.sent["mss_bytes"].max()
    if not isinstance(seen, int) or not seen:
        return cannot_tell("the kernel did not report it")
    limit = sockets.agreed_mss(trial, flow.sender, flow.receiver)
    if limit is None:
        return cannot_tell(f"{flow.sender} sent most, and nothing limits its segments")
    return Seen(seen, most=limit, asked=limit, series=(f"{flow.sender}/sockets/mss_bytes",))
