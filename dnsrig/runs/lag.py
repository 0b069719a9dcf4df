"""The limits of a load generator's lateness: one rule, for procedures and traps.

- Lateness makes a latency an interval (docs/explanation/latency.md), and a difference counts if it holds at both ends.
  So most late trials still allow statements.
- An interval that is too wide (`too_wide`) allows none: the trial is invalid, and `why_not` is the reason.
- Traps report lateness as a finding, beginning with the same limits.

Runs of earlier versions have only the upper end: for them lateness itself decides.
"""

from __future__ import annotations

from dnsrig.runs.load_result import LoadResult
from dnsrig.text import digits

ALWAYS_NS = 1_000_000
"""Send lag at the 99th percentile that is too much in any case."""
NEVER_NS = 100_000
"""A lag below is what the instrument promises, and no reason however fast the answers come."""
SHARE = 0.1
"""Share of the latency from sending, at the 99th percentile; beyond it, a tenth of the figure is the instrument's."""

WIDEST_RATIO = 10
"""Upper end to lower end, at the 99th percentile. Beyond, not even the order of magnitude is the server's. Below, the
interval is drawn, and is of use: the server of S2 that stops for a second differs from a server that answers
in 0.3 ms by a factor of 1,000."""
WIDEST_NS = ALWAYS_NS
"""Upper end less lower end that is no fault whatever the ratio: 0.02 to 0.9 ms still tells that no client waited a
millisecond."""


def allowed_ns(latency_ns: float) -> float:
    """The lag that is no fault yet. Both are 99th percentiles: of the send lag, and of the latency from sending."""
    return min(ALWAYS_NS, max(SHARE * latency_ns, NEVER_NS))


def too_wide(lower_ns: float, upper_ns: float) -> bool:
    """Whether a latency that lies between these ends allows no statement of the server."""
    return upper_ns - lower_ns > WIDEST_NS and upper_ns > WIDEST_RATIO * lower_ns


def why_not(load: LoadResult) -> str:
    """Why the lateness of a load at a rate allows no statement about the server; empty if it allows one."""
    lag_ms, answer_ms, due_ms, lower_ms = (
        (figures.get("p99") or 0) / 1e6
        for figures in (load.lag_ns, load.sent_latency_ns, load.latency_ns, load.lower_latency_ns)
    )
    late = f"1 % of the queries were sent {digits(lag_ms)} ms after they were due or later"
    if load.lower_latency_ns:
        if not too_wide(lower_ms * 1e6, due_ms * 1e6):
            return ""
        return f"{late}, so p99 lies between {digits(lower_ms)} and {digits(due_ms)} ms: more than {WIDEST_RATIO} times and {WIDEST_NS / 1e6:g} ms apart"
    allowed_ms = allowed_ns(answer_ms * 1e6) / 1e6
    if lag_ms <= allowed_ms:
        return ""
    return f"{late}, where {digits(allowed_ms)} ms are allowed beside answers of {digits(answer_ms)} ms (p99)"
