"""The table of addresses: each part has room for what it is for, and no two overlap."""

from __future__ import annotations

import itertools
from ipaddress import ip_address

import pytest

from dnsrig.errors import UsageError
from dnsrig.lab import addresses


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_no_two_parts_overlap_and_all_are_for_benchmarks(family: str) -> None:
    parts = {name: getattr(part, family) for name, part in addresses.PARTS.items()}
    whole = getattr(addresses.BENCHMARKS, family)
    assert all(part.subnet_of(whole) for part in parts.values())
    overlapping = [pair for pair in itertools.combinations(parts, 2) if parts[pair[0]].overlaps(parts[pair[1]])]
    assert not overlapping


def test_blocks_of_source_addresses_are_apart_and_within_their_part() -> None:
    blocks = [addresses.sources(block, addresses.MOST_SOURCES) for block in range(16)]
    every = [address for block in blocks for address in block]
    assert len(set(every)) == len(every) == 16 * addresses.MOST_SOURCES
    assert all(ip_address(address) in addresses.SOURCES.ipv4 for address in (every[0], every[-1]))


def test_more_hosts_with_source_addresses_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(UsageError, match="room for 16"):
        addresses.sources(16, 1)


def test_a_host_has_an_address_of_its_own_part() -> None:
    assert addresses.own(1) == "198.18.0.1"
    assert ip_address(addresses.own(18)) in addresses.HOSTS.ipv4
