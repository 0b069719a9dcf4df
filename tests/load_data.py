"""Writes what `dnsrig-engine load` leaves in a trial, for tests: nothing in it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hdrh.histogram import HdrHistogram

START_S = 1_735_732_800.25

Counted = dict[int, int]
"""Value in ns -> how many."""


def write_hlog(path: Path, intervals: Sequence[dict[str, Counted]], duration_s: float = 1.0) -> None:
    """latency.hlog: of each interval the counts by tag."""
    lines = ["#dnsrig load", f"#[StartTime: {START_S:.3f} (seconds since epoch)]"]
    for number, by_tag in enumerate(intervals):
        start_s = number * duration_s
        lines += [f"Tag={tag},{start_s:.3f},{duration_s:.3f},{_encoded(counted)}" for tag, counted in by_tag.items()]
    path.write_text("\n".join(lines) + "\n")


def _encoded(counted: Counted) -> str:
    """The largest value, and the payload."""
    largest = max(counted, default=0)
    histogram = HdrHistogram(1, max(2, largest), 3)
    for value, count in counted.items():
        histogram.record_value(value, count)
    return f"{float(largest):.3f},{histogram.encode().decode('ascii')}"
