"""Queries are lost at every rate, so the loss does not show the capacity.

A link or a buffer that loses a few queries in a thousand does so at 100 queries a second as well as at 100,000. A ramp
with a lower limit for losses then finds no rate that passes, or a very low one at which no query was lost by chance. So
`load` compares the losses at different rates: if a rate loses no more than the rates below it, the loss does not depend
on the rate, and the ramp continues to the rate at which more queries are lost. Then the capacity is known, but not
where the other queries are lost.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion

ORDER = 56
GROUP = "the load generator"
OUTCOMES = JUDGED
TITLE = "queries are lost at every rate"
SOURCE = "RFC 2544 section 26.1: throughput is the rate without loss; with loss at every rate there is no such rate"


def after(trial: Trial) -> Conclusion | None:
    ramp = trial.ramp
    if not ramp.ran:
        return None
    if ramp.base_loss_share is None:
        return CLEAR
    percent = 100 * ramp.base_loss_share
    return Conclusion(
        "found",
        summary=f"{digits(percent)} % of the queries had no answer at every rate up to {ramp.capacity_qps or 0:,.0f} a second. This is more than "
        "the ramp's limit for losses, so a rate passed if it lost no more than this share and the limit together.",
        evidence={"base_loss_percent": round(percent, 4), "capacity_qps": ramp.capacity_qps},
        metrics=("capacity_qps",),
        remedy="Find out where they are lost: the loss of the emulated link, a full receive buffer (`nstat -az UdpRcvbufErrors`), a "
        "rate limit of the server. If the loss belongs to the measured path, raise `options.ramp_loss_percent` above it.",
    )
