"""The self-test before each trial: is a link what it was asked to be?

A plain link must let packets through. On an emulated one datagrams go both ways at once: small ones, evenly spaced, for
delay, jitter, loss and order; where a rate was asked for, then a burst; where a path MTU was, packets of that size and
larger; where far ends have delays of their own, packets from and to some of them (``far.py``). What they meet is
held against what the same datagrams meet on a link as asked (``expectation.py``). It takes at most about 2 s and the
round trip, which with far ends is paid twice.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import platform
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyroute2 import NetNS

from dnsrig.lab.host import Host, inside, read_sysctl, set_sysctl
from dnsrig.lab.links import expectation, far
from dnsrig.lab.links.datagrams import PORT, Probe, Way, probe
from dnsrig.rundir import Family, LinkSpec, PathSpec
from dnsrig.text import digits

PING_ROUNDS = 21
PING_TIMEOUT_S = 2.0
ATTEMPTS = 2
"""A machine that was busy elsewhere for a moment gets another chance."""
MTU_COPIES = 8
PLAIN = PathSpec()
IPV6_KEPT = "net.ipv6.route.mtu_expires"
"""How long the kernel keeps what it learnt of a path's MTU (ip-sysctl of Linux)."""


def check(left: Host, right: Host, spec: LinkSpec, began_s: float) -> dict[str, Any]:
    """The link as asked and as found, and in ``wrong`` what does not fit; ``works`` where nothing is wrong.

    ``began_s``: CLOCK_REALTIME when the link began, from which changes of the loss over time count.
    """
    family: Family = "ipv4" if left.address.version == 4 else "ipv6"
    about = {"kind": spec.kind, "family": family, "kernel": platform.release()}
    if not spec.emulated:
        return plain(left, right) | about
    found: dict[str, Any] = {}
    for attempt in range(1, ATTEMPTS + 1):
        found = _far(left, right, spec, began_s, _emulated(left, right, spec, began_s)) | {"attempts": attempt}
        if found["works"]:
            break
    return {"from": left.name, "to": right.name, **about, **found}


def plain(here: Host, there: Host) -> dict[str, Any]:
    """A link as it is: round-trip times seen by refused TCP connects, MTU.

    The figure includes the two system calls and Python around them, some tens of microseconds: an upper bound.
    """
    rtts_us = []
    with inside(here.namespace):
        for _ in range(PING_ROUNDS):
            with socket.socket(here.family, socket.SOCK_STREAM) as sock:
                sock.settimeout(PING_TIMEOUT_S)
                start = time.monotonic_ns()
                # Nothing listens there, so it is refused at once.
                refused = sock.connect_ex((str(there.address), PORT))
                if refused != errno.ECONNREFUSED:
                    wrong = [f"no packets between {here.name} and {there.name}"]
                    return {"from": here.name, "to": there.name, "works": False, "wrong": wrong}
                rtts_us.append((time.monotonic_ns() - start) / 1000)
    mtu_bytes = _mtu(here, there)
    return {"from": here.name, "to": there.name, "works": True, **_rtt(rtts_us), "mtu_bytes": mtu_bytes}


@dataclass(frozen=True)
class Direction:
    """A direction under test: where the parts of the test lie among its packets."""

    name: str
    path: PathSpec
    steady: expectation.Steady
    burst: list[int]


def _emulated(left: Host, right: Host, spec: LinkSpec, began_s: float) -> dict[str, Any]:
    forward, reverse = (
        _direction(name, path or PLAIN, spec) for name, path in (("forward", spec.forward), ("reverse", spec.reverse))
    )
    with ExitStack() as stack:
        link = stack.enter_context(probe(left, right))
        if any(d is not None and d.mtu_bytes is not None for d in (spec.forward, spec.reverse)):
            stack.enter_context(_path_mtu_forgotten(left, right))
        ways = ((forward, link.forward), (reverse, link.reverse))
        _send_steady(link, ways)
        for direction, way in ways:
            if direction.burst:
                link.send_at_once(way, len(direction.burst), direction.burst[0])
        wait_s = max(expectation.longest_wait_s(d.path) + expectation.burst_s(d.path, d.burst) for d, _ in ways)
        link.collect(time.monotonic() + (wait_s if forward.burst or reverse.burst else 0))
        judged = {d.name: _judged(d, way, began_s) for d, way in ways}
        round_trip_s = sum(expectation.longest_wait_s(d.path) for d, _ in ways)
        for direction, way in ways:
            if direction.path.mtu_bytes is not None:
                _send_large(link, direction, way, judged[direction.name], round_trip_s)
    wrong = [f"{name}: {what}" for name, one in judged.items() for what in one.pop("wrong")]
    rtts_us = _rtts_us(link, min(forward.steady.packets, reverse.steady.packets))
    return {
        "works": not wrong,
        **(_rtt(rtts_us) if rtts_us else {}),
        "mtu_bytes": _mtu(left, right),
        **judged,
        **({"wrong": wrong} if wrong else {}),
    }


