"""Datasets as the engine makes them: the zones in the list and those in the catalog are the same."""

from __future__ import annotations

import base64
from pathlib import Path

import dns.dnssec
import dns.rdatatype
import dns.zone
import pytest

from dnsrig import datasets
from dnsrig.rundir import DatasetSpec, Scalar

KINDS: list[tuple[str, dict[str, Scalar]]] = [
    ("tiny-zones", {"zones": 1001, "serial": 7}),
    ("tld", {"delegations": 3, "serial": 7}),
]


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DatasetSpec:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))
    kind, chosen = request.param
    return datasets.provide(kind, chosen)


@pytest.mark.parametrize("made", KINDS, indirect=True, ids=[kind for kind, _ in KINDS])
def test_the_catalog_lists_every_zone_and_nothing_else(made: DatasetSpec) -> None:
    folder = datasets.folder(made.key)
    name, file = datasets.catalog_of(folder)
    catalog = dns.zone.from_file(str(folder / file), origin=name, relativize=False)  # wants SOA and NS
    owners = {
        member.target.to_text(omit_final_dot=True): owner.relativize(catalog.origin).labels
        for owner, _, member in catalog.iterate_rdatas(dns.rdatatype.PTR)
    }
    listed = {line.split("\t")[0] for line in (folder / "zones.list").read_text().splitlines()}
    assert owners.keys() == listed
    assert name not in listed
    assert len(listed) == made.zones
    assert len(set(owners.values())) == made.zones
    assert all(len(labels) == 2 and labels[1] == b"zones" for labels in owners.values())


@pytest.mark.parametrize("made", KINDS, indirect=True, ids=[kind for kind, _ in KINDS])
def test_the_catalog_is_one_for_rfc_9432(made: DatasetSpec) -> None:
    folder = datasets.folder(made.key)
    name, file = datasets.catalog_of(folder)
    catalog = dns.zone.from_file(str(folder / file), origin=name)
    assert catalog.find_rdataset("@", "SOA")[0].serial == made.serial == 7
    assert [server.to_text() for server in catalog.find_rdataset("@", "NS")] == ["invalid."]
    assert [version.to_text() for version in catalog.find_rdataset("version", "TXT")] == ['"2"']


def test_a_dataset_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))
    first = datasets.provide("tiny-zones", {"zones": 2})
    made_ns = (datasets.folder(first.key) / "dataset.json").stat().st_mtime_ns
    assert datasets.provide("tiny-zones", {"zones": 2}) == first
    assert (datasets.folder(first.key) / "dataset.json").stat().st_mtime_ns == made_ns


def test_the_hashes_of_a_tld_with_nsec3_are_a_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 5155 §7.1: one record for each name, and each leads to the next hash. dnspython computes the hashes."""
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))
    folder = datasets.folder(datasets.provide("tld", {"delegations": 50, "denial": "nsec3"}).key)
    zone = dns.zone.from_file(str(folder / "zones/example.zone"), origin="example", relativize=False)
    hashed = {
        owner.labels[0].decode(): base64.b32hexencode(record.next).decode().lower()
        for owner, _, record in zone.iterate_rdatas(dns.rdatatype.NSEC3)
    }
    owners = {owner for owner, _, _ in zone.iterate_rdatas(dns.rdatatype.NS)}
    expected = sorted(dns.dnssec.nsec3_hash(owner, None, 0, 1).lower() for owner in owners)
    assert hashed == dict(zip(expected, [*expected[1:], expected[0]], strict=True))
    assert [record.flags for _, _, record in zone.iterate_rdatas(dns.rdatatype.NSEC3PARAM)] == [0]
    assert not list(zone.iterate_rdatas(dns.rdatatype.NSEC))
    assert len(list(zone.iterate_rdatas(dns.rdatatype.RRSIG, dns.rdatatype.NSEC3))) == len(hashed)
