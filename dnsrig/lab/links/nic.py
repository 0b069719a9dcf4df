"""Links between machines: an interface of each, and the cable or switch between them, as they are.

A host has one interface for all hosts on other machines. Their hardware addresses are known, so that nobody asks.
"""

from __future__ import annotations

from dnsrig.lab import host_calls
from dnsrig.lab.host import Host
from dnsrig.lab.links import Place, Plain, ends
from dnsrig.rundir import LinkSpec

DESCRIPTION = "joins hosts of two machines by an interface of each, and emulates no path"
ORDER = 9
EMULATES = FAR_DELAYS = WRITES_ROWS = False
BETWEEN_MACHINES = True
HEADER_BYTES = 14
REMEDY = ""


def unavailable() -> None:
    """Every kernel has what it needs."""


def make(left: Host, right: Host, spec: LinkSpec, place: Place) -> Plain:
    """Join two hosts, each of which has taken an interface."""
    for here, there in ((left, right), (right, left)):
        if here.machine is None:
            ends.set_up(here, there, mtu_bytes=spec.mtu_bytes, neighbour=there.nic_address, interface=here.spec.nic)
        else:
            here.machine.call(host_calls.join, here.name, (there.name, there.spec), there.nic_address, spec.mtu_bytes)
    return Plain()
