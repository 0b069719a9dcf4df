"""How late an instrument may send before its result says something of the instrument: one rule, for procedures and traps."""

from __future__ import annotations

ALWAYS_NS = 1_000_000
"""Send lag at the 99th percentile that is too much in any case."""
NEVER_NS = 100_000
"""A lag below is what the instrument promises, and no reason however fast the answers come."""
SHARE = 0.1
"""Of the latency from sending, at the 99th percentile: more, and a tenth of what is shown is the instrument's."""


def allowed_ns(latency_ns: float) -> float:
    """The lag that is no fault yet. Both are 99th percentiles: of the send lag, and of the latency from sending."""
    return min(ALWAYS_NS, max(SHARE * latency_ns, NEVER_NS))
