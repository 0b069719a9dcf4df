"""Servers without zones, echo and Unbound; and DoT of those with zones."""

from __future__ import annotations

from pathlib import Path

import pytest
from placement_data import changed, placed

from dnsrig.errors import UsageError
from dnsrig.rundir import ServerSource, TransferSpec
from dnsrig.servers import driver, keys, sources
from dnsrig.servers.driver import wanted_features
from dnsrig.servers.placement import Zone
from dnsrig.servers.sources import engine


@pytest.mark.parametrize(("kind", "file"), [("bind", "named.conf"), ("knot", "knot.conf"), ("nsd", "nsd.conf")])
@pytest.mark.parametrize("role", ["primary", "secondary"])
def test_dot_has_its_port_and_the_key(tmp_path: Path, kind: str, file: str, role: str) -> None:
    place = placed(tmp_path, kind, role, over_tls=True)
    driver(kind).configure(place)
    text = (place.directory / file).read_text()
    assert str(keys.XOT_PORT) in text and place.private_key in text
    assert keys.TLS_NAME not in text, "it checks nobody: zones come without TLS"


@pytest.mark.parametrize(
    ("kind", "role", "file", "lines"),
    [
        ("bind", "primary", "named.conf", ["listen-on port 443 tls served http default { 198.18.0.2; };"]),
        ("bind", "resolver", "named.conf", ["listen-on port 443 tls served http default { 198.18.0.2; };"]),
        ("unbound", "resolver", "unbound.conf", ["interface: 198.18.0.2@443", "https-port: 443"]),
        ("knot-resolver", "resolver", "kresd.conf", ["net.listen('198.18.0.2', 443, { kind = 'doh2' })"]),
    ],
)
def test_doh_has_its_port_and_the_key(tmp_path: Path, kind: str, role: str, file: str, lines: list[str]) -> None:
    place = placed(tmp_path, kind, role, over_https=True)
    driver(kind).configure(place)
    text = (place.directory / file).read_text()
    assert set(lines) <= {line.strip() for line in text.splitlines()}
    assert place.private_key in text and str(keys.XOT_PORT) not in text


def test_doq_has_its_port_and_the_key(tmp_path: Path) -> None:
    place = placed(tmp_path, "knot", "primary", over_quic=True)
    driver("knot").configure(place)
    text = (place.directory / "knot.conf").read_text()
    assert f"listen-quic: [198.18.0.2@{keys.XOT_PORT}, " in text and place.private_key in text
    assert "listen-tls" not in text
    transfer = TransferSpec()
    wanted = wanted_features(transfer, several_sources=False, role="primary", over_tls=True, over_quic=True)
    assert wanted == ["DoT", "DoQ"]
    assert driver("knot").lacks("primary", wanted, "3.2.9") == ("DoT", "3.4")
    assert driver("nsd").lacks("primary", ["DoQ"], "4.14.0") == ("DoQ", None)


def test_unbound_asks_the_primary_for_all_zones(tmp_path: Path) -> None:
    place = placed(tmp_path, "unbound", "resolver", settings={"outgoing-range": 512, "prefetch": True})
    driver("unbound").configure(place)
    lines = [line.strip() for line in (place.directory / "unbound.conf").read_text().splitlines()]
    assert 'name: "example"' in lines and "stub-addr: 198.18.0.1@53" in lines
    assert "outgoing-range: 512" in lines and "prefetch: yes" in lines and "num-threads: 1" in lines
    assert not any("853" in line for line in lines)


def test_unbound_answers_over_tls_when_asked_to(tmp_path: Path) -> None:
    place = placed(tmp_path, "unbound", "resolver", over_tls=True)
    driver("unbound").configure(place)
    assert f'tls-service-key: "{place.private_key}"' in (place.directory / "unbound.conf").read_text()


