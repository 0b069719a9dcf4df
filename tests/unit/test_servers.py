"""Drivers: configurations as rendered, logs as read; sources as named."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from datetime import UTC, datetime
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from placement_data import KEYS, ZONES, changed, placed

from dnsrig import confinement
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import Role, Scalar, ServerSource, TransferSpec
from dnsrig.servers import all_drivers, debian, driver, feature_table, keys, sources
from dnsrig.servers.driver import LogEvent, wanted_features
from dnsrig.servers.formats import numbers
from dnsrig.servers.placement import Placement, Route, Zone
from dnsrig.traps import all_traps

SCHEMA = """
CREATE TABLE domains (id INTEGER PRIMARY KEY, name TEXT, master TEXT, type TEXT);
CREATE TABLE domainmetadata (id INTEGER PRIMARY KEY, domain_id INTEGER, kind TEXT, content TEXT);
CREATE TABLE tsigkeys (id INTEGER PRIMARY KEY, name TEXT, algorithm TEXT, secret TEXT);
"""
ZONE_SERVERS = sorted(kind for kind, server in all_drivers().items() if server.answers_zones and server.packages)
OWN_IPV4 = IPv4Address("198.18.0.2")
CATALOG = Zone("catalog.example", "catalog.zone")


def placement(folder: Path, kind: str, role: str, **changes: object) -> Placement:
    """As in a trial; the root file system has PowerDNS's schema."""
    place = placed(folder, kind, role, **changes)
    schema = folder / "root/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql"
    schema.parent.mkdir(parents=True)
    schema.write_text(SCHEMA)
    return place


def configuration(place: Placement) -> str:
    """All that the driver wrote, a database as its SQL."""
    driver(place.source.kind).configure(place)
    files = [*place.directory.iterdir(), *place.state.iterdir()]
    return "\n".join(_text(path) for path in files)


def _text(path: Path) -> str:
    if path.suffix != ".sqlite3":
        return path.read_text()
    with sqlite3.connect(path) as connection:
        return "\n".join(connection.iterdump())


@pytest.mark.parametrize("kind", ZONE_SERVERS)
def test_secondary_knows_zones_and_primary(tmp_path: Path, kind: str) -> None:
    place = placement(tmp_path, kind, "secondary")
    text = configuration(place)
    assert all(zone.name in text for zone in ZONES)
    assert "198.18.0.1" in text and "198.18.0.2" in text
    assert "/mnt/dataset" not in text, "a cold secondary has no zone files"


@pytest.mark.parametrize("kind", ZONE_SERVERS)
def test_primary_reads_the_dataset(tmp_path: Path, kind: str) -> None:
    place = placement(tmp_path, kind, "primary")
    text = configuration(place)
    assert f"/mnt/dataset/{ZONES[1].file}" in text
    assert str(tmp_path) not in text, "paths are as the server sees them"


@pytest.mark.parametrize(
    ("kind", "setting", "line"),
    [
        ("bind", {"transfers-per-ns": 100}, "transfers-per-ns 100;"),
        ("bind", {"minimal-responses": True}, "minimal-responses yes;"),
        ("knot", {"server.background-workers": 4}, "    background-workers: 4"),
        ("knot", {"template.zonefile-sync": -1}, "    zonefile-sync: -1"),
        ("nsd", {"xfrd-tcp-max": 8}, "    xfrd-tcp-max: 8"),
        ("nsd", {"pattern.size-limit-xfr": 1}, "    size-limit-xfr: 1"),
        ("powerdns", {"retrieval-threads": 8}, "retrieval-threads=8"),
    ],
)
def test_settings_by_the_servers_own_names(tmp_path: Path, kind: str, setting: dict[str, int], line: str) -> None:
    text = configuration(placement(tmp_path, kind, "secondary", settings=setting))
    assert line in text.splitlines() or f"    {line}" in text.splitlines()


