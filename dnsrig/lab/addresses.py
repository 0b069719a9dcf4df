"""Whose each part of the ranges for benchmarks is: 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180).

The one table: no two parts overlap, and the engine sends to all of them without being told that it may. Hosts have no
IPv6 yet; its parts are kept for when they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network

from dnsrig.errors import UsageError


@dataclass(frozen=True)
class Part:
    ipv4: IPv4Network
    ipv6: IPv6Network


def _part(ipv4: str, ipv6: str) -> Part:
    return Part(IPv4Network(ipv4), IPv6Network(ipv6))


BENCHMARKS = _part("198.18.0.0/15", "2001:2::/48")
HOSTS = _part("198.18.0.0/24", "2001:2::/64")
"""The own address of each host."""
ROUTERS = _part("198.18.1.0/24", "2001:2:0:1::/64")
"""Of emulated paths, from which ICMP comes."""
TRIED = _part("198.18.2.0/24", "2001:2:0:2::/64")
"""Hosts that exist for a moment, to see what the machine can do."""
INTERNET = _part("198.18.64.0/18", "2001:2:0:3::/64")
"""Kept for the name servers of a simulated Internet."""
SOURCES = _part("198.18.128.0/17", "2001:2:0:4::/64")
"""More addresses of hosts."""
CLIENTS = _part("198.19.0.0/16", "2001:2:0:5::/64")
"""The clients of a stream that is replayed: all on one host."""
PARTS = {
    "hosts": HOSTS,
    "routers": ROUTERS,
    "tried": TRIED,
    "internet": INTERNET,
    "sources": SOURCES,
    "clients": CLIENTS,
}
MOST_SOURCES = 2047
"""Of one host: they follow each other, so that a range names them, and each host has room for so many."""
MOST_CLIENTS = CLIENTS.ipv4.num_addresses - 2
"""The first and the last address of the range are nobody's."""


def own(host: int) -> str:
    """Of the host with this number, the first of which is 1."""
    return str(HOSTS.ipv4[host])


def sources(block: int, count: int) -> list[str]:
    """``count`` addresses, one after the other, for the host that has this block; the first is 0.

    >>> sources(1, 2)
    ['198.18.136.1', '198.18.136.2']
    """
    assert count <= MOST_SOURCES
    first = block * (MOST_SOURCES + 1) + 1
    if first + count > SOURCES.ipv4.num_addresses:
        raise UsageError(
            f"{block + 1} hosts have more addresses than one, and there is room for {block}",
            hint="give fewer hosts source_addresses",
        )
    return [str(IPv4Address(int(SOURCES.ipv4[first]) + number)) for number in range(count)]
