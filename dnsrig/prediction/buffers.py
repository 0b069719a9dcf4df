"""Buffers: a connection has no more under way than its receiver has room for, so throughput ≤ window / RTT.

RFC 7323 §1.1. Linux lets a receive buffer grow to the third figure of tcp_rmem and gives about half of it to the
window. The figure was 6 MiB by default for long and is 32 MiB in newer kernels (6.18 has it); here it is 6 MiB, for the
sender's own buffer, 4 MiB by default (tcp_wmem), is then no wider.

With loss it takes longer: what comes after a missing packet fills the buffer until that is repaired, a round trip later
or, if it is lost again, several.
"""

from __future__ import annotations

import math

SOURCE = "RFC 7323 §1.1; Linux ip-sysctl, tcp_rmem and tcp_adv_win_scale"
FACTOR = 1.3
"""Assumed, not compared with a measurement: how much of a buffer is window depends on how full its packets are."""
WINDOW_BYTES = 6_291_456 // 2
FACTOR_WITH_LOSS = 18.0
"""Upwards, as the slowest that was seen: BBR over 300 ms with 10 % of loss and the kernel's own buffer had 0.6 to 4.5
MB/s (docs/results/long-distance.md), where the law says 10.5."""


def bytes_per_s(rtt_s: float, window_bytes: float = WINDOW_BYTES) -> float:
    """Throughput of one connection."""
    if rtt_s < 0 or window_bytes <= 0:
        raise ValueError(f"a window of {window_bytes} bytes and round trips of {rtt_s} s")
    return math.inf if rtt_s == 0 else window_bytes / rtt_s