@pytest.mark.parametrize("kind", ZONE_SERVERS)
@pytest.mark.parametrize("role", ["primary", "secondary"])
def test_tsig_is_in_the_configuration_only_when_wanted(tmp_path: Path, kind: str, role: str) -> None:
    plain = configuration(placement(tmp_path / "a", kind, role))
    signed = configuration(placement(tmp_path / "b", kind, role, transfer=TransferSpec(transport="tcp+tsig")))
    assert KEYS.tsig_secret in signed and keys.TSIG_NAME in signed
    assert KEYS.tsig_secret not in plain and keys.TSIG_NAME not in plain


@pytest.mark.parametrize("kind", ["bind", "knot", "nsd"])
@pytest.mark.parametrize("role", ["primary", "secondary"])
def test_xot_uses_its_port(tmp_path: Path, kind: str, role: str) -> None:
    plain = configuration(placement(tmp_path / "a", kind, role))
    over_tls = configuration(placement(tmp_path / "b", kind, role, transfer=TransferSpec(transport="xot")))
    assert "853" in over_tls and "853" not in plain
    authenticated = keys.TLS_NAME in over_tls or KEYS.public_key_pin in over_tls
    assert authenticated == (role == "secondary"), "the secondary checks whom it talks to"


def test_knot_uses_quic_in_both_roles(tmp_path: Path) -> None:
    over_quic = TransferSpec(transport="xoq")
    text = configuration(placement(tmp_path / "a", "knot", "primary", transfer=over_quic))
    assert "listen-quic: [198.18.0.2@853, 2001:2::2@853]" in text and "listen-tls" not in text
    text = configuration(placement(tmp_path / "b", "knot", "secondary", transfer=over_quic))
    assert "@853" in text and "quic: on" in text and "tls: on" not in text and KEYS.public_key_pin in text


@pytest.mark.parametrize("kind", ZONE_SERVERS)
def test_catalog_takes_the_place_of_the_zones(tmp_path: Path, kind: str) -> None:
    catalog = TransferSpec(provisioning="catalog")
    text = configuration(placement(tmp_path / "a", kind, "secondary", transfer=catalog, catalog=CATALOG))
    assert CATALOG.name in text and not any(zone.name in text for zone in ZONES)
    text = configuration(placement(tmp_path / "b", kind, "primary", transfer=catalog, catalog=CATALOG))
    assert all(zone.name in text for zone in [*ZONES, CATALOG])


@pytest.mark.parametrize("kind", ZONE_SERVERS)
def test_zones_are_divided_among_routes(tmp_path: Path, kind: str) -> None:
    one, two = IPv4Address("198.18.0.1"), IPv4Address("198.18.0.9")
    own, other = IPv4Address("198.18.0.2"), IPv4Address("198.18.3.1")
    place = placement(tmp_path, kind, "secondary", routes=[Route(1, one, own), Route(2, two, other)])
    text = configuration(place)
    assert all(str(address) in text for address in (one, two, own, other))
    assert [place.route_of(number).number for number in range(4)] == [1, 2, 1, 2]


@pytest.mark.parametrize("kind", ZONE_SERVERS)
@pytest.mark.parametrize("role", ["primary", "secondary"])
def test_a_server_listens_at_both_its_addresses(tmp_path: Path, kind: str, role: str) -> None:
    """Whichever it is asked at; and for TLS as well."""
    ipv4 = listening(configuration(placement(tmp_path / "a", kind, role)))
    ipv6 = listening(configuration(placement(tmp_path / "b", kind, role, address="2001:2::2", other_address=OWN_IPV4)))
    assert len(ipv4) == len(ipv6) > 0
    for lines in (ipv4, ipv6):
        assert all(any(address in line for line in lines) for address in ("198.18.0.2", "2001:2::2"))
    if driver(kind).support("XoT").since(role):  # type: ignore[arg-type]
        over_tls = placement(tmp_path / "c", kind, "primary", transfer=TransferSpec(transport="xot"))
        tls = [line for line in listening(configuration(over_tls)) if "853" in line]
        assert all(any(address in line for line in tls) for address in ("198.18.0.2", "2001:2::2"))


def listening(text: str) -> list[str]:
    return re.findall(r"^ *(?:listen|ip-address|local-address).*$", text, re.MULTILINE)


