"""Datasets as the engine makes them: the zones in the list and those in the catalog are the same."""

from __future__ import annotations

import base64
import struct
import tomllib
from pathlib import Path

import captures
import dns.dnssec
import dns.message
import dns.name
import dns.rdatatype
import dns.rrset
import dns.zone
import pytest

from dnsrig import datasets
from dnsrig.datasets import large_records
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import preparation
from dnsrig.rundir import DatasetSpec, Scalar

KINDS: list[tuple[str, dict[str, Scalar]]] = [
    ("tiny-zones", {"zones": 1001, "serial": 7}),
    ("tld", {"delegations": 3, "serial": 7}),
    ("large-records", {"serial": 7}),
]

EXPERIMENT = """\
title = "A world of a stream"
question = "Is the stream made first?"
procedure = "replay"
limit_s = 60
dataset = { kind = "world", zones = 30, from_stream = true }
stream = { kind = "capture", file = "FILE" }
hosts.primary.server = "echo@engine"
"""


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


@pytest.mark.parametrize("made", KINDS[2:], indirect=True, ids=["large-records"])
def test_another_library_reads_the_large_records(made: DatasetSpec) -> None:
    folder, records, largest = datasets.folder(made.key), 0, 0
    for line in (folder / "zones.list").read_text().splitlines():
        name, file = line.split("\t")
        zone = dns.zone.from_file(str(folder / file), origin=name)
        (answer,) = (
            {owner for owner, _ in zone.iterate_rdatasets() if owner != dns.name.empty}
            if "-names" not in name
            else ["-"]
        )
        records += sum(len(rdataset) for _, rdataset in zone.iterate_rdatasets())
        if answer != "-":
            rdataset = next(iter(zone[answer].rdatasets))
            asked = dns.message.make_query(answer.derelativize(zone.origin), rdataset.rdtype)
            response = dns.message.make_response(asked)
            response.answer.append(dns.rrset.from_rdata_list(asked.question[0].name, 3600, rdataset))
            largest = max(largest, len(response.to_wire(max_size=65_535)))
    assert (made.zones, made.records) == large_records.size({}) == (46, records)
    assert largest == 65_535, "no answer is longer than a message can be, and one is as long"


def test_a_dataset_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))
    first = datasets.provide("tiny-zones", {"zones": 2})
    made_ns = (datasets.folder(first.key) / "dataset.json").stat().st_mtime_ns
    assert datasets.provide("tiny-zones", {"zones": 2}) == first
    assert (datasets.folder(first.key) / "dataset.json").stat().st_mtime_ns == made_ns


def test_a_world_is_a_specification_and_a_table_of_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))
    chosen: dict[str, Scalar] = {"zones": 30, "seed": 5, "names_seed": 6, "set": "tlds.count = 12\nzones.ipv6 = 1.0"}
    folder = datasets.folder(datasets.provide("world", chosen).key)
    made = tomllib.loads((folder / "world.toml").read_text())
    assert (made["seed"], made["zones"]["count"], made["zones"]["names_seed"]) == (5, 30, 6)
    assert (made["tlds"]["count"], made["zones"]["ipv6"]) == (12, 1.0)
    # A zone has its own name and perhaps `www`.
    assert 30 < len(datasets.names(folder).read_text().splitlines()) <= 2 * (30 + 12 + 1)
    tiny = datasets.folder(datasets.provide("tiny-zones", {"zones": 2}).key)
    assert datasets.names(tiny) == tiny / "zones.list"


def test_a_dataset_is_made_anew_where_the_engine_is_told_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, values = datasets.kinds()["world"], datasets.parameters("world", {"zones": 30})
    keys = [datasets.key_of("world", values), datasets.key_of("world", values)]
    arguments = kind.arguments
    monkeypatch.setattr(kind, "arguments", lambda values: [*arguments(values), "--set=zones.ipv6 = 1.0"])
    keys.append(datasets.key_of("world", values))
    monkeypatch.setattr(kind, "VERSION", 2, raising=False)
    keys.append(datasets.key_of("world", values))
    assert keys[0] == keys[1] and len(set(keys)) == 3


