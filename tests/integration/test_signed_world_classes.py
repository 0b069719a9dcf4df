"""What real resolvers answer for each class of signed and unsigned names, with and without faults of signatures, and
how `--explain` explains it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest
import world_classes
import world_server
from asking import Outcome, ask
from resolver_host import RESOLVER, place, resolver

from dnsrig.lab import host as lab_host
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec, Resolving
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE

CPUS = sorted(os.sched_getaffinity(0))
INTERNET = "198.18.0.3"
KINDS = ["bind", "knot-resolver", "powerdns-recursor", "unbound"]
QUICK = ["unbound"]
LEVELS: list[Literal["do-unvalidated", "validating"]] = ["do-unvalidated", "validating"]


def expected(explained: dict[str, Any], *, validates: bool) -> Outcome:
    if validates and explained["security"] == "bogus":
        return Outcome("SERVFAIL", 0)
    return Outcome(explained["rcode"], explained["addresses"], validates and explained["security"] == "secure")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        *(pytest.param(kind, 2, id=f"{kind}-few", marks=[] if kind in QUICK else pytest.mark.full) for kind in KINDS),
        *(pytest.param(kind, 150, id=f"{kind}-many", marks=pytest.mark.full) for kind in KINDS),
    ],
)
def test_a_resolver_answers_for_signed_zones_as_explained(
    tmp_path: Path, kind: str, count: int, level: Literal["do-unvalidated", "validating"]
) -> None:
    """Takes half a minute beside other tests with 150 names of each class, each of which the resolver validates."""
    zones = ["--zones", str(max(600, 60 * count))]
    words = [word for setting in world_classes.SETTINGS for word in ("--set", setting)]
    world = world_server.make(tmp_path / "world.toml", *zones, *words)
    classes = {
        one["name"]: (group, one) for group, found in world_classes.chosen(world, count).items() for one in found
    }
    wanted = {name: expected(one, validates=level == "validating") for name, (_, one) in classes.items()}
    specs = {
        "resolver": HostSpec(address=RESOLVER, cpus=CPUS[-1:]),
        "internet": HostSpec(address=INTERNET, cpus=CPUS[:1]),
    }
    placement = place(tmp_path / "resolver", kind, Resolving(level=level))
    with Network(specs, [LinkSpec(ends=("internet", "resolver"))], directory=tmp_path) as network:
        internet, ours = network.hosts["internet"], network.hosts["resolver"]
        world_server.route(internet, ours)
        with world_server.serve(world, internet):
            for file in (HINTS_FILE, ANCHOR_FILE) if level == "validating" else (HINTS_FILE,):
                (placement.directory / file).write_text((world.out / file).read_text())
            with resolver(ours, placement), lab_host.inside(ours.namespace):
                found = ask(wanted, with_do=True)
    different = {name: (*classes[name][0], found[name], wanted[name]) for name in wanted if found[name] != wanted[name]}
    assert different == {}