def _far(left: Host, right: Host, spec: LinkSpec, began_s: float, found: dict[str, Any]) -> dict[str, Any]:
    """``found``, and with it what was found of far ends where they have delays of their own."""
    if not any(way is not None and way.far is not None for way in (spec.forward, spec.reverse)):
        return found
    ends = far.check(left, right, spec, began_s, tick_s=tick_s())
    wrong = [*found.get("wrong", []), *ends.pop("wrong")]
    return found | {"works": not wrong, "far": ends["addresses"], **({"wrong": wrong} if wrong else {})}


def _direction(name: str, path: PathSpec, spec: LinkSpec) -> Direction:
    return Direction(name, path, expectation.steady(path), expectation.burst(path, spec.mtu_bytes))


def _send_steady(link: Probe, ways: tuple[tuple[Direction, Way], ...]) -> None:
    start_s = time.monotonic()
    due = sorted(
        (number * d.steady.interval_s, index) for index, (d, _) in enumerate(ways) for number in range(d.steady.packets)
    )
    for after_s, index in due:
        if time.monotonic() < start_s + after_s:
            link.collect(start_s + after_s)
        direction, way = ways[index]
        link.send(way, direction.steady.nbytes)
    link.collect(time.monotonic() + max(expectation.longest_wait_s(d.path) for d, _ in ways))


def _judged(direction: Direction, way: Way, began_s: float) -> dict[str, Any]:
    """Asked, found, and what is wrong with it, in one direction."""
    count = direction.steady.packets
    sent = [(time_s - began_s, nbytes) for time_s, nbytes in zip(way.sent_s[:count], way.nbytes[:count])]
    arrived = [None if time_s is None else time_s - began_s for time_s in way.arrivals(range(count))]
    found = expectation.delays(sent, arrived)
    asked = direction.path.model_dump(exclude_defaults=True)
    expected = expectation.expected(direction.path, sent, tick_s=tick_s())
    lost, early = arrived.count(None), [number for number in way.order if number < count]
    if found is None:
        wrong = [] if lost in expected.lost_packets else ["next to nothing arrives"]
        return {"asked": asked, "found": {"packets": count, "lost_packets": lost}, "wrong": wrong}
    overtaken = sum(one > other for one, other in itertools.pairwise(early))
    figures = {
        "packets": count,
        "lost_packets": lost,
        "loss_percent": round(100 * lost / count, 3),
        "delay_p5_ms": round(found.p5_ms, 3),
        "delay_median_ms": round(found.median_ms, 3),
        "delay_p95_ms": round(found.p95_ms, 3),
        "overtaken_percent": round(100 * overtaken / max(1, len(early) - 1), 2),
    }
    wrong = [
        f"{what} {digits(value, 4)} {unit} where {digits(interval.low, 4)} to {digits(interval.high, 4)} was to be expected"
        for what, value, unit, interval in (
            ("fastest delay (5 %)", found.p5_ms, "ms", expected.p5_ms),
            ("median delay", found.median_ms, "ms", expected.median_ms),
            ("slowest delay (95 %)", found.p95_ms, "ms", expected.p95_ms),
            ("loss of", lost, f"of {count} packets", expected.lost_packets),
        )
        if value not in interval
    ]
    if overtaken and direction.path.ordered:
        wrong.append(f"{overtaken} of {len(early)} packets were overtaken, which was to keep order")
    if not overtaken and expected.overtaken_packets >= expectation.SELDOM_OVERTAKEN_PACKETS:
        wrong.append("no packet was overtaken, where each was to have a delay of its own")
    if direction.burst:
        wrong += _rate(direction, way, began_s, figures)
    told = {"median_ms": [round(expected.median_ms.low, 3), round(expected.median_ms.high, 3)]}
    return {"asked": asked, "found": figures, "expected": told, "wrong": wrong}