def write_stream(path: Path, name: str) -> Path:
    """One query for the address of ``name``: docs/reference/stream.md."""
    message = dns.message.make_query(name, "A", id=7).to_wire()
    record = struct.pack("<qIHBB", 0, 0, len(message), 0, 0) + message
    header = struct.pack("<8sIIQQqqQQ", b"DNSRSTRM", 1, 64, 1, 1, 0, 0, 0, 0)
    path.write_bytes(header + record + bytes(-len(record) % 8))
    return path


def test_a_world_of_a_stream_has_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    chosen: dict[str, Scalar] = {"zones": 30, "from_stream": True}
    stream, same = (write_stream(tmp_path / name, "a.b.shop.example") for name in ("one", "same"))
    made = datasets.provide("world", chosen, stream)
    assert "a.b.shop.example.\t" in (datasets.folder(made.key) / "world.asked.names").read_text()
    assert datasets.provide("world", chosen, same) == made
    other = datasets.provide("world", chosen, write_stream(tmp_path / "other", "other.example"))
    drawn = datasets.provide("world", {"zones": 30})
    assert len({made.key, other.key, drawn.key}) == 3
    assert not (datasets.folder(drawn.key) / "world.asked.names").exists()


def test_an_experiment_makes_its_stream_before_the_world_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    query = captures.Query(captures.START_NS, "203.0.113.1", 4000, captures.message("a.b.shop.example"))
    capture, experiment = tmp_path / "clients.pcap", tmp_path / "own.toml"
    capture.write_bytes(captures.pcap([(query.time_ns, captures.frame(captures.datagram(query)))]))
    experiment.write_text(EXPERIMENT.replace("FILE", str(capture)))
    (spec,) = preparation.prepare(preparation.Request(str(experiment)), lambda _: None).specs.values()
    assert spec.stream is not None and spec.stream.queries == 1
    assert spec.dataset.parameters["from_stream"] is True
    assert "a.b.shop.example." in (datasets.folder(spec.dataset.key) / "world.asked.names").read_text()


def test_from_stream_is_true_or_false() -> None:
    with pytest.raises(UsageError, match="true or false"):
        datasets.parameters("world", {"from_stream": "clients.stream"})


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


ZONE = (
    "$TTL 60\n@ IN SOA ns.elsewhere.example. root {serial} 1 1 1 1\n@ IN NS ns.elsewhere.example.\nwww IN A 192.0.2.1\n"
)


def test_own_zones_are_known_by_what_their_files_contain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        for number, name in enumerate(("one.example", "two.example"), start=7):
            (tmp_path / folder / f"{name}.zone").write_text(ZONE.format(serial=number))
    chosen = {"files": f"{tmp_path}/here/one.*, {tmp_path}/here/*.zone"}
    made = datasets.provide("files", chosen)
    folder = datasets.folder(made.key)
    assert (made.zones, made.records, made.serial) == (2, 6, 7)
    assert [line.split("\t")[0] for line in (folder / "zones.list").read_text().splitlines()] == [
        "one.example",
        "two.example",
    ]
    assert "www.two.example. A\n" in (folder / "queries.txt").read_text()
    assert datasets.provide("files", {"files": f"{tmp_path}/there/*.zone"}).key == made.key
    (tmp_path / "there/two.example.zone").write_text(ZONE.format(serial=9))
    assert datasets.provide("files", {"files": f"{tmp_path}/there/*.zone"}).key != made.key


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("", "dataset.files is missing"),
        ("{folder}/*.db", "no file matches"),
        ("{folder}", "no file matches"),
        ("{folder}/bad.zone", "bad.zone: line 2: expected IPv4 address"),
    ],
)
def test_own_zones_that_cannot_be_used_are_named(
    files: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bad.zone").write_text("@ 60 IN SOA a. b. 1 1 1 1 1\n@ 60 IN A 192.0.2.\n")
    with pytest.raises(DnsrigError, match=said):
        datasets.provide("files", {"files": files.format(folder=tmp_path)})


def test_own_zones_have_no_second_version() -> None:
    with pytest.raises(UsageError, match="this dataset has one"):
        datasets.next_version({"files": "*.zone"})
