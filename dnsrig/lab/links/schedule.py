"""What the self-test of a link sends: enough to judge by, and not so much that the test itself fills the path. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dnsrig.rundir import PathSpec

SMALL_BYTES = 60
STEADY_S = 1.0
MOST_PER_S = 1000.0
LEAST_PER_S = 20.0
SHARE_OF_RATE = 0.2
SHARE_OF_LIMIT = 0.5
BURST_S = 0.4
"""How long a burst may take at the rate asked for."""
MOST_BURST_PACKETS = 2000
LEAST_BURST_PACKETS = 8


@dataclass(frozen=True)
class Steady:
    """Small packets, evenly spaced: delay, jitter, loss, order."""

    packets: int
    interval_s: float
    nbytes: int = SMALL_BYTES


def steady(path: PathSpec) -> Steady:
    """One of a direction."""
    per_s = MOST_PER_S
    if path.rate_mbit is not None:
        per_s = min(per_s, SHARE_OF_RATE * path.rate_mbit * 1e6 / 8 / SMALL_BYTES)
    if longest_s := path.longest_ms / 1e3:
        per_s = min(per_s, SHARE_OF_LIMIT * path.limit_packets / longest_s)
    per_s = max(per_s, LEAST_PER_S)
    return Steady(int(per_s * STEADY_S), 1 / per_s)


def burst(path: PathSpec, interface_mtu_bytes: int) -> list[int]:
    """The sizes of the packets of a burst that shows the rate; empty where none was asked for. It fits into the
    queue."""
    if path.rate_mbit is None:
        return []
    size = path.mtu_bytes or interface_mtu_bytes
    wanted = math.ceil(path.rate_mbit * 1e6 / 8 * BURST_S / size)
    room = int(0.75 * path.limit_packets)
    return [size] * max(LEAST_BURST_PACKETS, min(wanted, room, MOST_BURST_PACKETS))


def longest_wait_s(path: PathSpec) -> float:
    """After which what has not arrived is lost."""
    slack_s = 0.1
    return path.longest_ms / 1e3 + slack_s


def burst_s(path: PathSpec, nbytes: list[int]) -> float:
    return sum(nbytes) * 8 / (path.rate_mbit * 1e6) if path.rate_mbit else 0.0
