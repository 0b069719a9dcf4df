"""Zones that the engine signed, verified by dnspython: every RRset, every algorithm, and the chain.

`engine/dnsrig-dns/src/dnssec/zone_tests.rs` makes them.
"""

from __future__ import annotations

from pathlib import Path

import dns.dnssec
import dns.name
import dns.node
import dns.rdataset
import dns.rdatatype
import dns.rdtypes.ANY.NSEC
import dns.rdtypes.ANY.NSEC3
import dns.zone
import pytest

GOLDEN = Path(__file__).parents[2] / "engine/dnsrig-dns/tests/golden"
FILES = sorted(GOLDEN.glob("signed-*.zone"))
DELEGATIONS = [dns.name.from_text(name) for name in ("secure.example", "unsigned.example")]
NOW = 1_800_000_000
TYPES = dns.rdatatype.RdataType


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def zone(request: pytest.FixtureRequest) -> dns.zone.Zone:
    return dns.zone.from_text(request.param.read_text(), origin="example.", relativize=False)


def is_below(name: dns.name.Name) -> bool:
    return any(name.is_subdomain(cut) and name != cut for cut in DELEGATIONS)


def test_every_rrset_of_the_zone_has_a_signature_that_is_right(zone: dns.zone.Zone) -> None:
    keys = {zone.origin: zone.find_rdataset("@", TYPES.DNSKEY)}
    verified = 0
    for name, node in zone.items():
        for rdataset in node.rdatasets:
            if rdataset.rdtype == TYPES.RRSIG:
                continue
            rrsig = node.get_rdataset(zone.rdclass, TYPES.RRSIG, rdataset.rdtype)
            if is_below(name) or (name in DELEGATIONS and rdataset.rdtype == TYPES.NS):
                assert rrsig is None, "it is the child's"
                continue
            assert rrsig is not None, f"{name} {rdataset.rdtype}"
            dns.dnssec.validate((name, rdataset), (name, rrsig), keys, now=NOW)
            verified += 1
    assert verified > 20
    with pytest.raises(dns.dnssec.ValidationFailure):
        soa = zone.find_node("@")
        signed = soa.find_rdataset(zone.rdclass, TYPES.RRSIG, TYPES.SOA)
        dns.dnssec.validate(
            (zone.origin, soa.find_rdataset(zone.rdclass, TYPES.NS)), (zone.origin, signed), keys, now=NOW
        )


def names(zone: dns.zone.Zone) -> dict[dns.name.Name, set[dns.rdatatype.RdataType]]:
    """All names of the zone with their types: empty non-terminals, too, but no hashes, and no type NSEC."""
    found: dict[dns.name.Name, set[dns.rdatatype.RdataType]] = {}
    for name, node in zone.items():
        types = {rdataset.rdtype for rdataset in node.rdatasets}
        if is_below(name) or TYPES.NSEC3 in types:
            continue
        found[name] = types - {TYPES.NSEC}
        above = name
        while above != zone.origin:
            above = above.parent()
            found.setdefault(above, set())
    return found


def bits(rdata: dns.rdtypes.ANY.NSEC.NSEC | dns.rdtypes.ANY.NSEC3.NSEC3) -> set[int]:
    return {
        window * 256 + byte * 8 + bit
        for window, bitmap in rdata.windows
        for byte, value in enumerate(bitmap)
        for bit in range(8)
        if value & (0x80 >> bit)
    }


def test_the_chain_is_a_circle_through_all_names_with_their_types(zone: dns.zone.Zone) -> None:
    expected = names(zone)
    if not (params := zone.get_rdataset("@", TYPES.NSEC3PARAM)):
        order = sorted(name for name, types in expected.items() if types)
        for name, after in zip(order, [*order[1:], order[0]], strict=True):
            nsec = zone.find_rdataset(name, TYPES.NSEC)[0]
            assert nsec.next == after
            assert bits(nsec) == expected[name] | {TYPES.NSEC}
        return
    nsec3s = {name: node.get_rdataset(zone.rdclass, TYPES.NSEC3) for name, node in zone.items()}
    found = {name.labels[0].decode().upper(): rdataset[0] for name, rdataset in nsec3s.items() if rdataset}
    is_opt_out = all(nsec3.flags & 1 for nsec3 in found.values())
    if is_opt_out:
        del expected[DELEGATIONS[1]]
    hashes = {dns.dnssec.nsec3_hash(name, params[0].salt, params[0].iterations, 1): name for name in expected}
    assert sorted(found) == sorted(hashes)
    order = sorted(hashes)
    for own, after in zip(order, [*order[1:], order[0]], strict=True):
        assert found[own].next_name(zone.origin).labels[0].decode().upper() == after
        assert bits(found[own]) == expected[hashes[own]]


def test_there_is_a_zone_of_each_algorithm() -> None:
    assert [int(path.stem.split("-")[1]) for path in FILES] == [13, 15, 8]