@pytest.mark.parametrize(("version", "new"), [("9.11.37", False), ("9.16.50", False), ("9.18.10", True)])
def test_bind_is_spoken_to_in_words_that_it_knows(tmp_path: Path, version: str, new: bool) -> None:
    source = ServerSource(kind="bind", source="git:v1", version=version, key="bind-1")
    for role in ("primary", "secondary"):
        text = configuration(placement(tmp_path / role, "bind", role, server=source))
        assert (f"type {role};" in text) == new and bool(re.search(r"type (master|slave);|masters", text)) != new


def test_bind_asks_from_an_address_of_either_family(tmp_path: Path) -> None:
    routes = [Route(1, ip_address("2001:2::1"), ip_address("2001:2:0:4::1"))]
    text = configuration(placement(tmp_path, "bind", "secondary", routes=routes))
    assert "primaries { 2001:2::1 port 53; };" in text and "transfer-source-v6 2001:2:0:4::1;" in text


def test_what_a_driver_lacks() -> None:
    bind, powerdns = driver("bind"), driver("powerdns")
    over_tls = wanted_features(TransferSpec(transport="xot"), several_sources=False)
    assert bind.lacks("secondary", over_tls, "9.16.50-1~deb11u2") == ("XoT", "9.18")
    assert bind.lacks("secondary", over_tls, "9.20.30") is None
    assert bind.lacks("secondary", over_tls, "not resolved") is None, "not known yet"
    assert powerdns.lacks("primary", over_tls, "not resolved") == ("XoT", None)
    over_quic = wanted_features(TransferSpec(transport="xoq"), several_sources=False)
    assert over_quic == ["XoQ"] and bind.lacks("primary", over_quic, "9.20.30") == ("XoQ", None)
    assert driver("knot").lacks("primary", over_quic, "3.5.8") is None
    both = wanted_features(TransferSpec(transport="tcp+tsig", provisioning="catalog"), several_sources=False)
    assert powerdns.conflict("secondary", both) == ["TSIG", "catalog zones"]
    assert not powerdns.conflict("secondary", both[:1]) and not powerdns.conflict("primary", both)


def test_versions_are_compared_as_numbers() -> None:
    assert numbers("9.9") < numbers("9.18.49-1~deb12u1") < numbers("9.20.0")
    assert numbers("not resolved") == ()


def test_feature_table_names_every_driver() -> None:
    rows = list(feature_table())
    as_secondary = dict(zip(all_drivers(), next(row for row in rows if row[:2] == ("secondary", "XoT"))[2]))
    assert {kind: since for kind, since in as_secondary.items() if since != "no"} == {
        "bind": "9.18",
        "knot": "3.4",
        "nsd": "4.3.7",
        "transfer": "0.0",
    }
    assert all(len(since) == len(all_drivers()) for _, _, since in rows)


