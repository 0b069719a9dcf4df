"""The signed simulated Internet, as BIND's verifier and as resolvers find it that validate."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dnssec_verify
import pytest
import world_server
from resolver_host import RESOLVER, place, resolver
from suites import quick

from dnsrig.lab import host as lab_host
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec, Resolving
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE, read_anchor

CPUS = sorted(os.sched_getaffinity(0))
INTERNET = "198.18.0.3"
KINDS = ["bind", "knot-resolver", "powerdns-recursor", "unbound"]
FAULTS = {"wrong-ds", "expired", "missing-rrsig", "broken-denial", "missing-dnskey"}
ZONES = 120
SETTINGS = [
    "tlds.count=12",
    "hosting.hosters=10",
    "signing.share=0.5",
    "signing.tlds.nsec3=0.7",
    "signing.zones.nsec3=0.5",
    "signing.zones.ed25519=0.2",
    "zones.wildcard=0.3",
    "zones.empty_non_terminal=0.5",
]
ANSWER_LIMIT_S = 20.0
NAMES_OF_ZONES = ("", "www.", "nx-below.www.", "any.")
OTHER_NAMES = ["nx-tld", "a.tld-servers.com", "1.0.18.198.in-addr.arpa"]


def words(settings: list[str]) -> list[str]:
    return ["--zones", str(ZONES), *(word for setting in settings for word in ("--set", setting))]


@pytest.mark.full
def test_bind_finds_every_signed_zone_fully_signed(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    world_server.make(tmp_path / "world.toml", *words(SETTINGS), "--dump", str(dump))
    verified = 0
    for line in (dump / "zones.list").read_text().splitlines():
        name, file = line.split("\t")
        if " RRSIG " not in (dump / file).read_text():
            continue
        assert dnssec_verify.complaint(dump / file, name or ".") == "", name
        verified += 1
    assert verified > ZONES / 3


def explained(world: world_server.World, *, of_each: int) -> dict[str, dict[str, Any]]:
    """Names of zones with each fault, of secure and of insecure ones, and of other zones; with what is said of them."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for event in world_server.explain(world, world.names):
        kinds[event["fault"]["fault"] if event["fault"] else event["security"]].append(event["name"])
    assert set(kinds) == {*FAULTS, "secure", "insecure"}
    zones = [zone for found in kinds.values() for zone in found[:of_each]]
    names = [f"{label}{zone}" for zone in zones for label in NAMES_OF_ZONES]
    return {event["name"]: event for event in world_server.explain(world, [*names, *OTHER_NAMES])}


def ask(host: Host, name: str, *, is_checked: bool) -> tuple[str, bool]:
    """Response code and AD."""
    query = dns.message.make_query(name, "A", want_dnssec=True)
    query.flags |= dns.flags.Flag(0) if is_checked else dns.flags.CD
    until = time.monotonic() + ANSWER_LIMIT_S
    while True:
        try:
            with lab_host.inside(host.namespace):
                answer, _ = dns.query.udp_with_fallback(query, RESOLVER, timeout=5)
        except dns.exception.Timeout:
            assert time.monotonic() < until, name
        else:
            return dns.rcode.to_text(answer.rcode()), bool(answer.flags & dns.flags.AD)


@pytest.mark.parametrize("kind", quick(KINDS, "unbound"))
def test_a_resolver_that_validates_finds_what_is_explained(tmp_path: Path, kind: str) -> None:
    specs = {
        "resolver": HostSpec(address=RESOLVER, cpus=CPUS[-1:]),
        "internet": HostSpec(address=INTERNET, cpus=CPUS[:1]),
    }
    faults = [f"faults.{fault}=0.08" for fault in sorted(FAULTS)]
    world = world_server.make(tmp_path / "world.toml", *words([*SETTINGS, *faults]))
    expected = explained(world, of_each=3)
    bogus = [name for name, event in expected.items() if event["security"] == "bogus"]
    placement = place(tmp_path / "resolver", kind, Resolving(level="validating", upstream="ipv4"))
    with Network(specs, [LinkSpec(ends=("internet", "resolver"))], directory=tmp_path) as network:
        internet, ours = network.hosts["internet"], network.hosts["resolver"]
        world_server.route(internet, ours)
        with world_server.serve(world, internet):
            for file in (HINTS_FILE, ANCHOR_FILE):
                (placement.directory / file).write_text((world.out / file).read_text())
            assert read_anchor(placement.directory / ANCHOR_FILE)
            with resolver(ours, placement):
                unchecked = {name: ask(ours, name, is_checked=False)[0] for name in bogus}
                found = {name: ask(ours, name, is_checked=True) for name in expected}
    wanted = {
        name: ("SERVFAIL", False) if name in bogus else (event["rcode"], event["security"] == "secure")
        for name, event in expected.items()
    }
    assert {name: (found[name], wanted[name], expected[name]) for name in wanted if found[name] != wanted[name]} == {}
    # PowerDNS Recursor answers a part of them with SERVFAIL even where the question has CD.
    if kind != "powerdns-recursor":
        assert {name: rcode for name, rcode in unchecked.items() if rcode != expected[name]["rcode"]} == {}
    assert {event["fault"]["fault"] for name in bogus if (event := expected[name])["fault"]} >= FAULTS
