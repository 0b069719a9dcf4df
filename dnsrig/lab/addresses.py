"""What the ranges for benchmarks are used for: 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180).

The one table: no two parts overlap, and the engine sends to all of them without being told that it may. A host has an
address of both families, and the same number in both: 198.18.0.7 is also 2001:2::7.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from dnsrig.errors import UsageError
from dnsrig.rundir import Address, Family


@dataclass(frozen=True)
class Part:
    ipv4: IPv4Network
    ipv6: IPv6Network

    def of(self, family: Family) -> IPv4Network | IPv6Network:
        return self.ipv4 if family == "ipv4" else self.ipv6

    def other(self, address: Address) -> Address | None:
        """Find the address with the same number in the other family; None if ``address`` is not in this part."""
        own, others = (self.ipv4, self.ipv6) if address.version == 4 else (self.ipv6, self.ipv4)
        number = int(address) - int(own.network_address)
        return others[number] if address in own and number < others.num_addresses else None


def _part(ipv4: str, ipv6: str) -> Part:
    return Part(IPv4Network(ipv4), IPv6Network(ipv6))


BENCHMARKS = _part("198.18.0.0/15", "2001:2::/48")
HOSTS = _part("198.18.0.0/24", "2001:2::/64")
"""The own address of each host."""
ROUTERS = _part("198.18.1.0/24", "2001:2:0:1::/64")
"""Routers of emulated paths, which send ICMP."""
TRIED = _part("198.18.2.0/24", "2001:2:0:2::/64")
"""Hosts that exist for a moment, to see what the machine can do."""
INTERNET = _part("198.18.64.0/18", "2001:2:0:3::/64")
"""The name servers of a simulated Internet, all on one host; the first is one of the root's."""
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
"""The most that one host can have: they are consecutive, so that a range names them."""


def own(host: int, family: Family = "ipv4") -> str:
    """Return the own address of a host by its number, which begins with 1."""
    return str(HOSTS.of(family)[host])


def unspecified(address: Address) -> Address:
    """Return the unspecified address of the family of ``address``: the kernel chooses the address to send from."""
    return ip_address("0.0.0.0" if address.version == 4 else "::")


def clients(number: int, of: int, family: Family = "ipv4") -> str:
    """The range of one of several hosts that clients are divided among, the first of which is 0.

    >>> clients(0, 1), clients(2, 3)
    ('198.19.0.0/16', '198.19.128.0/18')
    """
    whole = CLIENTS.of(family)
    return str([*whole.subnets(prefixlen_diff=(of - 1).bit_length())][number])


def most_clients(client_range: str) -> int:
    """For how many a range has addresses; its first and its last are nobody's.

    >>> most_clients("198.19.0.0/16")
    65534
    """
    return ip_network(client_range).num_addresses - 2


def both(address: str) -> list[Address]:
    """The addresses of a host that is asked at ``address``: that, and the one of the other family.

    A host whose address is not in the table has no other one.

    >>> [str(one) for one in both("2001:2::7")]
    ['2001:2::7', '198.18.0.7']
    """
    asked = ip_address(address)
    others = (part.other(asked) for part in (HOSTS, TRIED))
    return [asked, *(other for other in others if other is not None)]


def sources(block: int, count: int, family: Family = "ipv4") -> list[str]:
    """``count`` addresses, one after the other, for the host that has this block; the first is 0.

    >>> sources(1, 2)
    ['198.18.136.1', '198.18.136.2']
    """
    assert count <= MOST_SOURCES
    first = block * (MOST_SOURCES + 1) + 1
    if first + count > SOURCES.ipv4.num_addresses:
        raise UsageError(
            f"{block + 1} hosts have more than one address; at most {block} may",
            hint="give fewer hosts source_addresses",
        )
    return [str(SOURCES.of(family)[first + number]) for number in range(count)]
