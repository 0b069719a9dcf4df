"""Queries are lost at every rate, so the loss says nothing of the capacity.

A link or a buffer that loses a few queries in a thousand loses them at 100 queries a second as at 100,000. A ramp whose
limit is below that finds no rate that holds, or one so low that chance left the loss out of a few hundred queries. So
`load` compares the losses of rates: if no more is lost at a rate than below it, the loss does not depend on the rate,
and the ramp goes on to the rate at which more are lost. The capacity is then known, and where the others are lost is
not.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion

ORDER = 56
TITLE = "a loss that does not depend on the rate"
SOURCE = "RFC 2544 section 26.1: throughput is the rate without loss; a loss at every rate leaves none"


def after(trial: Trial) -> Conclusion | None:
    ramp = trial.ramp
    if not ramp.ran or trial.record.outcome not in JUDGED:
        return None
    if ramp.base_loss_share is None:
        return CLEAR
    percent = 100 * ramp.base_loss_share
    return Conclusion(
        "found",
        summary=f"{digits(percent)} % of the queries had no answer at every rate up to {ramp.capacity_qps or 0:,.0f} a second, which is more than "
        "the ramp's limit: a rate held if it lost no more than both together.",
        evidence={"base_loss_percent": round(percent, 4), "capacity_qps": ramp.capacity_qps},
        metrics=("capacity_qps",),
        remedy="Look for what loses them on the way: the loss of the emulated link, a full receive buffer (`nstat -az UdpRcvbufErrors`), a "
        "rate limit of the server. If it belongs to the path that is measured, raise `options.ramp_loss_percent` above it.",
    )
