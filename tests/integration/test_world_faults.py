"""What real resolvers answer for zones with each fault of a simulated Internet, and what `--explain` says of them."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import world_server
from asking import NO_ANSWER, Outcome, ask
from placement_data import changed
from resolver_host import RESOLVER, place, resolver

from dnsrig.lab import host as lab_host
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec, Resolving, Scalar
from dnsrig.servers.resolving import HINTS_FILE

CPUS = sorted(os.sched_getaffinity(0))
INTERNET = "198.18.0.3"
KINDS = ["bind", "knot-resolver", "powerdns-recursor", "unbound"]
QUICK = ["powerdns-recursor"]
FAULTS = ["lame", "refused", "servfail", "silent", "slow", "truncated", "loop", "oversized"]
GOOD = "good"
RESOLVING = {kind: Resolving(query_timeout_ms=5000) for kind in ("bind", "powerdns-recursor")}
"""The others give up after 10 s. Knot Resolver has these compiled in, and Unbound, which gives a server that it does
not know 376 ms, needs more than 5 s for some zones whose servers are all slow."""
SETTINGS: dict[str, dict[str, Scalar]] = {"unbound": {"outgoing-num-tcp": 1000, "wait-limit": 0}}
"""By default it has 10 connections to servers, and answers no client for which 1,000 questions wait: of silent zones
they wait long (docs/results/resolvers.md)."""
DIFFERENT = {("unbound", "silent all"): NO_ANSWER}
"""What a resolver answers instead; docs/results/resolvers.md says why."""
SILENCE_S = 12.0
"""Where no answer is expected, so long is it waited for: longer than any resolver goes on."""
CLASSES = {GOOD, *(f"{fault} {servers}" for fault in FAULTS for servers in ("all", "first"))} - {"loop first"}


def class_of(explained: dict[str, Any]) -> str:
    fault = explained["fault"]
    return f"{fault['fault']} {fault['servers']}" if fault else GOOD


def chosen(world: world_server.World, count: int) -> dict[str, list[dict[str, Any]]]:
    """``count`` names of each class, as they are explained."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in world_server.explain(world, world.names):
        if len(found[class_of(one)]) < count:
            found[class_of(one)].append(one)
    assert {kind: len(names) for kind, names in found.items()} == dict.fromkeys(CLASSES, count)
    return found


def expected(kind: str, explained: dict[str, Any]) -> Outcome:
    rcode = DIFFERENT.get((kind, class_of(explained)), explained["rcode"])
    return Outcome(rcode, explained["addresses"] if rcode == "NOERROR" else 0)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        *(pytest.param(kind, 2, id=f"{kind}-few", marks=[] if kind in QUICK else pytest.mark.full) for kind in KINDS),
        *(pytest.param(kind, 150, id=f"{kind}-many", marks=pytest.mark.full) for kind in KINDS),
    ],
)
def test_a_resolver_answers_as_explained(tmp_path: Path, kind: str, count: int) -> None:
    """Takes half a minute with 150 names of each class: the resolvers wait for silent servers."""
    shares = [word for fault in FAULTS for word in ("--set", f"faults.{fault}=0.1")]
    zones = ["--zones", str(400 if count < 10 else 30 * count), "--set", "tlds.count=30"]
    world = world_server.make(tmp_path / "world.toml", *zones, "--set", "faults.first_server=0.5", *shares)
    names = [one for explained in chosen(world, count).values() for one in explained]
    wanted = {one["name"]: expected(kind, one) for one in names}
    classes = {one["name"]: class_of(one) for one in names}
    specs = {
        "resolver": HostSpec(address=RESOLVER, cpus=CPUS[-1:]),
        "internet": HostSpec(address=INTERNET, cpus=CPUS[:1]),
    }
    placement = changed(
        place(tmp_path / "resolver", kind, RESOLVING.get(kind, Resolving())), settings=SETTINGS.get(kind, {})
    )
    silent_s = {name: SILENCE_S for name, outcome in wanted.items() if outcome.rcode == NO_ANSWER}
    with Network(specs, [LinkSpec(ends=("internet", "resolver"))], directory=tmp_path) as network:
        internet, ours = network.hosts["internet"], network.hosts["resolver"]
        world_server.route(internet, ours)
        with world_server.serve(world, internet):
            (placement.directory / HINTS_FILE).write_text(world.hints)
            with resolver(ours, placement), lab_host.inside(ours.namespace):
                found = ask(wanted, with_do=False, limits_s=silent_s)
    assert {classes[name]: (name, found[name], wanted[name]) for name in wanted if found[name] != wanted[name]} == {}
