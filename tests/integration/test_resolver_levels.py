"""What each resolver does at each level of DNSSEC, as its clients and its authorities see it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dns.flags
import dns.rcode
import pytest
import signed_tree
from resolver_host import RESOLVER, ask, place, resolver, wait_for
from suites import quick

from dnsrig.checks.resolvers import shown_level
from dnsrig.confinement import MACHINE, NET_BIND_SERVICE, BindMount, Confinement
from dnsrig.lab import host, process
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.metrics import all_metrics
from dnsrig.procedures.parts import resolver_level
from dnsrig.procedures.parts.resolver_statistics import ask as ask_counters
from dnsrig.rundir import Check, HostSpec, LinkSpec, Resolving
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers, driver, sources
from dnsrig.servers.placement import DNS_PORT, Placement
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE, Counters

CPUS = sorted(os.sched_getaffinity(0))
START_LIMIT_S = 30.0
INTERNET = "198.18.0.3"
QUERY = re.compile(r" 198\.18\.0\.2#\d+ .*query: \S+ IN \S+ (?P<flags>\S+) ")
"""As the resolver asked it: E says that it has EDNS, D that it has DO."""
LEVELS = [
    (kind, level)
    for kind, server in all_drivers().items()
    if server.as_resolver is not None
    for level in server.as_resolver.levels
]


@contextmanager
def internet(host: Host, folder: Path) -> Iterator[Path]:
    """The signed tree; what is yielded is its log."""
    folder.mkdir()
    signed_tree.make(folder)
    source = sources.find("bind@forky") or sources.install("bind@forky")
    log = folder / "log"
    with log.open("w") as output:
        command = ["named", "-f", "-n", "1", "-c", "/mnt/tree/named.conf"]
        binds = [BindMount(folder, "/mnt/tree")]
        confined = Confinement(sources.root(source) or MACHINE, binds, [NET_BIND_SERVICE])
        started = process.start("bind", host, command, confined=confined, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_for(host, signed_tree.ADDRESSES["root"], ".", "SOA", log)
            yield log
        finally:
            started.stop()


def counters(host: Host, placement: Placement) -> Counters:
    """What it counts, as soon as it has counted three queries and one from the cache; PowerDNS' threads tell of theirs
    now and then."""
    able = driver(placement.source.kind).as_resolver
    assert able is not None
    until = time.monotonic() + START_LIMIT_S
    while True:
        ask(host, RESOLVER, signed_tree.GOOD)
        found = ask_counters(able.statistics, placement, host.namespace)
        if (found["client_queries"] >= 4 and found["cache_hits"] >= 1) or time.monotonic() > until:
            return found
        time.sleep(0.1)


@pytest.mark.parametrize(("kind", "level"), quick(LEVELS, *(both for both in LEVELS if both[1] == "validating")))
def test_a_level_is_what_it_says(tmp_path: Path, kind: str, level: str) -> None:
    specs = {
        "resolver": HostSpec(address=RESOLVER, cpus=CPUS[-1:]),
        "internet": HostSpec(address=INTERNET, cpus=CPUS[:1], source_addresses=[*signed_tree.ADDRESSES.values()]),
    }
    placement = place(tmp_path / "resolver", kind, Resolving(level=level, upstream="ipv4"))  # type: ignore[arg-type]
    with Network(specs, [LinkSpec(ends=("internet", "resolver"))], directory=tmp_path) as network:
        ours = network.hosts["resolver"]
        with internet(network.hosts["internet"], tmp_path / "tree") as log:
            for file in (HINTS_FILE, ANCHOR_FILE):
                (placement.directory / file).write_text((log.parent / file).read_text())
            with resolver(ours, placement):
                good, broken = (ask(ours, RESOLVER, name) for name in (signed_tree.GOOD, signed_tree.BROKEN))
                missing = ask(ours, RESOLVER, signed_tree.MISSING)
                counted = counters(ours, placement)
            queries = [match for line in log.read_text().splitlines() if (match := QUERY.search(line))]
    validates = level == "validating"
    told = (placement.directory / "server.log").read_text()
    assert good.rcode() == dns.rcode.NOERROR and len(good.answer) >= 1, told
    assert missing.rcode() == dns.rcode.NXDOMAIN, told
    assert bool(good.flags & dns.flags.AD) == validates and bool(missing.flags & dns.flags.AD) == validates, told
    assert broken.rcode() == (dns.rcode.SERVFAIL if validates else dns.rcode.NOERROR), told
    assert counted["upstream_queries"] >= 3 and counted["cache_misses"] >= 3 and counted["cache_hits"] >= 1
    assert validates == (counted.get("validations", validates) > 0)
    assert len(queries) >= 3
    assert {"D" in match["flags"] for match in queries if "E" in match["flags"]} == {level != "no-do"}


@pytest.mark.parametrize("kind", quick(["bind", "unbound"], "unbound"))
def test_one_with_a_wrong_trust_anchor_does_not_show_that_it_validates(tmp_path: Path, kind: str) -> None:
    specs = {
        "resolver": HostSpec(address=RESOLVER, cpus=CPUS[-1:]),
        "internet": HostSpec(address=INTERNET, cpus=CPUS[:1], source_addresses=[*signed_tree.ADDRESSES.values()]),
    }
    placement = place(tmp_path / "resolver", kind, Resolving(level="validating", upstream="ipv4"))
    with Network(specs, [LinkSpec(ends=("internet", "resolver"))], directory=tmp_path) as network:
        ours = network.hosts["resolver"]
        with internet(network.hosts["internet"], tmp_path / "tree") as log:
            (placement.directory / HINTS_FILE).write_text((log.parent / HINTS_FILE).read_text())
            (placement.directory / ANCHOR_FILE).write_text(signed_tree.anchor_of_another_key())
            with resolver(ours, placement):
                good, broken = (ask(ours, RESOLVER, name) for name in (signed_tree.GOOD, signed_tree.BROKEN))
    answers = {
        name: {"rcode": answer.rcode(), "ad": bool(answer.flags & dns.flags.AD), "records": len(answer.answer)}
        for name, answer in (("good", good), ("broken", broken))
    }
    assert shown_level(answers, {"queries": 3, "do": 3}) == "no data for the good name"


def test_queries_are_counted_behind_any_number_of_other_packets(tmp_path: Path) -> None:
    """A server that starts slowly is probed a thousand times a second meanwhile."""
    specs = {
        "resolver": HostSpec(address=RESOLVER, cpus=CPUS[-1:]),
        "internet": HostSpec(address=INTERNET, cpus=CPUS[:1]),
    }
    with Network(specs, [LinkSpec(ends=("internet", "resolver"))], directory=tmp_path) as network:
        context: Any = SimpleNamespace(host=network.hosts.__getitem__)
        with (
            host.inside(network.hosts["resolver"].namespace),
            socket.socket(type=socket.SOCK_DGRAM) as sender,
            resolver_level._upstream(context, "resolver") as found,
        ):
            for _ in range(20_000):
                sender.sendto(b"other", (INTERNET, 5353))
            sender.sendto(resolver_level.query_of(resolver_level.Question("a."), 1), (INTERNET, DNS_PORT))
        assert found == {"queries": 1, "edns": 1, "do": 1}


SHORT = ("names=cached", "transport=udp", "options.duration_s=1", "options.rate_qps=100")


def level_of(trial: Trial) -> Check:
    return next(check for check in trial.record.checks if check.name == "resolver-level")


@pytest.mark.parametrize("kind", dict(LEVELS))
def test_a_trial_shows_the_level_on_a_twin_and_on_the_server(measure: Callable[..., Trial], kind: str) -> None:
    server = f"hosts.resolver.server={kind}@forky"
    trial = measure(*SHORT, server, "hosts.resolver.resolving.level=do-unvalidated", experiment="resolver-cache")
    assert level_of(trial).verdict == "passed", level_of(trial)
    told = trial.record.instruments["level"]
    assert told["twin"]["good"] == told["server"]["good"] == {"rcode": 0, "ad": False, "records": 1}
    assert (trial.directory / "servers/resolver-twin/server.log").exists()
    # The answers were in the cache, but for those of its start.
    hits = all_metrics()["cache_hits_percent"].of(trial)
    assert hits is not None and hits > 50


@pytest.mark.full
def test_a_level_that_another_setting_takes_away_makes_the_trial_invalid(measure: Callable[..., Trial]) -> None:
    trial = measure(*SHORT, 'hosts.resolver.settings={ "disable-edns-do" = true }', experiment="resolver-cache")
    assert trial.record.outcome == "invalid"
    assert "DNSSEC level: no-do, required: do-unvalidated" in level_of(trial).reason
