"""The end of a link on a host: addresses, neighbours, routes. Point to point, so that neither ARP nor the discovery of
neighbours (RFC 4861) takes part.

The host's IPv6 address is on its loopback interface and its IPv4 address on each end, as the kernel likes it: both are
the host's whichever link a packet came by.
"""

from __future__ import annotations

from ipaddress import ip_network

from pyroute2 import NetNS
from pyroute2.netlink.exceptions import NetlinkError

from dnsrig.lab import tcp
from dnsrig.lab.host import Host

LINK_SCOPE = 253
"""RT_SCOPE_LINK (rtnetlink(7)): the other end is reached directly."""
IFF_NOARP, IFF_MULTICAST = 1 << 7, 1 << 12
"""netdevice(7). Without the first and with the second the kernel tells the link of the groups that it joins (RFC 3810)
for the discovery of neighbours, and of routers."""
IPV6_LEAST_MTU_BYTES = 1280
"""On a link with less the kernel has no IPv6 (RFC 8200, 5)."""


def set_up(
    here: Host, there: Host, *, mtu_bytes: int, neighbour: str | None = None, interface: str | None = None
) -> None:
    """The interface of ``here`` towards ``there``, which exists: up, with addresses and routes to every address of
    ``there``. It is called as ``there`` unless ``interface`` names it.

    ``neighbour``: the hardware address behind which the other end is; None on an interface that has none. The routes
    carry the TCP settings of ``here``.
    """
    metrics = tcp.route_metrics(here)
    with NetNS(here.namespace) as route:
        index = bring_up(route, interface or there.name, mtu_bytes)
        for version in versions(mtu_bytes):
            if version not in here.by_version or version not in there.by_version:
                continue
            own, other = here.by_version[version], there.by_version[version]
            scope = {"scope": LINK_SCOPE} if version == 4 else {}
            if version == 4:
                route.addr("add", index=index, local=str(own), address=str(other), prefixlen=32)
            if neighbour is not None:
                route.neigh("replace", dst=str(other), lladdr=neighbour, ifindex=index, state="permanent")
            # In place of the route that came with the address, where one did.
            to = {"dst": str(ip_network(other)), "oif": index, "prefsrc": str(own), "proto": "kernel", **scope}
            try:
                route.route("replace", metrics=metrics, **to)
            except NetlinkError as error:
                raise tcp.refused(here, error) from error
        for prefix in there.routed:
            version = ip_network(prefix).version
            if version in versions(mtu_bytes):
                gateway = there.by_version[version]
                route.route("add", dst=prefix, gateway=str(gateway), oif=index, metrics=metrics)


def bring_up(route: NetNS, interface: str, mtu_bytes: int) -> int:
    """Set an interface up, on which nothing is sent that nobody asked for; returns its index."""
    index = int(route.link_lookup(ifname=interface)[0])
    route.link("set", index=index, mtu=mtu_bytes, flags=IFF_NOARP, change=IFF_NOARP | IFF_MULTICAST)
    route.link("set", index=index, state="up")
    return index


def versions(mtu_bytes: int) -> tuple[int, ...]:
    """List the versions of IP that pass an interface with this MTU."""
    return (4, 6) if mtu_bytes >= IPV6_LEAST_MTU_BYTES else (4,)


def hardware_address(namespace: str, interface: str) -> str:
    with NetNS(namespace) as route:
        return str(route.link("get", index=route.link_lookup(ifname=interface)[0])[0].get("address"))
