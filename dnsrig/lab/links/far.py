"""What the far ends of packets add to the delay of a link, as the engine's `link` draws it (engine/…/link/address_delays.rs): a
hash of the address, so that the self-test knows what each address is to find. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from ipaddress import ip_network

from dnsrig.rundir import Address, FarSpec

BITS = (1 << 64) - 1
CANDIDATES = 256
"""Of which the tested ones are taken, from the nearest to the farthest, so that they lie far apart."""


def one_way_ms(far: FarSpec, address: Address) -> float:
    """Half of the round trip that ``address`` has."""
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
