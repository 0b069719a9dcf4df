"""Plain links: veth pairs (veth(4)), as fast as the machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pyroute2 import IPRoute

from dnsrig.lab.host import Host
from dnsrig.lab.links import Place, Plain, ends
from dnsrig.rundir import LinkSpec

DESCRIPTION = "joins two hosts by a veth pair, and emulates no path"
ORDER = 0
EMULATES = FAR_DELAYS = BETWEEN_MACHINES = WRITES_ROWS = False
HEADER_BYTES = 14
REMEDY = ""


def unavailable() -> None:
    """Without veth nothing works."""


def make(left: Host, right: Host, spec: LinkSpec, place: Place) -> Plain:
    """Join two hosts by a veth pair."""
    with descriptor(left.namespace_path) as left_fd, descriptor(right.namespace_path) as right_fd:
        pair(right.name, left_fd, left.name, right_fd)
    hardware = {
        here.name: ends.hardware_address(here.namespace, there.name) for here, there in ((left, right), (right, left))
    }
    for here, there in ((left, right), (right, left)):
        ends.set_up(here, there, mtu_bytes=spec.mtu_bytes, neighbour=hardware[there.name])
    return Plain()


def pair(one: str, one_fd: int, other: str, other_fd: int) -> None:
    """Interface ``one`` in the network namespace open as ``one_fd``, joined to ``other`` in ``other_fd``."""
    with IPRoute() as route:
        route.link("add", kind="veth", ifname=one, net_ns_fd=one_fd, peer={"ifname": other, "net_ns_fd": other_fd})


@contextlib.contextmanager
def descriptor(path: Path) -> Iterator[int]:
    """A network namespace, open."""
    with path.open("rb") as file:
        yield file.fileno()
