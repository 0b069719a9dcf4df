"""Effect of a flood on the clients of a server (the procedure `overload`)."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs import flood
from dnsrig.runs.trial import Trial


@metric(title="clients' queries answered during the flood", unit="%", better="higher", order=95)
def goodput_percent(trial: Trial) -> float | None:
    """Share of the replayed clients' queries, due in whole intervals of the flood, that were answered within the
    client's timeout, with any response code."""
    return flood.goodput_percent(trial)


@metric(title="recovery after the flood", unit="s", better="lower", order=95)
def recovery_s(trial: Trial) -> float | None:
    """Time from the end of the flood to the start of the first three consecutive intervals in which the 90th percentile
    of the clients' latency was at most twice its largest value in the second half of the time before the flood. Its
    resolution is one interval (`interval_s`). None if the server did not recover before the replay ended."""
    return flood.recovery_s(trial)
