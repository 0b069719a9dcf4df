"""The largest segment that the sender of most used (TCP_INFO): at most what a host asked for or a router on the way allows.

The kernel counts a segment without its options, so that it may be some bytes less.
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
    hosts = [trial.record.spec.hosts[name] for name in (flow.sender, flow.receiver) if name]
    limits = [value for host in hosts for value in (host.advmss_bytes, host.mss_clamp_bytes) if value]
    if not limits:
        return cannot_tell("the connection that sent most was between hosts that were given no limit")
    return Seen(seen, most=min(limits), asked=min(limits), series=(f"{flow.sender}/sockets/mss_bytes",))
