"""Anchor pairs: the monotonic and the realtime clock read as nearly together as the machine allows."""

from __future__ import annotations

import time

from dnsrig.rundir import Anchor

READINGS = 5


def anchor() -> Anchor:
    """Realtime between two readings of monotonic, the tightest of five; the error is half the gap."""
    return min((_reading() for _ in range(READINGS)), key=lambda reading: reading.error_ns)


def _reading() -> Anchor:
    before = time.monotonic_ns()
    realtime = time.time_ns()
    after = time.monotonic_ns()
    return Anchor(monotonic_ns=(before + after) // 2, realtime_ns=realtime, error_ns=(after - before + 1) // 2)
