"""Congestion control: what one TCP connection makes of a path with a round trip and random loss.

Each algorithm has a mean congestion window for a probability p of loss, in segments; the throughput is that many
segments a round trip, less what time-outs take (Padhye and others, 1998):

    throughput = MSS / (RTT / W + RTO · min(1, 9/4W) · p (1 + 32 p²))

For Reno's window that is their formula: 3 / the window at which a loss is met is the chance that it cannot be repaired
without a time-out, and the mean is 3/4 of that window. Linux repairs more without one (RACK and tail loss probes, RFC
8985), so with much loss the truth is rather above.

- ``reno``: W = sqrt(3/2p): Mathis, Semke, Mahdavi, Ott, The macroscopic behavior of the TCP congestion avoidance
  algorithm (1997)
- ``cubic``: RFC 9438 §5.1, equation for the average window with C = 0.4 and β = 0.7; where Reno's is larger, that
  (§4.3)
- ``hybla``: Caini and Firrincieli, TCP Hybla (2004): grows as a connection of 25 ms would, so W = RTT / 25 ms times
  Reno's
- ``illinois``: Liu, Başar, Srikant, TCP-Illinois (2008): increase up to 10 and decrease down to 1/8 while delays are
  small, and Reno's own below 15 segments, as Linux does it. An AIMD of a and b has W = sqrt(a (2 - b) / 2bp), so at
  best 8.7/sqrt(p). Coarse: jitter, which it takes for a queue, brings it towards Reno
- ``bbr`` (version 1): Cardwell and others, BBR: congestion-based congestion control (2016): loss is no signal; it fills
  the path up to 15 % of loss, by design up to 20 %. Beyond, nothing is known but that it falls: Reno's figure is then
  the lower bound

Loss counts in the direction of the data. Not in the laws: queues that overflow, other traffic, buffers below bandwidth
× delay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dnsrig.prediction.volume import SEGMENT_BYTES

CUBIC_C, CUBIC_BETA = 0.4, 0.7
"""RFC 9438 §4.6 and §5."""
HYBLA_RTT_S = 0.025
ILLINOIS_INCREASE_MAX, ILLINOIS_DECREASE_MIN = 10.0, 1 / 8
ILLINOIS_WINDOW = 15
"""Segments below which Linux' Illinois is Reno (its parameter win_thresh)."""
BBR_LOSS_MAX = 0.2
RTO_MIN_S = 0.2
"""Linux adds at least so much to the round trip (TCP_RTO_MIN), or four times its deviation (RFC 6298)."""
HELD_LOSS_MAX = 0.1
"""The most loss at which anything was measured that the laws were compared with."""
LARGEST_WINDOW = 1e9
LEAST_LOSS = 1e-12
"""Below it nothing is lost in any transfer there will be."""


@dataclass(frozen=True)
class Algorithm:
    """``window(loss, rtt_s)``: mean congestion window in segments; None: loss does not limit it."""

    name: str
    window: Callable[[float, float], float] | None
    factor: float
    """How far throughput that was published, or measured with Linux over minutes, lay from the law: see
    docs/explanation/model.md."""
    source: str


def reno_window(loss: float, rtt_s: float = 0.0) -> float:
    return math.sqrt(1.5 / loss)


def cubic_window(loss: float, rtt_s: float) -> float:
    """RFC 9438 §5.1; its tables are met by it with the window that the RFC takes for Reno, 1.2 / sqrt(p)."""
    growth = math.pow(CUBIC_C * (3 + CUBIC_BETA) / (4 * (1 - CUBIC_BETA)), 0.25)
    return max(growth * math.pow(rtt_s / loss, 0.75), reno_window(loss))


def hybla_window(loss: float, rtt_s: float) -> float:
    return max(1.0, rtt_s / HYBLA_RTT_S) * reno_window(loss)


def illinois_window(loss: float, rtt_s: float) -> float:
    """At best."""
    least = reno_window(loss)
    if least < ILLINOIS_WINDOW:
        return least
    return math.sqrt(ILLINOIS_INCREASE_MAX * (2 - ILLINOIS_DECREASE_MIN) / (2 * ILLINOIS_DECREASE_MIN * loss))


_FOUND = (
    Algorithm("reno", reno_window, 1.7, "Mathis et al. (1997); Padhye et al. (1998)"),
    Algorithm("cubic", cubic_window, 1.7, "RFC 9438 §5.1; Padhye et al. (1998)"),
    Algorithm("hybla", hybla_window, 2.6, "Caini, Firrincieli (2004); Padhye et al. (1998)"),
    Algorithm("illinois", illinois_window, 2.6, "Liu, Başar, Srikant (2008); Padhye et al. (1998)"),
    Algorithm("bbr", None, 1.25, "Cardwell et al. (2016)"),
)
ALGORITHMS = {algorithm.name: algorithm for algorithm in _FOUND}


def rto_s(rtt_s: float, jitter_s: float = 0.0) -> float:
    """A retransmission time-out as Linux sets it; ``jitter_s`` is each way's, uniform, so the deviation of both is
    about 2/3 of it."""
    return rtt_s + max(RTO_MIN_S, 4 * jitter_s * 2 / 3)


def bytes_per_s(algorithm: str, loss: float, rtt_s: float, jitter_s: float = 0.0) -> float:
    """What one connection reaches where the path's rate does not limit it; infinite where loss does not either."""
    if not 0 <= loss < 1 or rtt_s < 0:
        raise ValueError(f"loss of {loss}, round trips of {rtt_s} s")
    law = ALGORITHMS[algorithm].window
    if loss < LEAST_LOSS or rtt_s == 0 or (law is None and loss <= BBR_LOSS_MAX):
        return math.inf
    window = min(LARGEST_WINDOW, (law or reno_window)(loss, rtt_s))
    timed_out = min(1.0, 9 / (4 * window)) * loss * (1 + 32 * loss**2)
    return SEGMENT_BYTES / (rtt_s / window + rto_s(rtt_s, jitter_s) * timed_out)


def is_bound(algorithm: str, loss: float) -> bool:
    """Whether the law says only what is reached at least."""
    return ALGORITHMS[algorithm].window is None and loss > BBR_LOSS_MAX
