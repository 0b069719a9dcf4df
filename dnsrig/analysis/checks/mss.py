"""The largest segment that the sender of most used (TCP_INFO): at most what a host asked for or a router on the way
allows.

The kernel counts a segment without its options, so that it may be some bytes less. What a host asks for goes for what
is sent to it. A short transfer may be listed when only its question was acknowledged: then most was sent the other way,
and nothing is told.
"""

from __future__ import annotations

from dnsrig.analysis import sockets
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "largest segment of the sender"
UNIT = "bytes"


def look(trial: Trial) -> Seen:
    flow = sockets.largest(trial)
    if flow is None:
        return cannot_tell("no socket was listed that sent anything (sockets.arrow)")
    seen = flow.sent["mss_bytes"].max()
    if not isinstance(seen, int) or not seen:
        return cannot_tell("the kernel did not say")
    limit = sockets.agreed_mss(trial, flow.sender, flow.receiver)
    if limit is None:
        return cannot_tell(f"most was sent by {flow.sender}, whose segments nothing limits")
    return Seen(seen, most=limit, asked=limit, series=(f"{flow.sender}/sockets/mss_bytes",))
