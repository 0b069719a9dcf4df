"""`clock compare` with a machine that has a kernel, a boot and clocks of its own, and whose wall clock is set wrong."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from uml_guest import Clocks, guest

from dnsrig.lab import uml

WRONG_BY_NS = 3_700_000_000
SHOWN = ("offset_ns", "error_ns", "rtt_ns", "realtime_offset_ns", "realtime_error_ns")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@pytest.mark.full
def test_a_wall_clock_that_is_set_wrong_is_told_within_the_error(kernel: uml.Kernel) -> None:
    with guest(kernel) as other:
        right = other.clocks()
        before = other.compare()
        wrong = other.clocks(shift_ns=WRONG_BY_NS)
        after = other.compare()
    assert right.boot_id == wrong.boot_id != BOOT_ID.read_text().strip()
    agree(before, right)
    agree(after, wrong)
    for one, two in product(before, after):
        told_ns = two["realtime_offset_ns"] - one["realtime_offset_ns"]
        error_ns = one["realtime_error_ns"] + two["realtime_error_ns"]
        print(f"the wall clock was set by {told_ns / 1e9:.6f} s, ± {error_ns / 1e3:.0f} µs")
        assert abs(told_ns - WRONG_BY_NS) <= error_ns


def agree(comparisons: list[dict[str, Any]], clocks: Clocks) -> None:
    """What was told of both clocks is possible by what the guest itself read."""
    assert len(comparisons) == 2
    for told in comparisons:
        print({name: value / 1e3 for name, value in told.items() if name in SHOWN}, "µs")
        for prefix, (least_ns, most_ns) in (("", clocks.monotonic_ahead_ns), ("realtime_", clocks.realtime_ahead_ns)):
            offset_ns, error_ns = told[f"{prefix}offset_ns"], told[f"{prefix}error_ns"]
            assert least_ns - error_ns <= offset_ns <= most_ns + error_ns
