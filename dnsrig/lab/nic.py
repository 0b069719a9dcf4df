"""A physical interface of the machine, as a host's own: moved into its namespace, and put back afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyroute2 import IPRoute, NetNS

from dnsrig.errors import UsageError

IFF_UP, IFF_NOARP, IFF_MULTICAST = 1, 1 << 7, 1 << 12
LINK_LOCAL = 253
"""RT_SCOPE_LINK: an address that the kernel gives by itself."""


def check(name: str) -> None:
    """Refuse an interface that is not there, or that the machine itself uses."""
    with IPRoute() as route:
        found = route.link_lookup(ifname=name)
        if not found:
            raise UsageError(f"there is no interface {name}", hint="`ip -br link` on that machine lists them")
        index = int(found[0])
        used = [a.get_attr("IFA_ADDRESS") for a in route.get_addr(index=index) if a["scope"] != LINK_LOCAL]
        master = route.get_links(index)[0].get_attr("IFLA_MASTER")
    if used or master:
        why = f"it has the address {used[0]}" if used else "it belongs to a bridge or a bond"
        raise UsageError(
            f"the interface {name} is in use: {why}",
            hint=f"a host needs the whole interface: choose one without an address, or run `ip addr flush dev {name}`",
        )


def before(name: str) -> dict[str, Any]:
    """What is to be as it was once it is put back."""
    with IPRoute() as route:
        link = route.get_links(route.link_lookup(ifname=name)[0])[0]
    return {"name": name, "flags": link["flags"], "mtu_bytes": link.get_attr("IFLA_MTU")}


def move(name: str, namespace: str) -> str:
    """Into a namespace; returns its hardware address."""
    with IPRoute() as route, Path("/run/netns", namespace).open("rb") as there:
        link = route.get_links(index := route.link_lookup(ifname=name)[0])[0]
        route.link("set", index=index, net_ns_fd=there.fileno())
    return str(link.get_attr("IFLA_ADDRESS"))


def share(name: str, namespace: str) -> str:
    """An interface of the same name on it, with a hardware address of its own, which is returned. It goes with the
    namespace; the interface itself stays where it is, and is up from then on."""
    with IPRoute() as route, Path("/run/netns", namespace).open("rb") as there:
        index = route.link_lookup(ifname=name)[0]
        route.link("set", index=index, state="up")
        route.link("add", kind="macvlan", ifname=name, link=index, macvlan_mode="bridge", net_ns_fd=there.fileno())
    with NetNS(namespace) as route:
        return str(route.get_links(route.link_lookup(ifname=name)[0])[0].get_attr("IFLA_ADDRESS"))


def give_back(was: dict[str, Any], namespace: str) -> None:
    """Out of the namespace, as it was. One that is not there any more is back already."""
    name = str(was["name"])
    with Path("/proc/self/ns/net").open("rb") as here, NetNS(namespace) as route:
        if not (found := route.link_lookup(ifname=name)):
            return
        route.link("set", index=found[0], state="down")
        changed = IFF_NOARP | IFF_MULTICAST
        route.link("set", index=found[0], flags=was["flags"] & changed, change=changed, mtu=was["mtu_bytes"])
        route.link("set", index=found[0], net_ns_fd=here.fileno())
    if was["flags"] & IFF_UP:
        with IPRoute() as route:
            route.link("set", index=route.link_lookup(ifname=name)[0], state="up")
