"""The congestion control of the socket that sent most, as the kernel says of it (TCP_INFO): it must be what its host
was given.

Of connections over the emulated path where there is one. What another side was given governs nothing that is sent here.
"""

from __future__ import annotations

from dnsrig.analysis import sockets
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "congestion control of the sender"


def look(trial: Trial) -> Seen:
    flow = sockets.largest(trial)
    if flow is None:
        return cannot_tell("no socket was listed that sent anything (sockets.arrow)")
    asked = trial.record.spec.hosts[flow.sender].congestion
    if asked is None:
        return cannot_tell(f"most was sent by {flow.sender}, which was given none")
    return Seen(flow.congestion, asked=asked, series=(f"{flow.sender}/sockets/congestion",))
