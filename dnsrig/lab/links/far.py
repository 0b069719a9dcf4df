"""Delays that the far ends of packets add to a link, and the part of its self-test that is about them.

The engine's `link` draws the delay of an address by a hash of it (engine/…/link/address_delays.rs), so the self-test
knows what each address must find. Datagrams go both ways between a host and some addresses of the other, the nearest,
the farthest and some between. Each address is judged by itself, so one delay for all, other addresses' delays or none
at all do not pass.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from ipaddress import ip_network
from typing import Any

from dnsrig.lab.host import Host
from dnsrig.lab.links import expectation
from dnsrig.lab.links.datagrams import Probe, Way, probe
from dnsrig.lab.links.ends import versions
from dnsrig.lab.links.expectation import SLACK_SHARE, Interval
from dnsrig.rundir import Address, FarSpec, LinkSpec, PathSpec
from dnsrig.text import digits

BITS = (1 << 64) - 1
CANDIDATES = 256
"""Number of addresses from which the tested ones are taken, from the nearest to the farthest."""

ADDRESSES = 6
PACKETS = 9
"""To and from each address: of an odd number the median is one of them."""
INTERVAL_S = 0.02


def one_way_ms(far: FarSpec, address: Address) -> float:
    """Compute half of the round trip of ``address``."""
    numbers = _split_mix((far.seed * 0xD134_2543_DE82_EF95 & BITS) ^ _folded(address))
    point_share, position = ((next(numbers) >> 11) / (1 << 53) for _ in range(2))
    total = 0.0
    for _, _, weight in far.rtt_classes:
        total += weight  # one after the other: `sum` rounds less than the engine does
    point = point_share * total
    found = far.rtt_classes[-1]  # what rounding left over belongs to the last
    for one in far.rtt_classes:
        if point < one[2]:
            found = one
            break
        point -= one[2]
    low_ms, high_ms, _ = found
    return float(low_ms * (high_ms / low_ms) ** position) / 2


def sample(far: FarSpec, prefix: str, count: int) -> list[Address]:
    """Addresses of ``prefix`` from the nearest to the farthest of some, the same each time."""
    network, dice = ip_network(prefix), random.Random(far.seed)
    hosts = {1 + dice.randrange(network.num_addresses - 2) for _ in range(CANDIDATES)}
    candidates: Sequence[Address] = sorted((network[host] for host in sorted(hosts)), key=lambda a: one_way_ms(far, a))
    steps = max(1, count - 1)
    return list(dict.fromkeys(candidates[number * (len(candidates) - 1) // steps] for number in range(count)))


def _folded(address: Address) -> int:
    number = int(address)
    return number if address.version == 4 else ((number >> 64) * 0x9E37_79B9_7F4A_7C15 ^ number) & BITS


def _split_mix(state: int) -> Iterator[int]:
    """SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    while True:
        state = (state + 0x9E37_79B9_7F4A_7C15) & BITS
        mixed = (state ^ (state >> 30)) * 0xBF58_476D_1CE4_E5B9 & BITS
        mixed = (mixed ^ (mixed >> 27)) * 0x94D0_49BB_1331_11EB & BITS
        yield mixed ^ (mixed >> 31)


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
            for address in sample(path.far, prefix, ADDRESSES):
                at = {"at_right": address} if there is right else {"at_left": address}
                probes.append((address, stack.enter_context(probe(left, right, **at))))
        for _ in range(PACKETS):
            for _, one in probes:
                one.send(one.forward, expectation.SMALL_BYTES)
                one.send(one.reverse, expectation.SMALL_BYTES)
            _collect(probes, INTERVAL_S)
        ways = [way for way in (spec.forward, spec.reverse) if way is not None]
        _collect(probes, max(map(expectation.longest_wait_s, ways)))
        for address, one in probes:
            for name, way, asked in (("forward", one.forward, spec.forward), ("reverse", one.reverse, spec.reverse)):
                if asked is None or asked.far is None:
                    continue
                figures = found.setdefault(str(address), {"asked_ms": round(one_way_ms(asked.far, address), 3)})
                median_ms, reason = judged(address, way, asked, began_s, tick_s=tick_s)
                if median_ms is not None:
                    figures[f"{name}_ms"] = round(median_ms, 3)
                if reason:
                    wrong.append(f"{name}: {reason}")
    return {"addresses": found, "wrong": wrong}


def judged(
    address: Address, way: Way, path: PathSpec, began_s: float, *, tick_s: float = 0.0
) -> tuple[float | None, str]:
    """Judge one address in one direction: the median delay in milliseconds, and what is wrong with it, or empty."""
    assert path.far is not None
    own_ms = one_way_ms(path.far, address)
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
