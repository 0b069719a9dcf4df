"""The kernel spent the server's CPU time searching for a free port.

connect() on a socket without a local port tries one ephemeral port after the other, and must check each connection in
TIME_WAIT on the way. The fuller the range, the longer the search. It uses much CPU time long before the range is
exhausted.
"""

from __future__ import annotations

from dnsrig.runs.profile import PORT_SEARCH_FRAMES, hottest, share
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell

GROUP = "limits of servers and hosts"
OUTCOMES = COMPARED
TITLE = "CPU time was spent searching for a free port"
SOURCE = (
    "S1: P. Spacek, 30,000 zones: 64 % of a secondary's CPU time (2024); "
    "Linux Plumbers Conference 2023, connect() - why you so slow?"
)
WEIGHT = "explains"
SMALLEST_SHARE = 0.10
"""Smallest share of the samples that needs a remedy."""
FEWEST_SAMPLES = 100
"""With fewer samples, a share of 10 % is only accurate to ±6 % (two standard errors)."""


def after(trial: Trial) -> Conclusion | None:
    record, host = trial.record, trial.subject
    if not record.spec.hosts[host].profile:
        return None
    profile, stacks = record.profiles.get(host), trial.stacks
    if not stacks:
        return cannot_tell((profile.reason if profile else "") or f"No CPU stacks of the {host} were sampled.")
    samples, searching, frame = sum(stacks.values()), share(stacks, PORT_SEARCH_FRAMES), hottest(stacks)
    if samples < FEWEST_SAMPLES or searching is None or frame is None:
        return cannot_tell(f"{samples} CPU samples are too few for a share; {FEWEST_SAMPLES} are needed.")
    if searching < SMALLEST_SHARE:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"{searching:.0%} of {samples:,} CPU samples of the {host} were in the search for a free port; the hottest "
        f"frame was {frame[0]} with {frame[1]:.0%}.",
        evidence={
            "port_search_percent": round(100 * searching, 1),
            "hottest_frame": frame[0],
            "hottest_frame_percent": round(100 * frame[1], 1),
            "samples": samples,
        },
        series=(f"{host}/sockets/tcp_time_wait",),
        metrics=(record.spec.main_metric, f"{record.spec.hosts[host].role}_cpu_s", "time_wait_peak"),
        remedy="Reuse connections, or keep more of the range free: widen net.ipv4.ip_local_port_range, or use several source addresses.",
    )
