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

from dnsrig import datasets, streams
from dnsrig.datasets import files, large_records
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import model, preparation, trial_specs
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


@pytest.mark.full
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


def write_zones(folder: Path, *names: str, serial: int = 7) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        (folder / f"{name}.zone").write_text(ZONE.format(serial=serial + number))
    return folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of two zones."""
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    return write_zones(tmp_path / "here", "one.example", "two.example")


def test_only_unusual_parameters_are_told() -> None:
    usual = datasets.parameters("tiny-zones", {})
    assert datasets.described("tiny-zones", usual) == "tiny-zones"
    assert datasets.described("tiny-zones", usual | {"zones": 7}) == "tiny-zones zones=7"
    own = datasets.kinds()["files"].DEFAULTS | {"files": "/a.zone\n/b.zone", "include_below": "/tmp/x"}
    assert datasets.described("files", own) == "files files=/a.zone /b.zone"


def test_own_zones_are_known_by_what_their_files_contain(own: Path, tmp_path: Path) -> None:
    there = write_zones(tmp_path / "there", "one.example", "two.example")
    made = datasets.provide("files", {"files": f"{own}/one.*\n{own}/*.zone"})
    folder = datasets.folder(made.key)
    assert (made.zones, made.records, made.serial, made.serials_differ) == (2, 6, 7, True)
    assert [line.split("\t")[0] for line in (folder / "zones.list").read_text().splitlines()] == [
        "one.example",
        "two.example",
    ]
    assert (folder / datasets.SERIALS_FILE).read_text() == "7\n8\n"
    assert "www.two.example. A\n" in (folder / "queries.txt").read_text()
    assert datasets.provide("files", {"files": f"{there}/*.zone"}).key == made.key
    (there / "two.example.zone").write_text(ZONE.format(serial=9))
    assert datasets.provide("files", {"files": f"{there}/*.zone"}).key != made.key


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("sub/hosts", "sub/hosts"),
        (r"sub/my\ hosts", "sub/my hosts"),
        (r'"sub/a\"b\\c"', 'sub/a"b\\c'),
    ],
)
def test_the_key_depends_on_included_files(own: Path, written: str, name: str) -> None:
    (own / "one.example.zone").write_text(ZONE.format(serial=7) + f"$INCLUDE {written}\n")
    (own / "sub").mkdir()
    values = datasets.parameters("files", {"files": f"{own}/*.zone", "include_below": str(own)})
    keys = []
    for address in ("192.0.2.8", "192.0.2.9"):
        (own / name).write_text(f"added IN A {address}\n")
        keys.append(datasets.key_of("files", values))
    assert len(set(keys)) == 2
    folder = datasets.folder(datasets.provide("files", values).key)
    assert "added IN A 192.0.2.9\n" in (folder / "zones/000/0000000.zone").read_text()


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({}, "dataset.files is missing"),
        ({"files": "{folder}/*.db"}, "no file matches"),
        ({"files": "{folder}"}, "no file matches"),
        ({"files": "{folder}/bad.zone"}, "bad.zone: line 2: expected IPv4 address"),
        ({"files": "{folder}/one.*\n{folder}/again.zone"}, "the zone one.example is in another file, too"),
        ({"files": "{folder}/db.one.example"}, "its zone may be db.one.example or one.example"),
        ({"files": "{folder}/one.*", "list": "{folder}/zones.csv"}, "are both given"),
        ({"list": "{folder}/none.csv"}, "none.csv cannot be read"),
        ({"list": "{folder}/bad.zone"}, "bad.zone: line 1: a name and a file are expected"),
        ({"list": "{folder}/gone.csv"}, "line 2: there is no file"),
        ({"list": "{folder}/twice.csv"}, "line 2: the zone one.example is listed twice"),
        ({"list": "{folder}/wrong.csv"}, "it has the zone one.example, and the list says other.example"),
    ],
)
def test_own_zones_that_cannot_be_used_are_named(chosen: dict[str, str], said: str, own: Path) -> None:
    (own / "bad.zone").write_text("@ 60 IN SOA a. b. 1 1 1 1 1\n@ 60 IN A 192.0.2.\n")
    (own / "db.one.example").write_text(ZONE.format(serial=1))
    (own / "again.zone").write_text("$ORIGIN one.example.\n" + ZONE.format(serial=1))
    (own / "gone.csv").write_text("name,file\none.example,gone.zone\n")
    (own / "twice.csv").write_text("one.example,one.example.zone\nONE.example.,one.example.zone\n")
    (own / "wrong.csv").write_text("other.example,again.zone\n")
    with pytest.raises(DnsrigError, match=said):
        datasets.provide("files", {name: value.format(folder=own) for name, value in chosen.items()})


def test_a_list_gives_zones_their_names(own: Path) -> None:
    (own / "zones.csv").write_text(
        "serial,File,Name\n7,one.example.zone,first.example\n8,two.example.zone,two.example\n"
    )
    folder = datasets.folder(datasets.provide("files", {"list": f"{own}/zones.csv"}).key)
    listed = [line.split("\t")[0] for line in (folder / "zones.list").read_text().splitlines()]
    assert listed == ["first.example", "two.example"]


def test_patterns_begin_at_the_experiment_or_at_the_current_folder(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = own / "mine.toml"
    experiment.write_text(OWN)
    monkeypatch.chdir(tmp_path)

    def chosen(*settings: str) -> dict[str, Scalar]:
        return dict(model.load(experiment, "quick", list(settings)).dataset)

    assert chosen()["files"] == f"{own}/one.*\n{own}/two.*"
    assert chosen()["next"] == f"{own}/v1/*\n\n{own}/v2/a\n{own}/v2/b"
    assert chosen()["include_below"] == str(own)
    assert chosen("dataset.files=here/*.zone")["files"] == f"{tmp_path}/here/*.zone"
    assert chosen('dataset.files=["a", "/b"]')["files"] == f"{tmp_path}/a\n/b"
    (document,) = model.points(model.load(experiment, "quick", []))
    moved = tmp_path / "moved"
    own.rename(moved)
    (same,) = model.points(model.load(moved / "mine.toml", "quick", []))
    assert trial_specs.variant(document) == trial_specs.variant(same)


OWN = """\
title = "My zones"
question = "Where are they?"
procedure = "transfer"
limit_s = 60
hosts.primary.server = "nsd@forky"
hosts.secondary.server = "knot@forky"
[dataset]
kind = "files"
files = ["one.*", "two.*"]
next = ["v1/*", ["v2/a", "v2/b"]]
"""


def versions_of(own: Path, **more: Scalar) -> list[dict[str, Scalar]]:
    first = datasets.parameters("files", {"files": f"{own}/*.zone", **more})
    return [first, datasets.next_version(first)]


def test_own_later_versions_have_the_same_zones_with_newer_serials(own: Path, tmp_path: Path) -> None:
    # Other files, in another order.
    write_zones(tmp_path / "later", "b", "a", serial=20)
    for file, name in (("a", "two.example"), ("b", "one.example")):
        path = tmp_path / "later" / f"{file}.zone"
        path.write_text(f"$ORIGIN {name}.\n{path.read_text()}")
    first, later = versions_of(own, next=f"{tmp_path}/later/*.zone")
    made = datasets.provide("files", later)
    lists = [(datasets.folder(datasets.key_of("files", each)) / "zones.list").read_text() for each in (first, later)]
    assert lists[0] == lists[1]
    assert (datasets.folder(made.key) / datasets.SERIALS_FILE).read_text() == "20\n21\n"
    with pytest.raises(UsageError, match="needs version 2 of the zones"):
        datasets.next_version(later)


@pytest.mark.parametrize(
    ("zones", "serial", "said"),
    [
        (["one.example"], 20, "the earlier version has the zone two.example"),
        (["one.example", "two.example", "three.example"], 20, "three.example is not in the earlier version"),
        (["one.example", "two.example"], 1, "the serial 1 of one.example is older than 7"),
    ],
)
def test_later_versions_of_other_zones_are_refused(
    zones: list[str], serial: int, said: str, own: Path, tmp_path: Path
) -> None:
    later = write_zones(tmp_path / "later", *zones, serial=serial)
    with pytest.raises(DnsrigError, match=said):
        datasets.provide("files", versions_of(own, next=f"{later}/*.zone")[1])


def test_a_later_version_is_made_if_there_is_none(own: Path) -> None:
    first, later = versions_of(own, changed_share=1.0)
    made = datasets.provide("files", later)
    facts = datasets.facts(datasets.folder(made.key))
    assert (made.serial, facts["records_changed"]) == (8, 4)
    assert datasets.key_of("files", first) != made.key


def test_signed_zones_change_only_if_the_user_wants_it(own: Path) -> None:
    path = own / "one.example.zone"
    path.write_text(path.read_text() + "@ IN DNSKEY 257 3 13 " + base64.b64encode(bytes(64)).decode() + "\n")
    _, later = versions_of(own)
    with pytest.raises(
        DnsrigError, match="line 5: a DNSKEY record: a next version of a signed zone needs new signatures"
    ):
        datasets.provide("files", later)
    assert datasets.provide("files", {**later, "unsigned_changes": True}).signed_zones == 1


def test_a_list_without_a_header_has_the_name_and_then_the_file(own: Path) -> None:
    table = own / "zones.csv"
    table.write_text("First.example.,one.example.zone\n# a comment,x\n\n., two.example.zone ,\n")
    assert files._of_table(table) == [
        ("first.example", str(own / "one.example.zone")),
        (".", str(own / "two.example.zone")),
    ]


@pytest.mark.parametrize("row", ["one.example", "one.example,", ",one.example.zone", "one.example,one.example.zone,x"])
def test_a_line_with_more_or_less_than_a_name_and_a_file_is_refused(own: Path, row: str) -> None:
    table = own / "zones.csv"
    table.write_text(f"first.example,one.example.zone\n{row}\n")
    with pytest.raises(UsageError, match="line 2: a name and a file are expected"):
        files._of_table(table)


def test_a_header_allows_further_columns(own: Path) -> None:
    table = own / "zones.csv"
    table.write_text("name,file,customer\nfirst.example,one.example.zone,x\ntwo.example,two.example.zone,\n")
    assert [name for name, _ in files._of_table(table)] == ["first.example", "two.example"]
    table.write_text("name,file,customer\nfirst.example,,x\n")
    with pytest.raises(UsageError, match="line 2: a name and a file are expected"):
        files._of_table(table)


@pytest.mark.parametrize(
    ("kind", "chosen", "words", "size"),
    [
        (
            "tld",
            {"delegations": 1000, "serial": 2, "seed": 3, "catalog_schema": 1, "records_changed": 4, "denial": "nsec3"},
            "tld --delegations=1000 --serial=2 --seed=3 --catalog-schema=1 --changed=4 --denial=nsec3",
            (1, 5450),
        ),
        (
            "tiny-zones",
            {"zones": 7, "records_per_zone": 5, "serial": 2, "seed": 3, "refresh_s": 60, "catalog_schema": 1},
            "zones --count=7 --records=5 --serial=2 --seed=3 --catalog-schema=1 --refresh-s=60",
            (7, 35),
        ),
        (
            "large-records",
            {"largest_bytes": 9, "serial": 2, "seed": 3, "catalog_schema": 1},
            "large-records --largest=9 --serial=2 --seed=3 --catalog-schema=1",
            (46, 4103),
        ),
        (
            "world",
            {"zones": 7, "seed": 3, "names_seed": 4, "set": "a=1"},
            "world --zones=7 --seed=3 --set=zones.names_seed = 4 --set=a=1",
            (1, 0),
        ),
        ("world", {"zones": 7}, "world --zones=7 --seed=1 --set=zones.names_seed = 1", (1, 0)),
    ],
)
def test_what_the_engine_is_told_of_a_dataset(
    kind: str, chosen: dict[str, Scalar], words: str, size: tuple[int, int]
) -> None:
    values = datasets.parameters(kind, chosen)
    assert " ".join(datasets.kinds()[kind].arguments(values)) == words
    assert datasets.size(kind, values) == size


def test_the_signatures_of_a_world_are_valid_for_days(tmp_path: Path) -> None:
    shares = "signed = 0.5\np256 = 0.25\ned25519 = 0.125\n"
    text = f"[signing]\nepoch_s = 1000\nvalidity_days = 2\n[signing.tlds]\n{shares}[signing.zones]\n{shares}"
    (tmp_path / "world.toml").write_text(text)
    each = {"signed": 0.5, "p256": 0.25, "ed25519": 0.125}
    valid = {"valid_from_s": 1000, "valid_until_s": 173_800, "signed_share": None}
    assert datasets.kinds()["world"].signatures(tmp_path) == {**valid, "tlds": each, "zones": each}


def test_what_the_engine_is_told_of_a_stream(own: Path) -> None:
    (own / "zones.list").write_text("")
    kinds = streams.kinds()
    capture = {
        **kinds["capture"].DEFAULTS,
        "file": "/a.pcap",
        "server": "192.0.2.1, 192.0.2.2",
        "cut": "names",
        "multiply": 3,
    }
    assert kinds["capture"].arguments(capture, own) == [
        *("replay", "prepare", "/a.pcap", "--server=192.0.2.1", "--server=192.0.2.2", "--cut=names"),
        *("--keep-share=1.0", "--speed=1.0", "--multiply=3", "--gap-s=3600", "--seed=1"),
    ]
    population = {**kinds["population"].DEFAULTS, "recursion_desired": False}
    words = kinds["population"].arguments(population, own)
    assert words[:3] == ["generate", "clients", f"--names={own / 'zones.list'}"]
    assert words[-1] == "--no-recursion-desired" and "--missing-once=0.23" in words and len(words) == 3 + 18 + 1
    assert kinds["population"].arguments(kinds["population"].DEFAULTS, own) == words[:-1]


@pytest.mark.parametrize(("qps", "duration_s", "refused"), [(1e6, 1_000, False), (1e6, 1_001, True)])
def test_a_stream_has_at_most_a_thousand_million_queries(qps: float, duration_s: float, refused: bool) -> None:
    parameters: dict[str, Scalar] = {"qps": qps, "duration_s": duration_s}
    if refused:
        with pytest.raises(UsageError, match="1,001,000,000 queries"):
            streams.kinds()["population"].validate(parameters)
    else:
        streams.kinds()["population"].validate(parameters)


@pytest.mark.parametrize(
    ("values", "following"),
    [({"serial": 7}, {"serial": 8}), ({"serial": "7", "zones": 3}, {"serial": 8, "zones": 3})],
)
def test_the_next_version_has_the_next_serial(values: dict[str, Scalar], following: dict[str, Scalar]) -> None:
    assert datasets.next_version(values) == following
    with pytest.raises(UsageError, match="needs a second version"):
        datasets.next_version({"zones": 3})


def test_a_dataset_has_a_limited_number_of_records() -> None:
    assert datasets.size("tiny-zones", {"zones": 10_000, "records_per_zone": 100_000}) == (10_000, 10**9)
    with pytest.raises(UsageError, match="would have 1,000,100,000 records"):
        datasets.size("tiny-zones", {"zones": 10_001, "records_per_zone": 100_000})