def _rate(direction: Direction, way: Way, began_s: float, figures: dict[str, Any]) -> list[str]:
    first, size = direction.steady.packets, len(direction.burst)
    found = expectation.rate_mbit(direction.burst, way.arrivals(range(first, first + size)))
    if found is not None:
        figures["rate_mbit"] = round(found, 3)
    at_s = way.sent_s[first] - began_s
    expected = expectation.expected_rate_mbit(direction.path, direction.burst, at_s, tick_s=tick_s())
    if expected is None:
        return []
    if found is None:
        return ["of a burst next to nothing arrives"]
    if found in expected:
        return []
    return [f"rate {digits(found, 4)} Mbit/s where {direction.path.rate_mbit:g} was asked for"]


def _send_large(link: Probe, direction: Direction, way: Way, judged: dict[str, Any], round_trip_s: float) -> None:
    """Test the path MTU: packets of that size must arrive, larger ones must not, and the sender is notified, or is not.

    What tells it may come over the way back, with its delay.
    """
    mtu = direction.path.mtu_bytes
    assert mtu is not None
    first, told_before = len(way.sent_s), way.told_too_large
    for nbytes in (mtu, mtu + 1):
        for _ in range(MTU_COPIES):
            link.send(way, nbytes)
    link.collect(time.monotonic() + round_trip_s)
    fitting, larger = (way.arrivals(range(at, at + MTU_COPIES)) for at in (first, first + MTU_COPIES))
    told = way.told_too_large > told_before
    judged["found"]["too_large_told"] = told
    if all(time_s is None for time_s in fitting):
        judged["wrong"].append(f"no packet of {mtu} bytes, the path's MTU, arrives")
    if any(time_s is not None for time_s in larger):
        judged["wrong"].append(f"packets of {mtu + 1} bytes arrive, above the path's MTU of {mtu}")
    if told and not direction.path.icmp:
        judged["wrong"].append("the sender is told of packets that are too large, which was to be blocked")
    if not told and direction.path.icmp:
        judged["wrong"].append("the sender is not told of packets that are too large")


@contextlib.contextmanager
def _path_mtu_forgotten(*hosts: Host) -> Iterator[None]:
    """The trial is to find out for itself: what ICMP tells the self-test is not kept.

    A flush leaves what IPv6 learnt of a path until it expires, which here it does at once.
    """
    kept_s = {}
    for host in hosts:
        with inside(host.namespace):
            kept_s[host.name] = read_sysctl(IPV6_KEPT)
            set_sysctl(IPV6_KEPT, "0")
    try:
        yield
    finally:
        for host in hosts:
            with inside(host.namespace):
                set_sysctl(IPV6_KEPT, kept_s[host.name])
                set_sysctl("net.ipv4.route.flush", "1")
                set_sysctl("net.ipv6.route.flush", "1")


def tick_s() -> float:
    """How coarse this kernel's timers are: next to nothing, but a tick where it has no high-resolution timers
    (User-mode Linux)."""
    return time.clock_getres(time.CLOCK_MONOTONIC)


def _rtts_us(link: Probe, count: int) -> list[float]:
    """Add the delays of pairs of datagrams, one each way, sent at nearly the same time."""
    each = []
    for number in range(count):
        forward, reverse = (way.arrived_s.get(number) for way in (link.forward, link.reverse))
        if forward is not None and reverse is not None:
            each.append((forward - link.forward.sent_s[number] + reverse - link.reverse.sent_s[number]) * 1e6)
    return each


def _rtt(rtts_us: list[float]) -> dict[str, float]:
    return {
        "rtt_min_us": round(min(rtts_us), 1),
        "rtt_median_us": round(statistics.median(rtts_us), 1),
        "rtt_max_us": round(max(rtts_us), 1),
    }


def _mtu(here: Host, there: Host) -> int:
    """Read the MTU of the interface towards ``there``, which has its name unless it is one of the machine's."""
    with NetNS(here.namespace) as route:
        found = route.link_lookup(ifname=there.name) or route.link_lookup(ifname=here.spec.nic)
        return int(route.link("get", index=found[0])[0].get("mtu"))
