"""Whether the instrument kept up: the one place that says when a result is the instrument's, not the server's.

At a rate, the instrument keeps up if it sends every query that is due, early enough for the latency to be the server's.
In a closed loop nothing is due: there an instrument that never waits did not keep up. In a ramp the engine itself says
which steps it could not send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.lab.links.expectation import TAIL_SLACK_MS
from dnsrig.rundir import PathSpec
from dnsrig.runs import lag
from dnsrig.runs.load_result import LoadResult
from dnsrig.text import digits

BUSY_SHARE_MAX = 0.98
WRONG_SHARE_MAX = 0.001
"""Largest share of answers that may belong to earlier queries: it hardly moves any percentile up to the 99th."""
BUSY_FROM_S = 0.2
"""A transfer that is over sooner says nothing of how busy its instrument was: starting is part of it."""

LATE_MS_MAX = TAIL_SLACK_MS
"""What the self-test allows the slow end of a link. On 2 CPUs the worst of 101 trials under the running kernel had 3.2
ms."""
LATE_SHARE_MAX = 0.1
"""Of the delay that was asked for. No sender takes such a packet for lost: its time-out is the round trip and at least
200 ms more (TCP_RTO_MIN of Linux), which is longer for all delays below 2 s."""
LINK_DROPS_SHARE_MAX = 0.1
"""Of the packets that were lost as asked for: throughput falls with the square root of the loss (M. Mathis et al., The
Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, 1997), so by 5 %. A path without loss may drop nothing
at its ends; in 155 trials on 2 CPUs none did."""


def why_not(load: LoadResult) -> str:
    """A sentence with the numbers where the instrument did not keep up; empty where it did."""
    if load.wrong_matches_max > WRONG_SHARE_MAX * load.answered:
        return (
            f"up to {load.wrong_matches_max:,} of {load.answered:,} answers may belong to earlier queries with the same"
            " message id: more clients have more ids"
        )
    if load.intervals_lost:
        return f"the instrument lost {load.intervals_lost:,} intervals of what it saw"
    if load.model == "ramp":
        return _ramp(load)
    if load.model == "closed":
        return "" if load.busy_share < BUSY_SHARE_MAX else _busy(load.busy_share)
    return _rate(load)


def why_transfer_did_not(summary: Mapping[str, Any]) -> str:
    """The same of `transfer`, which is never idle when it is what decides; ``summary``: its own."""
    if summary["rows_lost"]:
        return f"the instrument lost {summary['rows_lost']:,} rows of what it saw"
    if summary["elapsed_ns"] / 1e9 < BUSY_FROM_S or summary["busy_share"] < BUSY_SHARE_MAX:
        return ""
    return _busy(summary["busy_share"])


def why_link_did_not(summary: Mapping[str, Any], path: PathSpec, *, tick_s: float = 0.0) -> str:
    """The same of a direction of `link`; ``summary``: what it says of that direction. netem says nothing of the kind.

    ``tick_s``: how coarse the kernel's timers are, without which nobody wakes in time.
    """
    late = summary.get("late_ns")
    if late is None:
        return ""
    late_ms, allowed_ms = late["p99"] / 1e6, max(LATE_MS_MAX, LATE_SHARE_MAX * path.delay_ms) + 1e3 * tick_s
    if late_ms > allowed_ms:
        return (
            f"the link was late: 1 % of its packets arrived {digits(late_ms)} ms after they were due or later,"
            f" where {digits(allowed_ms)} ms are allowed"
        )
    dropped = (summary.get("missed") or 0) + summary["refused"]
    if dropped > LINK_DROPS_SHARE_MAX * summary["lost"]:
        return (
            f"the link was too slow: {dropped:,} packets beside the {summary['packets']:,} that it carried were dropped at"
            f" its ends, and {summary['lost']:,} as asked for"
        )
    return ""


def _rate(load: LoadResult) -> str:
    if load.unsent:
        why = ", as no message id was free: more clients have more ids" if load.waited_for_id else ""
        return f"the instrument never sent {load.unsent:,} of {load.due:,} queries that were due{why}"
    return f"the instrument was late: {late}" if (late := lag.why_not(load)) else ""


def _busy(share: float) -> str:
    return (
        f"the instrument was the bottleneck: its busiest thread had work {share:.0%} of the time"
        f" (less than {BUSY_SHARE_MAX:.0%} is wanted)"
    )


def _ramp(load: LoadResult) -> str:
    if not load.capacity_is_lower_bound or load.capacity_qps is None:
        return ""
    return (
        f"the instrument was the bottleneck: the server held {load.capacity_qps:,.0f} QPS, and the instrument could"
        " not find out whether it holds more"
    )
