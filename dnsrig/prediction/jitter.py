"""Jitter that keeps packets in order raises the delay.

A packet that drew a short delay waits for those before it that drew long ones, so the delay of a busy path is near the
longest that jitter allows, and not near the middle. netem does so where a rate is set; with `delay` and jitter alone it
lets packets overtake each other, and the delay stays in the middle.

For packets that come as a Poisson process of rate λ, each with a delay drawn uniformly from m ± j, and delivered in
order, the delay D of a packet is the largest of what it and those before it have left. No earlier packet holds it
beyond x with probability exp(-λ (m + j - x)² / 4j), and its own draw is below x with probability (x - m + j) / 2j.
Integrating gives

    mean = m + j - sqrt(πj/λ) erf(sqrt(λj)) + (1 - exp(-λj)) / λ

At 1,700 packets a second and 125 ± 50 ms that is 166 ms; netem was measured at 164 ms (p50).
"""

from __future__ import annotations

import math

SMALL = 1e-6
"""Smallest λj: below it no packet meets another, and the closed form would be a difference of large numbers."""


def delay_s(delay_s: float, jitter_s: float, packets_per_s: float, *, ordered: bool = True) -> float:
    """Mean one-way delay of a packet of a stream of ``packets_per_s``; without order or jitter it is ``delay_s``."""
    if min(delay_s, jitter_s, packets_per_s) < 0:
        raise ValueError(f"{delay_s} s ± {jitter_s} s at {packets_per_s} packets a second")
    met = packets_per_s * jitter_s
    if not ordered or met < SMALL:
        return delay_s
    waited = math.sqrt(math.pi * jitter_s / packets_per_s) * math.erf(math.sqrt(met))
    return delay_s + jitter_s - waited - math.expm1(-met) / packets_per_s


def round_trip_s(rtt_s: float, jitter_s: float, packets_per_s: float, *, ordered: bool = True) -> float:
    """Mean round trip: half of ``rtt_s`` each way, each ± ``jitter_s``."""
    return 2 * delay_s(rtt_s / 2, jitter_s, packets_per_s, ordered=ordered)
