"""What a flood does to the clients of a server (the procedure `overload`)."""

from __future__ import annotations

from dnsrig.analysis import flood
from dnsrig.analysis.metrics import metric
from dnsrig.analysis.read import Trial


@metric(title="clients' queries answered during the flood", unit="%", better="higher", order=95)
def goodput_percent(trial: Trial) -> float | None:
    """Of the queries of the replayed clients that were due in whole intervals of the flood, those that were answered
    within the client's time-out, with whatever response code."""
    return flood.goodput_percent(trial)


@metric(title="recovery after the flood", unit="s", better="lower", order=95)
def recovery_s(trial: Trial) -> float | None:
    """From the end of the flood to the begin of the first three intervals in a row in which the 90th percentile of the
    clients' latency was at most twice the longest that it had been in the second half of the time before the flood. It
    is known to an interval (`interval_s`); without a value where it did not come back before the replay ended."""
    return flood.recovery_s(trial)