def test_keys_are_new_each_time_and_kept_private(tmp_path: Path) -> None:
    other = keys.make()
    assert other.tsig_secret != KEYS.tsig_secret
    other.write(tmp_path, private=False)
    assert not (tmp_path / keys.PRIVATE_KEY_FILE).exists(), "a secondary answers nobody with it"
    other.write(tmp_path, private=True)
    assert stat.S_IMODE((tmp_path / keys.PRIVATE_KEY_FILE).stat().st_mode) == 0o600
    certificate = x509.load_pem_x509_certificate((tmp_path / keys.CERTIFICATE_FILE).read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [keys.TLS_NAME]


def test_knot_setting_without_section(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no setting 'background-workers'"):
        configuration(placement(tmp_path, "knot", "secondary", settings={"background-workers": 1}))


def test_powerdns_is_told_which_zones_are_signed(tmp_path: Path) -> None:
    """It would leave out their signatures; and take an unsigned zone that is called signed for one that lacks them."""
    place = placement(tmp_path, "powerdns", "primary")
    assert "dnssec" not in configuration(place) and len(driver("powerdns").preparations(place)) == 3
    first = place.dataset / place.zones[0].file
    first.parent.mkdir(parents=True, exist_ok=True)
    first.write_text("@ IN SOA a. b. 1 2 3 4 5\n@ IN RRSIG SOA 13 1 86400 …\n")
    assert place.signed
    (place.state / "zones.sqlite3").unlink()
    assert "gsqlite3-dnssec=yes" in configuration(place).splitlines()
    rectified = [step.command[-1] for step in driver("powerdns").preparations(place) if "rectify-zone" in step.command]
    assert rectified == [zone.name for zone in place.configured_zones]
    with sqlite3.connect(place.state / "zones.sqlite3") as tables:
        tables.execute("CREATE TABLE records (domain_id INTEGER, type TEXT)")
        tables.executemany("INSERT INTO domains (name) VALUES (?)", [("signed",), ("plain",)])
        records = [(1, "SOA"), (1, "RRSIG"), (1, "RRSIG"), (2, "SOA"), (2, "NS")]
        tables.executemany("INSERT INTO records VALUES (?, ?)", records)
        tables.executescript((place.state / "after.sql").read_text())
        assert tables.execute("SELECT domain_id, kind, content FROM domainmetadata").fetchall() == [
            (1, "PRESIGNED", "1")
        ]


def test_powerdns_is_told_of_nsec3_before_it_orders_names(tmp_path: Path) -> None:
    """Else it denies names by NSECs of its own; and it orders hashes only of zones that have a key."""
    place = placement(tmp_path, "powerdns", "primary")
    first = place.dataset / place.zones[0].file
    first.parent.mkdir(parents=True, exist_ok=True)
    first.write_text("@ IN RRSIG SOA 13 1 86400 …\n@ IN NSEC3PARAM 1 0 0 -\n")
    configuration(place)
    steps = [" ".join(step.command) for step in driver("powerdns").preparations(place)]
    told, *between, after = [
        n for n, step in enumerate(steps) if re.search(r"(before|after)\.sql|add-zone-key|rectify", step)
    ]
    assert "before.sql" in steps[told] and "after.sql" in steps[after] and told == between[0] - 1
    assert ["add-zone-key" in steps[n] for n in between] == [True, False] * len(place.configured_zones)
    with sqlite3.connect(place.state / "zones.sqlite3") as tables:
        tables.execute("CREATE TABLE records (domain_id INTEGER, type TEXT, content TEXT, ordername TEXT)")
        tables.execute("CREATE TABLE cryptokeys (id INTEGER)")
        tables.execute("INSERT INTO cryptokeys VALUES (1)")
        tables.execute("INSERT INTO domains (name) VALUES ('signed')")
        records = [("NSEC3PARAM", "1 0 0 -", "a"), ("RRSIG", "NSEC3PARAM 13", "a"), ("RRSIG", "NSEC3 13", "b")]
        tables.executemany("INSERT INTO records VALUES (1, ?, ?, ?)", records)
        tables.executescript((place.state / "before.sql").read_text())
        tables.executescript((place.state / "after.sql").read_text())
        told_of = tables.execute("SELECT kind, content FROM domainmetadata").fetchall()
        assert told_of == [("NSEC3PARAM", "1 0 0 -"), ("PRESIGNED", "1")]
        assert tables.execute("SELECT ordername FROM records").fetchall() == [("a",), ("a",), (None,)]
        assert not tables.execute("SELECT * FROM cryptokeys").fetchall()


def test_powerdns_gets_a_new_version_in_one_transaction(tmp_path: Path) -> None:
    """A secondary that asks meanwhile must get the old zone or the new, whole."""
    place = placement(tmp_path, "powerdns", "primary", transfer=TransferSpec(notify=True))
    configuration(place)
    if os.geteuid() == 0:
        confinement.own(place.state, confinement.USER)
    steps = [step.command for step in driver("powerdns").load_changes(place)]
    live = f"{place.seen_state}/zones.sqlite3"
    assert [command[-1] for command in steps if live in command] == [f".read {place.seen_state}/replace.sql"]
    statements = (place.state / "replace.sql").read_text().split(";\n")
    begin, end = statements.index("BEGIN IMMEDIATE"), statements.index("COMMIT")
    assert begin == 1 and statements[end:] == ["COMMIT", ""], "all but ATTACH is inside"
    assert "pdns-next.conf" in {path.name for path in place.directory.iterdir()}


@pytest.mark.parametrize("catalog", [None, CATALOG])
def test_powerdns_asks_for_differences_but_not_of_a_catalog(tmp_path: Path, catalog: Zone | None) -> None:
    place = placement(tmp_path, "powerdns", "secondary", catalog=catalog, transfer=TransferSpec(ixfr=True))
    assert ("'IXFR'" in configuration(place)) == (catalog is None)


def test_powerdns_without_sqlite_backend_says_so(tmp_path: Path) -> None:
    place = placement(tmp_path, "powerdns", "secondary")
    with pytest.raises(DnsrigError, match="no SQLite schema"):
        configuration(changed(place, root=tmp_path / "empty"))


@pytest.mark.parametrize(("ixfr", "words"), [(False, "request-ixfr no;"), (True, "request-ixfr yes;")])
def test_bind_asks_for_differences_if_they_are_wanted(tmp_path: Path, ixfr: bool, words: str) -> None:
    assert words in configuration(placement(tmp_path, "bind", "secondary", transfer=TransferSpec(ixfr=ixfr)))


@pytest.mark.parametrize(
    ("role", "transport", "allowed"),
    [("primary", "tcp", "any"), ("primary", "tcp+tsig", f'key "{keys.TSIG_NAME}"'), ("secondary", "tcp+tsig", "none")],
)
def test_bind_lets_only_a_client_with_the_key_transfer(tmp_path: Path, role: str, transport: str, allowed: str) -> None:
    place = placement(tmp_path, "bind", role, transfer=TransferSpec.model_validate({"transport": transport}))
    assert f"allow-transfer {{ {allowed}; }};" in configuration(place)


def test_bind_limit_is_in_force_by_default_and_settable() -> None:
    def rates(role: Role, settings: dict[str, Scalar]) -> list[tuple[float, bool]]:
        limits = driver("bind").limits(role, settings)
        return [(limit.zones_per_s, limit.default) for limit in limits if limit.zones_per_s]

    assert rates("secondary", {}) == [(20, True)]
    assert rates("secondary", {"serial-query-rate": 500}) == [(500, False)]
    assert rates("primary", {}) == []


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("bind", "named -f -n 1 -c /mnt/server/named.conf"),
        ("knot", "knotd -c /mnt/server/knot.conf"),
        ("knot-resolver", "kresd -n -c /mnt/server/kresd.conf /mnt/state"),
        ("nsd", "nsd -d -c /mnt/server/nsd.conf"),
        ("powerdns", "pdns_server --config-dir=/mnt/server"),
        ("unbound", "unbound -d -p -c /mnt/server/unbound.conf"),
    ],
)
def test_a_server_is_started_in_the_foreground(tmp_path: Path, kind: str, command: str) -> None:
    assert driver(kind).command(placed(tmp_path, kind, "primary")) == command.split()


