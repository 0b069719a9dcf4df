"""A server's place in a trial that never was, for tests of drivers."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from dnsrig.rundir import HostSpec, ServerSource, TransferSpec
from dnsrig.servers import keys
from dnsrig.servers.placement import Placement, Route, Zone

KEYS = keys.make()
ZONES = [
    Zone("z000000.example", "zones/00/z000000.example.zone"),
    Zone("z000001.example", "zones/00/z000001.example.zone"),
]


def placed(folder: Path, kind: str, role: str, **changes: object) -> Placement:
    """Two zones, which one primary transfers to one secondary; a root file system, with nothing in it yet, and folders
    below ``folder``."""
    root, directory, state = folder / "root", folder / "server", folder / "state"
    for path in (root, directory, state):
        path.mkdir(parents=True)
    made = Placement(
        host=HostSpec(
            address="198.18.0.2",
            cpus=[1],
            server=ServerSource(kind=kind, source="forky", version="99.9.9", key="root"),
            role=role,  # type: ignore[arg-type]
        ),
        root=root,
        zones=ZONES,
        routes=[] if role == "primary" else [Route(1, IPv4Address("198.18.0.1"), None)],
        secondaries=[IPv4Address("198.18.0.2")] if role == "primary" else [],
        transfer=TransferSpec(),
        keys=KEYS,
        catalog=None,
        directory=directory,
        seen_directory="/mnt/server",
        state=state,
        seen_state="/mnt/state",
        dataset=folder / "dataset",
        seen_dataset="/mnt/dataset",
        other_address=IPv6Address("2001:2::2"),
    )
    return changed(made, **changes)


def changed(placement: Placement, **changes: object) -> Placement:
    """With other fields of its own, or of its host."""
    own = Placement.__dataclass_fields__
    of_host = {name: changes.pop(name) for name in [*changes] if name not in own}
    return replace(placement, host=placement.host.model_copy(update=of_host), **changes)  # type: ignore[arg-type]
