"""Measurements of a machine without trials: its clocks, and the links that it can make."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from dnsrig.certificate import Clock, LinkTest, LinkWay, Measured, Step
from dnsrig.comparison import calibration
from dnsrig.errors import DnsrigError
from dnsrig.lab import addresses, conditions, disturbances, idle
from dnsrig.lab import clock as clocks
from dnsrig.lab import links as lab_links
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, PathSpec

READINGS = 100_000
"""Readings of each clock: they take about 10 ms."""
ANCHORS = 1000
PATH = PathSpec(delay_ms=10, jitter_ms=1, loss_percent=1, rate_mbit=50)
"""Both directions of the emulated link: each property that a path can have, with moderate values."""


def clock() -> Clock:
    state = clocks.synchronisation()
    errors_ns = calibration.measured([float(clocks.anchor().error_ns) for _ in range(ANCHORS)])
    assert errors_ns is not None
    return Clock(
        source=conditions.read(disturbances.CLOCKSOURCE),
        monotonic=_step(time.CLOCK_MONOTONIC),
        realtime=_step(time.CLOCK_REALTIME),
        anchor_error_ns=errors_ns,
        synchronised=None if state is None else state.synchronised,
        error_bound_us=None if state is None else state.error_bound_us,
    )


def _step(which: int) -> Step:
    """The smallest step between two different readings; 0 if the clock never moved."""
    read, smallest_ns = time.clock_gettime_ns, 0
    before_ns = read(which)
    for _ in range(READINGS):
        now_ns = read(which)
        step_ns = now_ns - before_ns
        if step_ns > 0 and (step_ns < smallest_ns or not smallest_ns):
            smallest_ns = step_ns
        before_ns = now_ns
    return Step(smallest_ns=smallest_ns, resolution_ns=round(1e9 * time.clock_getres(which)), readings=READINGS)


def links(note: Callable[[str], None]) -> list[LinkTest]:
    """Self-tests of all kinds of links within this machine."""
    found = []
    for name, kind in lab_links.within_machine().items():
        if missing := kind.unavailable():
            found.append(LinkTest(kind=name, works=False, missing=missing))
        else:
            note(f"self-test of the link {name}")
            found.append(_tested(name))
    return found


def _tested(kind: str) -> LinkTest:
    # Hosts have CPUs as in a trial: the server has the last one.
    cpus = sorted(os.sched_getaffinity(0))
    hosts = {
        name: HostSpec(address=str(addresses.TRIED.ipv4[number]), cpus=[cpu])
        for number, (name, cpu) in enumerate((("left", cpus[0]), ("right", cpus[-1])), start=1)
    }
    path = PATH if lab_links.kinds()[kind].EMULATES else None
    spec = lab_links.joined(("left", "right"), kind, forward=path, reverse=path)
    try:
        with idle.awake(), Network(hosts, [spec]) as network:
            (report,) = network.check_links()
    except DnsrigError as error:
        return LinkTest(kind=kind, works=False, wrong=[error.message])
    return link_test(kind, report, None if path is None else 2e3 * PATH.delay_ms)


def link_test(kind: str, report: dict[str, Any], asked_us: float | None) -> LinkTest:
    """The report of a self-test, as it is in the certificate."""
    rtt = None
    if "rtt_median_us" in report:
        rtt = Measured(median=report["rtt_median_us"], low=report["rtt_min_us"], high=report["rtt_max_us"], trials=1)
    ways = {way: report[way] for way in ("forward", "reverse") if way in report}
    return LinkTest(
        kind=kind,
        works=report["works"],
        rtt_us=rtt,
        rtt_asked_us=asked_us,
        ways={way: LinkWay(asked=each["asked"], found=each["found"]) for way, each in ways.items()},
        wrong=report.get("wrong", []),
    )
