"""Hosts and links: network namespaces joined by veth pairs, with one address each and static neighbours.

Each host has one IPv4 address out of 198.18.0.0/15, the range that RFC 2544 sets aside for measuring, which is
routed nowhere. An interface is named after the host at its other end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import socket
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from pyroute2 import IPRoute, NetNS, netns

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.lab import cgroup, ledger
from dnsrig.lab.ledger import Ledger
from dnsrig.rundir import HostSpec, LinkSpec, Scalar

Address = IPv4Address | IPv6Address

SYSCTL_NAME = re.compile(r"net(\.[a-z0-9_-]+)+")
LOOPBACK = 1
"""Index of the interface lo, the first of every namespace."""
PING_ROUNDS = 21
PING_TIMEOUT_S = 2.0
UNUSED_PORT = 9
"""discard (RFC 863): nothing listens there on a fresh host, so a connect is refused at once."""


@dataclass(frozen=True)
class Host:
    """A host that exists: its namespace, address, CPUs and the folders of its cgroup."""

    name: str
    address: Address
    cpus: tuple[int, ...]
    namespace: str
    cgroups: tuple[Path, ...]
    source_addresses: tuple[Address, ...] = ()
    sysctls: dict[str, str] = field(default_factory=dict)
    """As read back after setting."""

    @property
    def namespace_path(self) -> Path:
        return Path("/run/netns") / self.namespace


@dataclass
class Network:
    """The hosts and links of one trial. A context manager: what it made is gone afterwards."""

    specs: dict[str, HostSpec]
    links: list[LinkSpec]
    hosts: dict[str, Host] = field(default_factory=dict)
    ledger: Ledger | None = None

    def __enter__(self) -> Network:
        self.ledger = Ledger.open_new()
        try:
            for name, spec in self.specs.items():
                self.hosts[name] = _make_host(self.ledger, name, spec)
            for link in self.links:
                make_veth(self.hosts[link.ends[0]], self.hosts[link.ends[1]])
        except BaseException:
            remove(self.ledger)
            raise
        return self

    @property
    def tag(self) -> str:
        """Names everything that this network made."""
        return self.ledger.tag if self.ledger else ""

    def folder_in_memory(self, wanted_bytes: int) -> Path:
        """A new folder in memory with room for ``wanted_bytes``, gone with this network."""
        assert self.ledger is not None
        free = shutil.disk_usage(ledger.MEMORY).free if os.path.ismount(ledger.MEMORY) else 0
        if free < wanted_bytes:
            raise DnsrigError(
                f"{ledger.MEMORY} has {free / 1e6:,.0f} MB free; servers may store {wanted_bytes / 1e6:,.0f} MB in this trial",
                hint="mount a larger tmpfs there, or measure with --set storage=disk",
            )
        folder = ledger.MEMORY / f"{ledger.PREFIX}{self.tag}"
        self.ledger.add(folder=str(folder))
        folder.mkdir(mode=0o700)
        return folder

    def __exit__(self, *_: object) -> None:
        if self.ledger is not None and (left := remove(self.ledger)):
            raise DnsrigError(f"could not remove {', '.join(left)}", hint="`dnsrig clean` tries again")


def remove(made: Ledger) -> list[str]:
    """Remove everything that ``made`` lists; returns what would not go. Safe to call twice.

    A signal that comes meanwhile waits: a removal is never cut short.
    """
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        return _remove(made)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)


def _remove(made: Ledger) -> list[str]:
    left = []
    for folder in map(Path, made.cgroups):
        cgroup.kill(folder)
    for folder in map(Path, made.cgroups):
        if not cgroup.remove(folder):
            left.append(str(folder))
    for name in made.network_namespaces:
        if Path("/run/netns", name).exists():
            try:
                netns.remove(name)
            except OSError:
                left.append(f"network namespace {name}")
    for folder in map(Path, made.folders):
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.lexists(folder):
            left.append(str(folder))
    if not left:
        made.close()
    return left


def clean() -> tuple[list[str], list[str]]:
    """Remove what dead trials left behind. Returns (tags removed, what would not go)."""
    removed, left = [], []
    for made in ledger.dead():
        remains = remove(made)
        left += remains
        if not remains:
            removed.append(made.tag)
    return removed, left


def _make_host(made: Ledger, name: str, spec: HostSpec) -> Host:
    namespace = f"{ledger.PREFIX}{made.tag}-{name}"
    made.add(network_namespace=namespace)
    netns.create(namespace)
    folders = cgroup.folders(made.tag, name, cgroup.hierarchies())
    for folder in folders:
        made.add(cgroup=str(folder))
        cgroup.make(folder)
    with inside(namespace):
        for key, value in (BASE_SYSCTLS | spec.sysctls).items():
            set_sysctl(key, value)
        read_back = {key: read_sysctl(key) for key in sorted({*BASE_SYSCTLS, *spec.sysctls, *TELLING_SYSCTLS})}
    more = tuple(IPv4Address(text) for text in spec.source_addresses)
    with NetNS(namespace) as route:
        route.link("set", index=LOOPBACK, state="up")
        for address in more:
            route.addr("add", index=LOOPBACK, address=str(address), prefixlen=32)
    return Host(name, IPv4Address(spec.address), tuple(spec.cpus), namespace, tuple(folders), more, read_back)


TELLING_SYSCTLS = (
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_congestion_control",
)
"""Recorded of every host, set or not."""
BASE_SYSCTLS = {
    # No neighbour discovery or router solicitations among the packets that are counted.
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
    # Every poll of a port that nobody listens on is refused, so `probe` learns at once that a server has not started;
    # by default only the first few would be (icmp(7), icmp_ratemask).
    "net.ipv4.icmp_ratemask": "0",
}


def make_veth(left: Host, right: Host) -> None:
    """Join two hosts by a veth pair: point-to-point addresses, permanent neighbours, no ARP."""
    with IPRoute() as route, _descriptor(left) as left_fd, _descriptor(right) as right_fd:
        route.link(
            "add",
            kind="veth",
            ifname=right.name,
            net_ns_fd=left_fd,
            peer={"ifname": left.name, "net_ns_fd": right_fd},
        )
    hardware = {}
    for here, there in ((left, right), (right, left)):
        with NetNS(here.namespace) as route:
            index = route.link_lookup(ifname=there.name)[0]
            hardware[here.name] = route.link("get", index=index)[0].get("address")
            route.link("set", index=index, state="up")
            route.addr("add", index=index, local=str(here.address), address=str(there.address), prefixlen=32)
    for here, there in ((left, right), (right, left)):
        with NetNS(here.namespace) as route:
            index = route.link_lookup(ifname=there.name)[0]
            route.neigh(
                "replace", dst=str(there.address), lladdr=hardware[there.name], ifindex=index, state="permanent"
            )
            for address in there.source_addresses:
                route.route("add", dst=f"{address}/32", gateway=str(there.address), oif=index)


@contextlib.contextmanager
def _descriptor(host: Host) -> Iterator[int]:
    with host.namespace_path.open("rb") as file:
        yield file.fileno()


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """The calling thread sees the network of ``namespace``."""
    netns.pushns(namespace)
    try:
        yield
    finally:
        netns.popns()


def check_sysctl_name(name: str) -> None:
    if not SYSCTL_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a sysctl of a host", hint="only names under net. can be set, e.g. net.ipv4.tcp_tw_reuse"
        )


def read_sysctl(name: str) -> str:
    """A sysctl of the current network namespace; empty where this kernel has none of that name."""
    path = Path("/proc/sys", *name.split("."))
    return " ".join(path.read_text().split()) if path.exists() else ""


def set_sysctl(name: str, value: str) -> None:
    """Set a sysctl of the current network namespace.

    Only names under ``net.`` and only those that a namespace has of its own: a trial never changes the machine's.
    """
    check_sysctl_name(name)
    path = Path("/proc/sys", *name.split("."))
    try:
        path.write_text(value)
    except FileNotFoundError as error:
        raise UsageError(
            f"a host has no sysctl {name} of its own", hint="it belongs to the whole machine, which no trial changes"
        ) from error
    except OSError as error:
        raise UsageError(f"the kernel refuses {name} = {value!r}: {error.strerror}") from error


def measure_link(here: Host, there: Host) -> dict[str, Scalar]:
    """The link as it is: round-trip times seen by refused TCP connects, MTU.

    The figure includes the two system calls and Python around them, some tens of microseconds: an upper bound.
    """
    rtts_us = []
    with inside(here.namespace):
        for _ in range(PING_ROUNDS):
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
                sock.settimeout(PING_TIMEOUT_S)
                start = time.monotonic_ns()
                refused = sock.connect_ex((str(there.address), UNUSED_PORT))
                if refused != errno.ECONNREFUSED:
                    return {"from": here.name, "to": there.name, "works": False}
                rtts_us.append((time.monotonic_ns() - start) / 1000)
    with NetNS(here.namespace) as route:
        mtu = route.link("get", index=route.link_lookup(ifname=there.name)[0])[0].get("mtu")
    return {
        "from": here.name,
        "to": there.name,
        "works": True,
        "kind": "veth",
        "rtt_min_us": round(min(rtts_us), 1),
        "rtt_median_us": round(statistics.median(rtts_us), 1),
        "rtt_max_us": round(max(rtts_us), 1),
        "mtu_octets": mtu,
    }
