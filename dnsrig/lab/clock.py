"""Anchor pairs: the monotonic and the realtime clock read as nearly together as the machine allows."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass

from dnsrig.rundir import Anchor

READINGS = 5
TIME_ERROR = 5
"""adjtimex(2): what it returns of a clock that nothing synchronises (STA_UNSYNC)."""


def anchor() -> Anchor:
    """Realtime between two readings of monotonic, the tightest of five; the error is half the gap."""
    return min((_reading() for _ in range(READINGS)), key=lambda reading: reading.error_ns)


def _reading() -> Anchor:
    before = time.monotonic_ns()
    realtime = time.time_ns()
    after = time.monotonic_ns()
    return Anchor(monotonic_ns=(before + after) // 2, realtime_ns=realtime, error_ns=(after - before + 1) // 2)


@dataclass(frozen=True)
class Synchronisation:
    """State of the realtime clock, as the kernel reports it; ``error_bound_us`` is 16 s if the kernel does not know."""

    synchronised: bool
    error_bound_us: int


class _Timex(ctypes.Structure):
    """The beginning of ``struct timex`` of adjtimex(2), and room for the rest of it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("rest", ctypes.c_byte * 512),
    )


def synchronisation() -> Synchronisation | None:
    """Read, never set: ``modes`` is 0. None where the system does not say."""
    state = _Timex()
    answer = ctypes.CDLL(None).adjtimex(ctypes.byref(state))
    return None if answer < 0 else Synchronisation(answer != TIME_ERROR, int(state.maxerror))
