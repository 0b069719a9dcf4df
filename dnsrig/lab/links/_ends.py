"""The end of a link on a host: address, neighbour, routes. Point to point, so ARP takes no part."""

from __future__ import annotations

from pyroute2 import NetNS
from pyroute2.netlink.exceptions import NetlinkError

from dnsrig.lab import tcp
from dnsrig.lab.host import Host

LINK_SCOPE = 253
"""RT_SCOPE_LINK (rtnetlink(7)): the other end is reached directly."""


def set_up(here: Host, there: Host, *, mtu_bytes: int, neighbour: str | None = None) -> None:
    """The interface of ``here`` towards ``there``, which exists: up, with addresses and routes to every address of
    ``there``.

    ``neighbour``: the hardware address behind which the other end is; None on an interface that has none. The routes
    carry the TCP settings of ``here``.
    """
    metrics = tcp.route_metrics(here)
    with NetNS(here.namespace) as route:
        index = route.link_lookup(ifname=there.name)[0]
        route.link("set", index=index, mtu=mtu_bytes)
        route.link("set", index=index, state="up")
        route.addr("add", index=index, local=str(here.address), address=str(there.address), prefixlen=32)
        if neighbour is not None:
            route.neigh("replace", dst=str(there.address), lladdr=neighbour, ifindex=index, state="permanent")
        if metrics:
            # In place of the route that came with the address.
            own = {"scope": LINK_SCOPE, "prefsrc": str(here.address), "proto": "kernel"}
            try:
                route.route("replace", dst=f"{there.address}/32", oif=index, metrics=metrics, **own)
            except NetlinkError as error:
                raise tcp.refused(here, error) from error
        for prefix in there.routed:
            route.route("add", dst=prefix, gateway=str(there.address), oif=index, metrics=metrics)


def hardware_address(namespace: str, interface: str) -> str:
    with NetNS(namespace) as route:
        return str(route.link("get", index=route.link_lookup(ifname=interface)[0])[0].get("address"))
