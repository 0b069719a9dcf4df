"""A long path without selective acknowledgements, timestamps or window scaling: one side does not offer them, so
neither uses them.

Both sides must agree on all three in the handshake. Without window scaling (RFC 7323) at most 65,535 bytes are in
flight, so with 300 ms of round trip the rate is at most 218 kB/s, however fast the path is. Without SACK (RFC 2018) a
sender learns of only one lost segment in each round trip. Without timestamps it measures few round trips, and none for
segments that it sent again. Old tuning advice and some firewalls disable them.

How it is detected: from the sender's socket, which shows what was negotiated. On a short path this hardly matters, and
the trap is not reported.
"""

from __future__ import annotations

from dnsrig.runs import sockets
from dnsrig.runs.sockets import Flow
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 42
GROUP = "the network and TCP"
OUTCOMES = JUDGED
TITLE = "no SACK, timestamps or window scaling over a long path"
SOURCE = "S4: M. Prause: the receiver needs SACK, timestamps and window scaling (2015); RFC 7323; RFC 2018"
WEIGHT = "explains"
LONG_MS = 10.0
"""Shortest round trip that is examined: over it, the window without scaling still allows 6.5 MB/s, or 52 Mbit/s."""
SYSCTLS = {
    "sacks": "net.ipv4.tcp_sack",
    "timestamps": "net.ipv4.tcp_timestamps",
    "window_scaling": "net.ipv4.tcp_window_scaling",
}
"""Negotiated options, as in `Trial.sockets`, and the sysctls that switch them off."""
WORDS = {"sacks": "SACK", "timestamps": "timestamps", "window_scaling": "window scaling"}
LARGEST_WINDOW_BYTES = 65_535
"""The window field has 16 bits (RFC 9293, section 3.1); only scaling allows more."""


def after(trial: Trial) -> Conclusion | None:
    flow = sockets.largest(trial)
    if flow is None:
        return None
    if flow.round_trip_ms is None:
        return cannot_tell("The round trip of the largest connection is not known.")
    missing = [name for name in SYSCTLS if not flow.sent[name][-1]]
    if not missing or flow.round_trip_ms < LONG_MS:
        return CLEAR
    return _found(trial, flow, missing, flow.round_trip_ms)


def _found(trial: Trial, flow: Flow, missing: list[str], round_trip_ms: float) -> Conclusion:
    sides = {SYSCTLS[name]: sides_without(trial, flow, SYSCTLS[name]) for name in missing}
    blamed = sorted({side for found in sides.values() for side in found})
    where = f" The {' and the '.join(blamed)} had switched it off." if blamed else ""
    most = ""
    if "window_scaling" in missing:
        most = f" Without window scaling this path carries at most {digits(LARGEST_WINDOW_BYTES / round_trip_ms)} kB/s a connection."
    return Conclusion(
        "found",
        summary=f"{flow.sender} and {flow.receiver} did not agree on {', '.join(WORDS[name] for name in missing)}, over a path with a round trip of "
        f"{digits(round_trip_ms)} ms.{where}{most}",
        evidence={
            **{f"agreed_{name}": bool(flow.sent[name][-1]) for name in SYSCTLS},
            **{sysctl: ", ".join(found) or None for sysctl, found in sides.items()},
            "round_trip_ms": round(round_trip_ms, 3),
        },
        metrics=(trial.record.spec.main_metric, "throughput_kbytes_per_s", "transfer_time_s", "retransmitted_percent"),
        remedy=f"Set {' and '.join(f'{sysctl} = 1' for sysctl in sides)} on both sides, and check whether a firewall strips options from SYN packets.",
    )


def sides_without(trial: Trial, flow: Flow, sysctl: str) -> list[str]:
    """The hosts of the two that had it switched off, according to the recorded conditions or else to the experiment."""
    hosts = (flow.receiver, flow.sender)
    return [host for host in hosts if sockets.sysctl_of(trial, host, sysctl) == "0"]