LOGS = {
    "bind": (
        "21-Nov-2026 03:52:20.044 xfer-in: info: 0x7f: transfer of 'z1.example/IN' from 198.18.0.1#53: Transfer status: success",
        44_000_000,
    ),
    "knot": (
        "2026-11-21T03:52:20+0000 info: [z1.example.] refresh, remote 198.18.0.1@53, zone updated, 0.00 seconds, serial none -> 1",
        0,
    ),
    "nsd": ("[2026-11-21 03:52:20.330] nsd[15175]: info: zone z1.example serial 0 is updated to 1", 330_000_000),
    "powerdns": (
        "Nov 21 03:52:20 AXFR-in zone 'z1.example', primary '198.18.0.1', zone committed with serial 1",
        0,
    ),
}


@pytest.mark.parametrize("kind", ZONE_SERVERS)
def test_log_line_of_a_finished_zone(tmp_path: Path, kind: str) -> None:
    line, below_second_ns = LOGS[kind]
    (tmp_path / "log").write_text(f"something else\n{line}\n")
    (event,) = driver(kind).read_log(tmp_path / "log")
    year = datetime.now(UTC).year if kind == "powerdns" else 2026
    second = int(datetime(year, 11, 21, 3, 52, 20, tzinfo=UTC).timestamp())
    assert event == LogEvent(second * 10**9 + below_second_ns, "zone-done", "z1.example", line)
    assert below_second_ns % driver(kind).log_clock_resolution_ns == 0


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("bind", "21-Nov-2026 03:52:20.044 xfer-in: error: transfer of 'z1.example/IN' from 198.18.0.1#53: failed to connect: address not available"),
        ("bind", "21-Nov-2026 06:43:39.452 xfer-in: info: zone z1.example/IN: refresh: failure trying primary 198.18.0.1#53 (source 0.0.0.0#0): address in use"),
        ("knot", "2026-11-21T06:40:38+0000 info: [z1.example.] refresh, remote route1, address 198.18.0.1@53, failed (address is not available)"),
    ],
)  # fmt: skip
def test_log_line_of_exhausted_ports(tmp_path: Path, kind: str, line: str) -> None:
    (tmp_path / "log").write_text(line)
    assert [event.kind for event in driver(kind).read_log(tmp_path / "log")] == ["no free port"]


