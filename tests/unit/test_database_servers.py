"""Databases as servers: their configurations, what uses them, and the topology of `replication`."""

from __future__ import annotations

import signal
import stat
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from placement_data import KEYS, ZONES, placed

from dnsrig import procedures
from dnsrig.confinement import MACHINE
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.procedures import procedure, replication
from dnsrig.procedures.context import placing
from dnsrig.rundir import HostSpec, ServerSource
from dnsrig.servers import debian, driver, sources
from dnsrig.servers.placement import Endpoint, Placement, Route
from dnsrig.servers.postgresql import programs

NEAR, FAR = IPv4Address("198.18.0.3"), IPv4Address("198.18.0.4")
PLAIN, OVER_TLS = Endpoint(NEAR, 6379, tls=False), Endpoint(NEAR, 6380, tls=True)
DATABASES = ["redis", "valkey"]


def placement(folder: Path, kind: str, role: str, **changes: object) -> Placement:
    """At the far site, transferring nothing; the root file system has the module of Knot DNS, as the package ships
    it."""
    place = placed(folder, kind, role, **{"address": str(FAR), "routes": [], "secondaries": [], **changes})
    module = folder / "root/usr/lib/redis/modules/knot.so"
    module.parent.mkdir(parents=True)
    module.write_bytes(b"ELF")
    module.chmod(0o644)
    return place


