"""The part of a link's self-test that is about far ends: has each address the delay that it was to have?

Datagrams go both ways between a host and some addresses of the other, the nearest, the farthest and some between. Each
address is judged by itself, so one delay for all, other addresses' delays or none at all do not pass.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from ipaddress import ip_network
from typing import Any

from dnsrig.lab.host import Host
from dnsrig.lab.links import expectation, far, schedule
from dnsrig.lab.links._ends import versions
from dnsrig.lab.links.datagrams import Probe, Way, probe
from dnsrig.lab.links.expectation import SLACK_SHARE, Interval
from dnsrig.rundir import Address, LinkSpec, PathSpec
from dnsrig.text import digits

ADDRESSES = 6
PACKETS = 9
"""To and from each address: of an odd number the median is one of them."""
INTERVAL_S = 0.02


def check(left: Host, right: Host, spec: LinkSpec, began_s: float, *, tick_s: float = 0.0) -> dict[str, Any]:
    """What was found of some addresses, and in ``wrong`` what is not as asked."""
    path = spec.forward or spec.reverse
    assert path is not None and path.far is not None
    found: dict[str, dict[str, float]] = {}
    wrong: list[str] = []
    with ExitStack() as stack:
        probes: list[tuple[Address, Probe]] = []
        passing = [prefix for prefix in path.far.prefixes if ip_network(prefix).version in versions(spec.mtu_bytes)]
        for prefix in passing:
            there = right if prefix in right.spec.ranges else left
            for address in far.sample(path.far, prefix, ADDRESSES):
                at = {"at_right": address} if there is right else {"at_left": address}
                probes.append((address, stack.enter_context(probe(left, right, **at))))
        for _ in range(PACKETS):
            for _, one in probes:
                one.send(one.forward, schedule.SMALL_BYTES)
                one.send(one.reverse, schedule.SMALL_BYTES)
            _collect(probes, INTERVAL_S)
        ways = [way for way in (spec.forward, spec.reverse) if way is not None]
        _collect(probes, max(map(schedule.longest_wait_s, ways)))
        for address, one in probes:
            for name, way, asked in (("forward", one.forward, spec.forward), ("reverse", one.reverse, spec.reverse)):
                if asked is None or asked.far is None:
                    continue
                figures = found.setdefault(str(address), {"asked_ms": round(far.one_way_ms(asked.far, address), 3)})
                median_ms, reason = judged(address, way, asked, began_s, tick_s=tick_s)
                if median_ms is not None:
                    figures[f"{name}_ms"] = round(median_ms, 3)
                if reason:
                    wrong.append(f"{name}: {reason}")
    return {"addresses": found, "wrong": wrong}


def judged(
    address: Address, way: Way, path: PathSpec, began_s: float, *, tick_s: float = 0.0
) -> tuple[float | None, str]:
    """Of one address and direction: the median delay in milliseconds, and what is wrong with it; empty if nothing."""
    assert path.far is not None
    own_ms = far.one_way_ms(path.far, address)
    sent = [(time_s - began_s, nbytes) for time_s, nbytes in zip(way.sent_s, way.nbytes)]
    arrived = [None if time_s is None else time_s - began_s for time_s in way.arrivals(range(len(sent)))]
    found = expectation.delays(sent, arrived)
    if found is None:
        # At a loss of 20 % so few arrive by chance from one address of 50,000; at more it is not judged.
        is_wrong = path.loss_percent_at(sent[0][0]) < 20
        return None, f"next to nothing arrives of {address}" if is_wrong else ""
    interval = _expected(path, own_ms, sent, tick_s)
    if found.median_ms in interval:
        return found.median_ms, ""
    expected = f"{digits(interval.low, 4)} to {digits(interval.high, 4)} was to be expected"
    return found.median_ms, f"delay of {address} {digits(found.median_ms, 4)} ms where {expected}"


def _expected(path: PathSpec, own_ms: float, sent: list[tuple[float, int]], tick_s: float) -> Interval:
    common = expectation.expected(path, sent, tick_s=tick_s).median_ms
    return Interval(common.low + own_ms * (1 - SLACK_SHARE), common.high + own_ms * (1 + SLACK_SHARE))


def _collect(probes: list[tuple[Address, Probe]], wait_s: float) -> None:
    """The kernel notes when each came, so it does not matter that they are looked at one after another."""
    until_s = time.monotonic() + wait_s
    for _, one in probes:
        one.collect(until_s)
