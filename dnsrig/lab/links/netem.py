"""Links that the kernel emulates (netem, tc-netem(8)), in a network namespace between the two hosts.

The packets of a host pass a router that has nothing else to do: a veth pair on either side, and netem where packets
leave it. Shaped on its own interface a sender would learn of a full queue at once, from its own kernel, and keep less
in flight (TCP small queues); and what it hands over are segments of up to 64 kB, which netem would lose and delay as
one packet. So the hosts' interfaces do no segmentation offload, and the queue is elsewhere. Neighbours are static, so
that nothing is asked before the first packet.

A path MTU is a locked attribute of the router's route. The router reports it by ICMP or ICMPv6, unless its own packets
are blocked. It fragments packets without DF, as routers do; the engine's `link` drops them. The kernel draws its random
numbers itself: the seed of the link does not reach it.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from pyroute2 import NetNS, netns
from pyroute2.netlink import NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST
from pyroute2.netlink.rtnl import RTM_NEWQDISC, TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import sched_netem, tcmsg

from dnsrig.errors import DnsrigError
from dnsrig.lab import addresses, ledger
from dnsrig.lab.host import BASE_SYSCTLS, LOOPBACK, Host, add_address, create, inside, set_sysctl
from dnsrig.lab.ledger import Ledger
from dnsrig.lab.links import Place, ends, veth
from dnsrig.rundir import LinkSpec, PathSpec

RATE_WITHOUT_MBIT = 30_000.0
"""netem keeps the order of delayed packets only with a rate: where none was asked for, one that is no limit (it has 32
bits of bytes/s)."""
UNLIMITED_PACKETS = 1_000_000
ETHERNET_HEADER_BYTES = 14
"""netem would count it; the rate of a path counts its IP packets, for all kinds of links."""
NETEM_ROOT, NETEM_DELAY = 0x10000, 0x20000
"""Handles 1: and 2:."""
MTU_LOCK = 1 << 2
"""RTAX_LOCK: not to be changed by what is learnt of the path; such an MTU also holds for forwarded packets."""
RULE_PREFERENCE = 1
BLACKHOLE = 6
"""FR_ACT_BLACKHOLE."""
ROUTER_SYSCTLS = {
    **BASE_SYSCTLS,
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
}

NETLINK_HEADER_BYTES = 16
ANSWER_LIMIT_S = 5.0
NEW = NLM_F_CREATE | NLM_F_EXCL
SIOCETHTOOL = 0x8946
ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO = 0x1F, 0x24, 0x2C


DESCRIPTION = "the kernel emulates paths"
ORDER = 1
EMULATES = True
FAR_DELAYS = BETWEEN_MACHINES = WRITES_ROWS = False
HEADER_BYTES = ETHERNET_HEADER_BYTES
REMEDY = "load it with `modprobe sch_netem`"
LACKING = "this kernel has no netem, or this user may not query it"


@cache
def unavailable() -> str | None:
    """Why netem cannot be used here, if so: it is tried in a network namespace of its own."""
    try:
        made = Ledger.open_new()
    except (DnsrigError, OSError):
        return LACKING
    name = f"{ledger.PREFIX}{made.tag}-netem"
    made.add(network_namespace=name)
    try:
        create(name)
        set_discipline(name, "lo", NETEM_ROOT, None, {"delay": 1000, "rate": 1_000_000, "limit": 10})
        return None
    except OSError:
        return LACKING
    finally:
        if netns_exists(name):
            netns.remove(name)
        made.close()


def netns_exists(name: str) -> bool:
    return name in netns.listnetns()


@dataclass(frozen=True)
class Exit:
    """Where packets leave the router in one direction."""

    namespace: str
    interface: str
    path: PathSpec


@dataclass
class NetemLink:
    """The router between two hosts."""

    exits: dict[str, Exit]
    """Direction -> where its packets leave the router."""
    over: threading.Event = field(default_factory=threading.Event)
    told: dict[str, Any] | None = None
    is_as_asked: bool = True
    """False once a change of the loss failed."""
    began_s: float = field(default_factory=lambda: time.clock_gettime(time.CLOCK_REALTIME))

    def vary(self) -> None:
        """Change the loss at its times, until the link ends."""
        for one in self.exits.values():
            if any(after_s for after_s, _ in one.path.loss_over_time):
                threading.Thread(target=self._vary, args=(one,), daemon=True).start()

    def _vary(self, one: Exit) -> None:
        start_s = time.monotonic()
        for after_s, _ in one.path.loss_over_time:
            if self.over.wait(start_s + after_s - time.monotonic()):
                return
            (handle, parent, options), *_ = disciplines(one.path, after_s)
            try:
                set_discipline(one.namespace, one.interface, handle, parent, options, flags=0)
            except OSError:
                self.is_as_asked = False
                return

    def check(self) -> None:
        """The kernel makes it."""

    def finish(self) -> dict[str, Any] | None:
        """The kernel's count of what left the router: packets, bytes of IP, and drops of any kind. None if its loss did
        not change when it was to, as of a link that ended too early."""
        if not self.over.is_set():
            self.over.set()
            self.told = {name: _counted(one) for name, one in self.exits.items()}
        return self.told if self.is_as_asked else None


def make(left: Host, right: Host, spec: LinkSpec, place: Place) -> NetemLink:
    """Join two hosts by a router that delays and loses what passes."""
    if any(way is not None and way.far is not None for way in (spec.forward, spec.reverse)):
        raise DnsrigError("netem delays all packets of a link alike; it cannot delay each far end separately")
    router = f"{ledger.PREFIX}{place.ledger.tag}-{left.name}-{right.name}"
    place.ledger.add(network_namespace=router)
    create(router)
    with inside(router):
        for name, value in ROUTER_SYSCTLS.items():
            set_sysctl(name, value)
    with NetNS(router) as route:
        route.link("set", index=LOOPBACK, state="up")
        for part in (addresses.ROUTERS.ipv4, addresses.ROUTERS.ipv6):
            add_address(route, str(part[place.number + 1]))
    forward, reverse = spec.forward or PathSpec(), spec.reverse or PathSpec()
    for host, other, way in ((left, right, reverse), (right, left, forward)):
        _connect(host, other, router, spec, way)
    with inside(router):
        # Not before: an interface that forwards from the beginning tells its link that a router joins (RFC 3810).
        set_sysctl("net.ipv6.conf.all.forwarding", "1")
    _silence(router, forward, reverse)
    exits = {"forward": Exit(router, right.name, forward), "reverse": Exit(router, left.name, reverse)}
    for one in exits.values():
        _shape(one)
    link = NetemLink(exits)
    link.vary()
    return link


def _connect(host: Host, other: Host, router: str, spec: LinkSpec, way: PathSpec) -> None:
    """``host`` and the router; ``way`` is the direction towards the host."""
    with veth.descriptor(host.namespace_path) as host_fd, veth.descriptor(Path("/run/netns", router)) as router_fd:
        veth.pair(other.name, host_fd, host.name, router_fd)
    for namespace, interface in ((host.namespace, other.name), (router, host.name)):
        _no_offload(namespace, interface)
    ends.set_up(host, other, mtu_bytes=spec.mtu_bytes, neighbour=ends.hardware_address(router, host.name))
    hardware = ends.hardware_address(host.namespace, other.name)
    metrics = {} if way.mtu_bytes is None else {"mtu": way.mtu_bytes, "lock": MTU_LOCK}
    with NetNS(router) as route:
        index = ends.bring_up(route, host.name, spec.mtu_bytes)
        for version in ends.versions(spec.mtu_bytes):
            if (own := host.by_version.get(version)) is not None:
                route.neigh("replace", dst=str(own), lladdr=hardware, ifindex=index, state="permanent")
                scope = {"scope": ends.LINK_SCOPE} if version == 4 else {}
                route.route("add", dst=str(ip_network(own)), oif=index, metrics=metrics, **scope)
        for prefix in host.routed:
            gateway = host.by_version[ip_network(prefix).version]
            route.route("add", dst=prefix, gateway=str(gateway), oif=index, metrics=metrics)


def _silence(router: str, forward: PathSpec, reverse: PathSpec) -> None:
    """Send what the router itself says about a direction without ICMP nowhere. It says nothing else."""
    quiet = [way for way in (forward, reverse) if way.mtu_bytes is not None and not way.icmp]
    telling = [way for way in (forward, reverse) if way.mtu_bytes is not None and way.icmp]
    if quiet and telling:
        raise DnsrigError(
            "netem cannot block ICMP in one direction and send it in the other",
            hint='set the same for both directions, or set link = "tun"',
        )
    if quiet:
        with NetNS(router) as route:
            for family in (socket.AF_INET, socket.AF_INET6):
                route.rule("add", family=family, iifname="lo", priority=RULE_PREFERENCE, action=BLACKHOLE)


def disciplines(path: PathSpec, after_s: float = 0.0) -> list[tuple[int, int | None, dict[str, Any]]]:
    """The queueing disciplines of a direction: handle, parent (None: root) and options as pyroute2's netem takes them.

    In order, one does everything; its rate is what keeps order. Free with a rate takes two: the first has the rate, the
    second the delays.
    """
    loss = {"loss": path.loss_percent_at(after_s)}
    delay = {"delay": round(path.delay_ms * 1e3), "jitter": round(path.jitter_ms * 1e3)}
    rate = {
        # More does not fit into the message; the self-test tells that it is less than was asked for.
        "rate": round(min(path.rate_mbit or RATE_WITHOUT_MBIT, RATE_WITHOUT_MBIT) * 1e6 / 8),
        "packet_overhead": -ETHERNET_HEADER_BYTES,
    }
    limit = {"limit": path.limit_packets}
    if path.ordered:
        needs_rate = path.rate_mbit is not None or path.jitter_ms > 0
        return [(NETEM_ROOT, None, {**loss, **delay, **(rate if needs_rate else {}), **limit})]
    if path.rate_mbit is None:
        return [(NETEM_ROOT, None, {**loss, **delay, **limit})]
    return [
        (NETEM_ROOT, None, {**loss, **rate, **limit}),
        (NETEM_DELAY, NETEM_ROOT, {**delay, "limit": UNLIMITED_PACKETS}),
    ]


def _shape(one: Exit) -> None:
    for handle, parent, options in disciplines(one.path):
        set_discipline(one.namespace, one.interface, handle, parent, options)


def _counted(one: Exit) -> dict[str, int]:
    with NetNS(one.namespace) as route:
        index = route.link_lookup(ifname=one.interface)[0]
        for found in route.get_qdiscs(index=index):
            if found["handle"] == NETEM_ROOT:
                stats = found.get_attr("TCA_STATS2")
                basic, queue = stats.get_attr("TCA_STATS_BASIC"), stats.get_attr("TCA_STATS_QUEUE")
                packets = int(basic["packets"])
                return {
                    "delivered_packets": packets,
                    "delivered_bytes": int(basic["bytes"]) - ETHERNET_HEADER_BYTES * packets,
                    "dropped": int(queue["drops"]),
                    "queue_packets": int(queue["qlen"]),
                }
    return {}


def set_discipline(
    namespace: str, interface: str, handle: int, parent: int | None, options: dict[str, Any], flags: int = NEW
) -> None:
    """Make a queueing discipline, or change one (``flags`` 0). Raises OSError if the kernel refuses.

    Message and exchange (netlink(7)) are our own: what pyroute2 makes of the option ``rate`` is no message (0.9.7 takes
    it for TCA_RATE as well).
    """
    with inside(namespace), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.settimeout(ANSWER_LIMIT_S)
        sock.send(discipline_message(socket.if_nametoindex(interface), handle, parent, options, flags))
        answer = sock.recv(1 << 16)
    (code,) = struct.unpack_from("i", answer, NETLINK_HEADER_BYTES)
    if code:
        raise OSError(-code, os.strerror(-code))


def discipline_message(index: int, handle: int, parent: int | None, options: dict[str, Any], flags: int) -> bytes:
    """What asks the kernel for a queueing discipline, and for an answer."""
    made = tcmsg()
    made["header"]["type"], made["header"]["flags"] = RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK | flags
    made["index"], made["handle"] = index, handle
    made["parent"] = TC_H_ROOT if parent is None else parent | 1
    made["attrs"] = [("TCA_KIND", "netem"), ("TCA_OPTIONS", sched_netem.get_parameters(options))]
    made.encode()
    return bytes(made.data)


def _no_offload(namespace: str, interface: str) -> None:
    """No segments larger than a packet on this interface, of TCP (ethtool(8): tso, gso, gro) or of UDP (ip-link(8):
    gso_max_segs)."""
    with NetNS(namespace) as route:
        route.link("set", index=route.link_lookup(ifname=interface)[0], gso_max_segs=1)
    with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for command in (ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO):
            value = array.array("I", [command, 0])
            address, _ = value.buffer_info()
            fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), address))
