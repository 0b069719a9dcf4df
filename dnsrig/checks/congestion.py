"""Congestion control of the socket that sent most, as reported by the kernel (TCP_INFO). It must be the one that the
experiment set for its host.

If there is an emulated path, only connections over it count. The congestion control of the other side does not affect
what this side sends.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial

TITLE = "congestion control of the sender"


def look(trial: Trial) -> Seen:
    flow = sockets.largest(trial)
    if flow is None:
        return cannot_tell("no listed socket sent anything (sockets.arrow)")
    asked = trial.record.spec.hosts[flow.sender].congestion
    if asked is None:
        return cannot_tell(f"{flow.sender} sent most, and the experiment sets no congestion control for it")
    return Seen(flow.congestion, asked=asked, series=(f"{flow.sender}/sockets/congestion",))