def test_an_address_in_use_that_nobody_connected_from_is_no_lack_of_ports(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "21-Nov-2026 03:52:20.044 network: error: could not listen on UDP socket: address in use"
    )
    assert list(driver("bind").read_log(tmp_path / "log")) == []


@pytest.mark.parametrize("kind", ZONE_SERVERS)
@given(st.binary(max_size=300))
def test_any_log_can_be_read(tmp_path_factory: pytest.TempPathFactory, kind: str, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / f"{kind}.log"
    path.write_bytes(content + b"\n" + LOGS[kind][0].encode()[:60] + content)
    list(driver(kind).read_log(path))


@pytest.mark.parametrize("kind", sorted(all_drivers()))
def test_settings_that_decide_performance_are_documented(kind: str) -> None:
    assert len(driver(kind).settings) >= 4
    assert all(setting.default and setting.meaning for setting in driver(kind).settings)


def test_source_names() -> None:
    assert sources.parse("bind@forky")[1] == "forky"
    assert sources.parse("bind")[1] == "system"
    with pytest.raises(UsageError, match="no server called 'tinydns'"):
        sources.parse("tinydns@forky")


@pytest.mark.parametrize("source", ["system", "engine", "forky", "/opt/bind", "~/bind", "./bind", "git:v1"])
def test_a_source_is_of_one_kind(source: str) -> None:
    assert sum(kind.takes(source) for kind in sources.all_sources().values()) == 1


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(UsageError, match="'ftp:v1' is not the name of a source"):
        sources.find("bind@ftp:v1")


def test_a_root_file_system_is_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))
    found = ServerSource(kind="nsd", source="forky", version="4", key="nsd-0123")
    assert not sources.unchanged(found)
    (tmp_path / "roots/forky/nsd-0123").mkdir(parents=True)
    assert sources.unchanged(found) and sources.root(found) == tmp_path / "roots/forky/nsd-0123"


def test_build_of_the_users_own(tmp_path: Path) -> None:
    """Its version is asked for where servers run: without what others have in /tmp, and without rights."""
    prefix = tmp_path / "built"
    (prefix / "sbin").mkdir(parents=True)
    program = prefix / "sbin" / "nsd"
    program.write_text(f"#!/bin/sh\necho NSD version 4.99.1\ntouch {tmp_path}/executed {prefix}/executed\n")
    program.chmod(0o755)
    found = sources.find(f"nsd@{prefix}")
    assert found is not None and (found.version, found.prefix) == ("4.99.1", str(prefix))
    assert sources.executable(found, ["nsd", "-d"]) == [str(program), "-d"]
    assert sources.shown(found) == {str(prefix): prefix}
    if os.geteuid() == 0:
        assert not [*tmp_path.rglob("executed")]
    seen = sources.look(f"nsd@{prefix}")
    assert seen is not None and (seen.version, seen.fingerprint) == ("", found.fingerprint), "nothing was executed"


def test_missing_build_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no knotd under"):
        sources.find(f"knot@{tmp_path}")


def test_suite_names_are_checked_before_apt_is_asked() -> None:
    with pytest.raises(UsageError, match="not the name of a Debian suite"):
        debian.resolve("for/ky", ("nsd",))


def test_remedies_are_against_traps_that_there_are() -> None:
    assert {trap for server in all_drivers().values() for trap in server.remedies} <= set(all_traps())