def lines(place: Placement) -> list[str]:
    """The configuration as the driver wrote it."""
    driver(place.source.kind).configure(place)
    (path,) = place.directory.iterdir()
    return [line.strip() for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", DATABASES)
def test_a_database_has_the_module_and_may_execute_it(tmp_path: Path, kind: str) -> None:
    place = placement(tmp_path, kind, "database")
    assert "loadmodule /mnt/state/knot.so" in lines(place)
    assert stat.S_IMODE((place.state / "knot.so").stat().st_mode) == 0o755
    assert driver(kind).command(place)[1] == f"/mnt/server/{kind}.conf"


@pytest.mark.parametrize("kind", DATABASES)
def test_a_database_listens_for_tls_only_when_wanted(tmp_path: Path, kind: str) -> None:
    plain = lines(placement(tmp_path / "a", kind, "database"))
    over_tls = lines(placement(tmp_path / "b", kind, "database", over_tls=True))
    assert "port 6379" in plain and not any(line.startswith("tls") for line in plain)
    assert "port 6379" in over_tls and "tls-port 6380" in over_tls, "beside it nothing speaks TLS"
    assert "tls-protocols TLSv1.3" in over_tls


@pytest.mark.parametrize("kind", DATABASES)
def test_a_replica_knows_its_original(tmp_path: Path, kind: str) -> None:
    plain = lines(placement(tmp_path / "a", kind, "database", database=PLAIN))
    over_tls = lines(placement(tmp_path / "b", kind, "database", database=OVER_TLS, over_tls=True))
    assert "replicaof 198.18.0.3 6379" in plain and "tls-replication yes" not in plain
    assert "replicaof 198.18.0.3 6380" in over_tls and "tls-replication yes" in over_tls
    assert "tls-ca-cert-file /mnt/state/tls-certificate.pem" in over_tls, "it checks whom it replicates"


def test_settings_are_the_databases_own_and_come_last(tmp_path: Path) -> None:
    settings = {"io-threads": 2, "repl-diskless-sync-delay": 5, "rdbcompression": False}
    found = lines(placement(tmp_path, "redis", "database", settings=settings))
    assert "io-threads 2" in found and "rdbcompression no" in found
    assert [line for line in found if line.startswith("repl-diskless-sync-delay")] == ["repl-diskless-sync-delay 5"]


@pytest.mark.parametrize("kind", DATABASES)
def test_nothing_goes_to_a_disk_and_no_replica_waits_for_others(tmp_path: Path, kind: str) -> None:
    wanted = {'save ""', "appendonly no", "repl-diskless-sync-delay 0"}
    assert wanted <= set(lines(placement(tmp_path, kind, "database")))


def test_a_root_without_the_module_is_told(tmp_path: Path) -> None:
    place = placement(tmp_path, "redis", "database")
    (tmp_path / "root/usr/lib/redis/modules/knot.so").unlink()
    with pytest.raises(DnsrigError) as raised:
        driver("redis").configure(place)
    assert "redis-module-knot" in raised.value.hint


def test_knot_writes_as_primary_and_reads_as_secondary(tmp_path: Path) -> None:
    primary = lines(placement(tmp_path / "a", "knot", "primary", database=PLAIN))
    secondary = lines(placement(tmp_path / "b", "knot", "secondary", database=PLAIN))
    for found in (primary, secondary):
        assert "zone-db-listen: 198.18.0.3@6379" in found
        assert not any(line.startswith("zone-db-tls") for line in found)
    assert "zone-db-output: 1" in primary and f"file: /mnt/dataset/{ZONES[0].file}" in primary
    assert "zone-db-input: 1" in secondary and not any(line.startswith("master:") for line in secondary)
    assert not any("peers" in line for line in secondary), "nobody notifies it"


def test_knot_pins_a_database_that_is_far(tmp_path: Path) -> None:
    found = lines(placement(tmp_path, "knot", "secondary", database=OVER_TLS))
    assert "zone-db-listen: 198.18.0.3@6380" in found
    assert "zone-db-tls: on" in found and f"zone-db-cert-key: {KEYS.public_key_pin}" in found


def test_knot_without_a_database_is_as_before(tmp_path: Path) -> None:
    place = placement(tmp_path, "knot", "secondary", routes=[Route(1, NEAR, None)])
    found = lines(place)
    assert not any("zone-db" in line for line in found) and "master: route1" in found


def test_the_log_of_knot_says_when_a_zone_came_from_its_database(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "2026-11-21T16:58:58+0000 info: [z000002.example.] database loaded, instance 1, serial 1\n"
        "2026-11-21T16:58:59+0000 error: [z000003.example.] failed to load from database (not exists)\n"
    )
    events = list(driver("knot").read_log(log))
    assert [(event.kind, event.zone) for event in events] == [
        ("zone-done", "z000002.example"),
        ("database not usable", ""),
    ]


SCHEMA = "usr/share/pdns-backend-pgsql/schema/schema.pgsql.sql"


def with_programs(place: Placement) -> Placement:
    """Its root file system has PostgreSQL's programs, in two versions, and PowerDNS's tables for it."""
    root = place.root
    for version in ("9", "18"):
        (root / f"usr/lib/postgresql/{version}/bin").mkdir(parents=True)
    (root / SCHEMA).parent.mkdir(parents=True)
    (root / SCHEMA).touch()
    return place


def test_postgresql_runs_the_newest_of_its_programs(tmp_path: Path) -> None:
    place = with_programs(placement(tmp_path, "postgresql", "database", settings={"wal_compression": True}))
    server = driver("postgresql")
    server.configure(place)
    (initdb,) = server.preparations(place)
    assert initdb.command[0] == "/usr/lib/postgresql/18/bin/initdb"
    assert server.command(place)[0] == "/usr/lib/postgresql/18/bin/postgres"
    text = (place.directory / "postgresql.conf").read_text()
    assert "listen_addresses = '198.18.0.4,2001:2::2,127.0.0.1'" in text and "wal_compression = 'on'" in text
    assert "ssl" not in text


def test_postgresql_of_ones_own_build_runs_its_own_programs(tmp_path: Path) -> None:
    """Else Debian's would run under the label of the build."""
    prefix = tmp_path / "opt"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/psql").touch()
    own = ServerSource(kind="postgresql", source=str(prefix), version="19")
    place = placement(tmp_path, "postgresql", "database", server=own, root=MACHINE)
    assert f"{prefix}/bin/postgres" in driver("postgresql").command(place)
    (initdb,) = driver("postgresql").preparations(place)
    assert f"{prefix}/bin/initdb" in initdb.command


def test_the_newest_of_postgresqls_programs_are_taken_and_none_are_told(tmp_path: Path) -> None:
    old = with_programs(placement(tmp_path / "a", "postgresql", "database"))
    (old.root / "usr/lib/postgresql/9.6/bin").mkdir(parents=True)
    assert programs(old) == "/usr/lib/postgresql/18/bin"
    with pytest.raises(DnsrigError) as raised:
        programs(placement(tmp_path / "b", "powerdns", "primary"))
    assert "powerdns@forky" in raised.value.hint


def test_a_replica_of_postgresql_copies_when_it_starts(tmp_path: Path) -> None:
    near = Endpoint(NEAR, 5432, tls=True)
    place = with_programs(placement(tmp_path, "postgresql", "database", database=near, over_tls=True))
    server = driver("postgresql")
    server.configure(place)
    assert server.preparations(place) == [], "what comes over the network is a part of its start"
    script = server.command(place)[-1]
    copy, _, start = script.partition(" && exec ")
    assert "/usr/lib/postgresql/18/bin/pg_basebackup -d" in copy and "sslmode=verify-ca" in copy
    assert start.startswith("/usr/lib/postgresql/18/bin/postgres")
    assert " -R " in copy, "it goes on from the copy as a replica"
    assert server.stop_signal == signal.SIGINT, "at SIGTERM it would wait for its clients"
    found = (place.directory / "postgresql.conf").read_text().splitlines()
    assert {"ssl = on", "ssl_key_file = '/mnt/state/tls-key.pem'"} <= set(found)


def test_powerdns_keeps_its_tables_in_postgresql(tmp_path: Path) -> None:
    near = Endpoint(NEAR, 5432, tls=False)
    place = with_programs(placement(tmp_path / "a", "powerdns", "primary", database=near))
    found = lines(place)
    assert {"launch=gpgsql", "gpgsql-host=198.18.0.3", "gpgsql-port=5432"} <= set(found)
    assert not any("sqlite" in line for line in found)
    schema, convert, fill, analyse, amend, compact = driver("powerdns").preparations(place)
    assert schema.command[-1] == f"/{SCHEMA}"
    assert "--gpgsql" in convert.command and fill.command[-1] == f"/mnt/state/{convert.stdout}"
    assert (analyse.command[-1], compact.command[-1]) == ("ANALYZE", "VACUUM FULL")
    assert amend.command[-1] == "/mnt/state/after.sql" and (place.state / "after.sql").exists()
    secondary = placement(tmp_path / "b", "powerdns", "secondary", database=near)
    found = lines(secondary)
    assert not any(line in ("secondary=yes", "slave=yes") for line in found), "it transfers nothing"
    assert driver("powerdns").preparations(secondary) == []


def test_a_build_of_powerdns_has_its_tables_where_it_was_installed(tmp_path: Path) -> None:
    near, built = Endpoint(NEAR, 5432, tls=False), tmp_path / "built"
    (built / "share/doc/pdns").mkdir(parents=True)
    (built / "share/doc/pdns/schema.pgsql.sql").touch()
    place = with_programs(placement(tmp_path / "a", "powerdns", "primary", database=near))
    schema, *_ = driver("powerdns").preparations(replace(place, shown={"/mnt/installed": built}))
    assert schema.command[-1] == "/mnt/installed/share/doc/pdns/schema.pgsql.sql"


def test_powerdns_speaks_tls_to_a_database_at_another_site_only(tmp_path: Path) -> None:
    """The one beside it listens for TLS too, for the replica's sake, and libpq would take it."""
    for name, endpoint, mode in (("a", PLAIN, "disable"), ("b", OVER_TLS, "verify-ca sslrootcert=")):
        found = lines(placement(tmp_path / name, "powerdns", "secondary", database=endpoint, over_tls=True))
        assert any(line.startswith(f"gpgsql-extra-connection-parameters=sslmode={mode}") for line in found)


def test_the_log_of_a_database_has_milliseconds() -> None:
    line = "5094:M 21 Nov 2026 16:50:07.898 # Server initialized"
    assert driver("redis").log_time_ns(line) == 1_795_279_807_898_000_000
    assert driver("valkey").log_time_ns("no time") is None
    line = "2026-11-21 16:50:07.898 UTC [12] LOG:  database system is ready"
    assert driver("postgresql").log_time_ns(line) == 1_795_279_807_898_000_000


def test_a_root_file_system_of_older_packages_is_built_again_and_has_the_servers_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = {"util-linux": "2.41-5", "dash": "0.5.12-12", "postgresql": "18+287", "postgresql-18": "18.1-2+b1"}
    built = [debian.Root(tmp_path / "a", "forky", {n: v for n, v in whole.items() if n != "dash"})]
    monkeypatch.setattr(debian, "roots", lambda suite, kind: built)
    assert sources.find("postgresql@forky") is None
    built.append(debian.Root(tmp_path / "b", "forky", whole))
    found = sources.find("postgresql@forky")
    assert found is not None and found.version == "18.1", "the first package is one that only points to it"


def options(carrier: str) -> dict[str, int | float | str | bool]:
    return {**replication.OPTIONS, "carrier": carrier}


@pytest.mark.parametrize("carrier", list(replication.FAR_LINKS))
def test_the_far_link_is_one_of_the_links_and_the_only_way_to_the_far_site(carrier: str) -> None:
    hosts = procedures.hosts(replication, options(carrier))
    links, far = procedures.links(replication, hosts), replication.far(hosts, options(carrier))
    assert len(far) == 1 and far[0] in links
    at_far_site = {name for name, role in hosts.items() if role.under_test}
    crossing = [pair for pair in links if len(at_far_site & set(pair)) == 1 and "observer" not in pair]
    assert crossing == far
    assert next(name for name, role in hosts.items() if role.under_test) == "secondary", "it is what is asked"


def spec(*settings: str) -> trial_specs.TrialSpec:
    """The one variant that ``settings`` leave of long-distance, as it would be."""
    document = model.load(
        model.find("long-distance"), "quick", ["case=many-zones", "congestion=cubic", "baseline={}", *settings]
    )
    (point,) = model.points(document)
    return trial_specs.provisional("long-distance", point, [0, 1])


def test_tls_is_between_the_sites_only() -> None:
    found = spec('carrier="replica+tls"')
    (near, far, secondary, primary) = (found.hosts[n] for n in ("database", "replica", "secondary", "primary"))
    assert placing.database_of(found, far) == replace(OVER_TLS, address=IPv4Address(near.address))
    assert placing.database_of(found, secondary) == replace(PLAIN, address=IPv4Address(far.address))
    assert placing.database_of(found, primary) == replace(PLAIN, address=IPv4Address(near.address))
    remote = spec('carrier="remote+tls"')
    assert placing.database_of(remote, remote.hosts["secondary"]) == replace(
        OVER_TLS, address=IPv4Address(remote.hosts["database"].address)
    )
    assert placing.database_of(remote, HostSpec(address="198.18.0.9", cpus=[0])) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ['carrier="replica"', "hosts.secondary.server=nsd@forky"],
            "NSD as secondary (host secondary) has no zone database",
        ),
        (
            ['carrier="remote"', "hosts.primary.server=bind@forky"],
            "BIND 9 as primary (host primary) has no zone database",
        ),
        (['carrier="axfr"', "hosts.secondary.server=transfer@engine"], "do not go together"),
        (['carrier="axfr"', "options.carrier=pipelined"], "do not go together"),
        (['carrier="replica"', "transfer.transport=tcp+tsig"], "without TSIG"),
        (['carrier="replica"', "hosts.database.server=nsd@forky"], "cannot be a database"),
        (['carrier="axfr"', "options.carrier=pigeon"], "options.carrier = 'pigeon'"),
    ],
)
def test_what_cannot_be_is_refused_before_the_start(settings: list[str], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        spec(*settings)
    assert words in str(raised.value)


@pytest.mark.parametrize("carrier", ["axfr", "replica", "remote+tls", "pipelined from nsd"])
def test_every_host_that_zones_pass_has_the_congestion_control(carrier: str) -> None:
    hosts = spec(f'carrier="{carrier}"').hosts
    assert {host.congestion for name, host in hosts.items() if name != "observer"} == {"cubic"}


@pytest.mark.parametrize(("scale", "trials"), [("quick", 66), ("standard", 66), ("published", 68)])
def test_long_distance_can_be_planned_at_every_scale(scale: str, trials: int) -> None:
    points = model.points(model.load(model.find("long-distance"), scale, []))
    specs = [trial_specs.provisional("long-distance", point, [0, 1]) for point in points]
    assert len(specs) == trials
    of_tls = [s for s in specs if str(s.variant.parameters["carrier"]).startswith("pipelined+tls")]
    assert all(s.transfer.tls and s.options["carrier"] == "pipelined" for s in of_tls)
    if scale == "published":
        return
    assert {(s.dataset.kind, s.hosts["primary"].congestion) for s in of_tls} == {("tiny-zones", "bbr")}
    assert {s.hosts["primary"].server.kind for s in of_tls if s.hosts["primary"].server} == {"knot", "nsd"}


def test_a_database_that_a_carrier_lacks_is_no_error() -> None:
    assert "database" not in spec('carrier="axfr"').hosts
    assert procedure("replication") is replication
