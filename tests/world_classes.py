"""Names of a signed simulated Internet by class: with what fault, what validation finds, what the answer is."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import world_server

GOOD = "good"
FAULTS = ["wrong-ds", "expired", "missing-rrsig", "missing-dnskey"]
"""Of everything in a zone; broken denial concerns what does not exist, and wildcards."""
SHAPES = {"": "address", "www.": "alias", "nx-below.www.": "no such name", "any.": "wildcard"}
"""Of a zone: a label before its name -> what the answer is, if it has the response code in `RCODES`."""
RCODES = {"address": "NOERROR", "alias": "NOERROR", "no such name": "NXDOMAIN", "wildcard": "NOERROR"}
Class = tuple[str, str, str]
"""Fault, security and shape."""
CLASSES: set[Class] = {
    *((GOOD, security, shape) for security in ("secure", "insecure") for shape in RCODES),
    *((fault, "bogus", shape) for fault in FAULTS for shape in ("address", "no such name")),
    ("broken-denial", "secure", "address"),
    *(("broken-denial", "bogus", shape) for shape in ("no such name", "wildcard")),
}
SETTINGS = [
    "tlds.count=30",
    "signing.share=0.6",
    "signing.tlds.nsec3=0.7",
    "signing.zones.nsec3=0.5",
    "signing.zones.ed25519=0.2",
    "zones.wildcard=0.5",
    *(f"faults.{fault}=0.08" for fault in [*FAULTS, "broken-denial"]),
]
"""A world that has names of all classes."""
A_BATCH = 5000
"""Zones that are explained by one command."""


def class_of(explained: dict[str, Any], shape: str) -> Class | None:
    """None: the answer has another shape."""
    if explained["rcode"] != RCODES[shape] or (shape == "alias") != bool(explained["aliases"]):
        return None
    return (explained["fault"]["fault"] if explained["fault"] else GOOD, explained["security"], shape)


def chosen(world: world_server.World, count: int) -> dict[Class, list[dict[str, Any]]]:
    """``count`` names of each class, as they are explained."""
    found: dict[Class, list[dict[str, Any]]] = defaultdict(list)
    zones = world.names
    for first in range(0, len(zones), A_BATCH):
        batch = zones[first : first + A_BATCH]
        asked = {f"{label}{zone}": shape for zone in batch for label, shape in SHAPES.items()}
        for one in world_server.explain(world, list(asked)):
            kind = class_of(one, asked[one["name"]])
            if kind in CLASSES and len(found[kind]) < count:
                found[kind].append(one)
        if all(len(found[kind]) == count for kind in CLASSES):
            break
    assert {kind: len(names) for kind, names in found.items()} == dict.fromkeys(CLASSES, count)
    return found