@pytest.mark.parametrize(
    ("names", "suffix"),
    [
        (["example"], "example"),
        (["z0.example", "z1.example"], "example"),
        (["a.b.example", "c.b.example"], "b.example"),
        (["one.example", "two.invalid"], "."),
    ],
)
def test_what_the_names_of_zones_share(tmp_path: Path, names: list[str], suffix: str) -> None:
    assert placed(tmp_path, "unbound", "resolver", zones=[Zone(name, "") for name in names]).suffix == suffix


def test_echo_takes_the_options_of_serve_echo(tmp_path: Path) -> None:
    place = placed(
        tmp_path, "echo", "primary", settings={"stall": "200ms", "stall-threads": 1, "threads": 4, "segmentation": True}
    )
    driver("echo").configure(place)
    command = driver("echo").command(place)
    assert command[:4] == ["dnsrig-engine", "serve", "echo", "198.18.0.2"]
    assert {"--transport=udp,tcp", "--stall=200ms", "--stall-threads=1", "--threads=4", "--segmentation"} <= set(
        command
    )
    assert "--segmentation" not in driver("echo").command(changed(place, settings={"segmentation": False}))
    over_tls = driver("echo").command(changed(place, settings={}, over_tls=True))
    over_https = driver("echo").command(changed(place, settings={}, over_https=True))
    assert {"--transport=udp,tcp,doh", f"--key={place.private_key}"} <= set(over_https)
    assert {"--transport=udp,tcp,dot", f"--key={place.private_key}", "--threads=1"} <= set(over_tls)
    over_quic = driver("echo").command(changed(place, settings={"retry": True}, over_quic=True))
    assert {"--transport=udp,tcp,doq", f"--key={place.private_key}", "--retry"} <= set(over_quic)


def test_echo_with_an_option_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="echo has no setting 'late'"):
        driver("echo").configure(placed(tmp_path, "echo", "primary", settings={"late": 1}))


def test_echo_comes_from_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "dnsrig-engine"
    program.write_text("one build")
    monkeypatch.setenv("DNSRIG_ENGINE", str(program))
    one = sources.find("echo")
    assert one is not None and one.name == "echo@engine" and sources.root(one) is None
    assert sources.executable(one, ["dnsrig-engine", "serve"]) == [engine.SEEN, "serve"]
    assert sources.shown(one) == {engine.SEEN: program}
    program.write_text("another build")
    assert sources.find("echo@engine") != one, "two builds are two servers"
    assert one in [one, *sources.installed()["echo"]]


@pytest.mark.parametrize("name", ["echo@forky", "bind@engine"])
def test_sources_that_cannot_be(name: str) -> None:
    with pytest.raises(UsageError, match="built into dnsrig"):
        sources.find(name)


@pytest.mark.parametrize(("version", "word"), [("9.16.50", "default-masters"), ("9.18.49", "default-primaries")])
def test_bind_is_told_of_a_catalog_in_its_own_words(tmp_path: Path, version: str, word: str) -> None:
    source = ServerSource(kind="bind", source="x", version=version, key="x")
    catalog, follows = Zone("catalog.example", "catalog.zone"), TransferSpec(provisioning="catalog")
    place = placed(tmp_path, "bind", "secondary", server=source, catalog=catalog, transfer=follows)
    driver("bind").configure(place)
    assert f'zone "catalog.example" {word} {{' in (place.directory / "named.conf").read_text()


def test_what_is_wanted_of_whom() -> None:
    catalog = TransferSpec(provisioning="catalog", ixfr=True)
    assert wanted_features(catalog, several_sources=False, role="resolver", over_tls=True) == ["DoT"]
    assert wanted_features(catalog, several_sources=False, role="resolver", over_https=True) == ["DoH"]
    first = wanted_features(catalog, several_sources=False, catalog_schema=1)
    assert first == ["catalog zones of schema 1", "IXFR"]
    assert driver("bind").lacks("secondary", first, "9.16.50") is None
    assert driver("knot").lacks("secondary", first, "3.5.8") == ("catalog zones of schema 1", None)
    second = wanted_features(catalog, several_sources=False)
    assert driver("bind").lacks("secondary", second, "9.16.50") == ("catalog zones", "9.18.3")
