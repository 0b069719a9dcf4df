"""The table of addresses: each part has room for what it is for, and no two overlap."""

from __future__ import annotations

import itertools
from ipaddress import ip_address

import pytest

from dnsrig.errors import UsageError
from dnsrig.lab import addresses
from dnsrig.rundir import Family

FAMILIES: tuple[Family, ...] = ("ipv4", "ipv6")


@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_parts_overlap_and_all_are_for_benchmarks(family: Family) -> None:
    parts = {name: part.of(family) for name, part in addresses.PARTS.items()}
    whole = addresses.BENCHMARKS.of(family)
    assert all(part.overlaps(whole) and part.prefixlen > whole.prefixlen for part in parts.values())
    overlapping = [pair for pair in itertools.combinations(parts, 2) if parts[pair[0]].overlaps(parts[pair[1]])]
    assert not overlapping


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_source_addresses_are_apart_and_within_their_part(family: Family) -> None:
    blocks = [addresses.sources(block, addresses.MOST_SOURCES, family) for block in range(16)]
    every = [address for block in blocks for address in block]
    assert len(set(every)) == len(every) == 16 * addresses.MOST_SOURCES
    assert all(ip_address(address) in addresses.SOURCES.of(family) for address in (every[0], every[-1]))


def test_more_hosts_with_source_addresses_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(UsageError, match="at most 16 may"):
        addresses.sources(16, 1)


def test_a_host_has_an_address_of_its_own_part() -> None:
    assert addresses.own(1) == "198.18.0.1"
    assert ip_address(addresses.own(18)) in addresses.HOSTS.ipv4
    assert addresses.own(1, "ipv6") == "2001:2::1"


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ("198.18.0.1", ["2001:2::1"]),
        ("2001:2::fe", ["198.18.0.254"]),
        ("198.18.2.2", ["2001:2:0:2::2"]),
        ("2001:2::100", []),  # there are 256 of IPv4
        ("192.0.2.1", []),
        ("198.19.0.1", []),
    ],
)
def test_a_host_has_the_same_number_in_both_families(asked: str, other: list[str]) -> None:
    assert [str(one) for one in addresses.both(asked)] == [asked, *other]
