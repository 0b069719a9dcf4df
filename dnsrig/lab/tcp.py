"""TCP settings of a host: by its routes, which also work for servers that choose none of them themselves, and read
back.

A route's congestion control (ip-route(8), congctl) goes for every connection over it, made or accepted, unless a
program sets another on its socket. In a network namespace of its own a host may have any that the kernel has, also one
that `net.ipv4.tcp_allowed_congestion_control` keeps from ordinary programs.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from pyroute2.netlink.exceptions import NetlinkError

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.lab import congestion, mss
from dnsrig.lab.host import Host, inside

PORT = 9
"""discard (RFC 863): nothing listens there."""
NAME_BYTES = 16
"""TCP_CA_NAME_MAX of the kernel."""


def route_metrics(host: Host) -> dict[str, str | int]:
    """What the routes of ``host`` say to TCP, as pyroute2 takes it; empty where nothing was asked for."""
    asked = {"cc_algo": host.spec.congestion, "advmss": host.spec.advmss_bytes}
    return {name: value for name, value in asked.items() if value is not None}


def settle(host: Host, neighbours: Sequence[Host]) -> dict[str, Any]:
    """What ``host`` was asked to have and has, after its links were made; and the clamp on segments, which is set
    here."""
    found: dict[str, Any] = {}
    spec = host.spec
    if spec.congestion is not None:
        obtained = {there.name: obtained_congestion(host, there) for there in neighbours}
        if wrong := {name for name in obtained.values() if name != spec.congestion}:
            raise DnsrigError(
                f"connections of host {host.name} have the congestion control {wrong.pop()}, not {spec.congestion}",
                hint='kernel = "uml" runs the trial under a stock kernel',
            )
        found["congestion"] = {"requested": spec.congestion, "obtained": spec.congestion if obtained else None}
    if spec.advmss_bytes is not None:
        found["advmss_bytes"] = spec.advmss_bytes
    if spec.mss_clamp_bytes is not None:
        mss.clamp(host, spec.mss_clamp_bytes)
        found["mss_clamp_bytes"] = spec.mss_clamp_bytes
    return found


def obtained_congestion(here: Host, there: Host) -> str:
    """What a connection of ``here`` to ``there`` has once its SYN is sent: it need not be answered."""
    with inside(here.namespace), socket.socket(here.family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        sock.connect_ex((str(there.address), PORT))
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME_BYTES).rstrip(b"\0").decode()


def refused(host: Host, error: NetlinkError) -> UsageError:
    """What it means that the kernel refused the routes of ``host``: most likely a congestion control that it lacks."""
    return UsageError(
        f"the kernel refuses routes with {route_metrics(host)} on host {host.name}: {error}",
        hint=f'it has the congestion controls {", ".join(congestion.available())}; kernel = "uml" has more',
    )
