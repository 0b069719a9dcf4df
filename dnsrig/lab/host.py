"""A host: a network namespace with an address of both families, a TCP stack, sysctls and a cgroup of its own."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from pyroute2 import NetNS, netns

from dnsrig import interruption
from dnsrig.confinement import PidNamespace
from dnsrig.errors import UsageError
from dnsrig.lab import addresses, cgroup, ledger, nics
from dnsrig.lab.ledger import Ledger
from dnsrig.lab.remote_machine import RemoteMachine
from dnsrig.rundir import Address, HostSpec

SYSCTL_NAME = re.compile(r"net(\.[a-z0-9_-]+)+")
LOOPBACK = 1
"""Index of the interface lo, the first of every namespace."""
ALIAS = "dnsrig"
"""Alias of that interface (ip-link(8)), by which the engine sees that it is on a host of the rig: there it may send to
any address that is kept for benchmarks (``dnsrig-core/src/route.rs``)."""
LOCAL_TABLE, HOST_SCOPE = 255, 254
"""RT_TABLE_LOCAL and RT_SCOPE_HOST (rtnetlink(7))."""
TELLING_SYSCTLS = (
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
)
"""Recorded of every host, set or not."""
BASE_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    # Packets that no program asked for are not sent, so none are counted: a host has the addresses it is given, uses
    # them at once, and looks for no router (RFC 4862). Without an address of the link it joins no groups there either.
    "net.ipv6.conf.default.addr_gen_mode": "1",
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.use_tempaddr": "0",
    # Every poll of a port that nobody listens on is refused, so `probe` learns at once that a server has not started;
    # by default only the first few would be (icmp(7), icmp_ratemask).
    "net.ipv4.icmp_ratemask": "0",
    "net.ipv6.icmp.ratelimit": "0",
}
IFA_F_NODAD = 0x02
"""linux/if_addr.h: nobody is asked whether the address is taken (RFC 4862, 5.4)."""


@dataclass(frozen=True)
class Host:
    """A host that exists: its namespace and the folders of its cgroup."""

    name: str
    spec: HostSpec
    """What was asked for."""
    namespace: str
    """Name of its network namespace; empty: it uses the network that this process has, and was not made."""
    cgroups: tuple[Path, ...] = ()
    sysctls: dict[str, str] = field(default_factory=dict)
    """Values that were read back after setting."""
    machine: RemoteMachine | None = field(default=None, compare=False)
    """The other machine that it is on; None: this one."""
    nic_address: str = ""
    """Hardware address of the interface that it took from its machine; empty: it took none."""
    pid_namespace: PidNamespace = field(default_factory=PidNamespace, compare=False)
    """Namespace of its confined programs; the others see the machine's processes."""
    nic_facts: dict[str, Any] = field(default_factory=dict)
    """What is known of that interface."""

    @property
    def address(self) -> Address:
        """The address at which the host is asked."""
        return ip_address(self.spec.address)

    @property
    def family(self) -> socket.AddressFamily:
        """The family of the address."""
        return socket.AF_INET if self.address.version == 4 else socket.AF_INET6

    @property
    def by_version(self) -> dict[int, Address]:
        """Its own address of each version of IP."""
        return {address.version: address for address in addresses.both(self.spec.address)}

    @property
    def source_addresses(self) -> list[Address]:
        return [ip_address(text) for text in self.spec.source_addresses]

    @property
    def routed(self) -> list[str]:
        """Prefixes that lie behind its own address."""
        more = [str(ip_network(address)) for address in self.spec.source_addresses]
        return [*more, *self.spec.ranges]

    def make_folder(self, folder: Path) -> None:
        """A folder of the trial, for programs on this host."""
        if self.machine is not None:
            self.machine.make_folder(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def namespace_path(self) -> Path:
        return Path("/run/netns") / self.namespace if self.namespace else Path("/proc/self/ns/net")


def make(made: Ledger, name: str, spec: HostSpec) -> Host:
    """Make a host, without links. ``made`` lists it first."""
    namespace = f"{ledger.PREFIX}{made.tag}-{name}"
    if spec.nic is not None:
        nics.check(spec.nic)
    made.add(network_namespace=namespace)
    create(namespace)
    folders = cgroup.folders(made.tag, name, cgroup.hierarchies())
    for folder in folders:
        made.add(cgroup=str(folder))
        cgroup.make(folder, spec.cpus)
    with inside(namespace):
        for key, value in (BASE_SYSCTLS | spec.sysctls).items():
            set_sysctl(key, value)
        read_back = {key: read_sysctl(key) for key in sorted({*BASE_SYSCTLS, *spec.sysctls, *TELLING_SYSCTLS})}
    with NetNS(namespace) as route:
        route.link("set", index=LOOPBACK, state="up", ifalias=ALIAS)
        for address in addresses.both(spec.address):
            if address.version == 6:  # whatever the MTU of its links, it is there
                add_address(route, str(address))
        for text in spec.source_addresses:
            add_address(route, text)
        for prefix in spec.ranges:
            # All of its addresses are the host's, without one entry each: as `ip route add local RANGE dev lo`.
            route.route("add", dst=prefix, oif=LOOPBACK, type="local", table=LOCAL_TABLE, scope=HOST_SCOPE)
    nic_facts = nics.facts(spec.nic) if spec.nic else {}
    nic_address = _take_nic(made, spec, spec.nic, namespace) if spec.nic else ""
    return Host(name, spec, namespace, tuple(folders), read_back, nic_address=nic_address, nic_facts=nic_facts)


def _take_nic(made: Ledger, spec: HostSpec, name: str, namespace: str) -> str:
    if spec.nic_shared:
        return nics.share(name, namespace)
    made.add(nic={**nics.before(name), "namespace": namespace})
    return nics.move(name, namespace)


def pids(host: Host) -> set[int]:
    """The processes of a host of this machine, by its cgroups."""
    return {int(pid) for folder in host.cgroups for pid in (folder / "cgroup.procs").read_text().split()}


def add_address(route: NetNS, address: str) -> None:
    """An address of the host itself, on no link."""
    flags = {"flags": IFA_F_NODAD} if ip_address(address).version == 6 else {}
    route.addr("add", index=LOOPBACK, address=address, prefixlen=ip_address(address).max_prefixlen, **flags)


def create(namespace: str) -> None:
    """Make a network namespace that a ledger lists already.

    A process of its own makes it, and goes on if a signal ends the wait for it: the namespace would come after the
    removal, and stay. So a signal interrupts afterwards.
    """
    with interruption.deferred():
        netns.create(namespace)


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """The calling thread sees the network of ``namespace``, others what they saw; a socket made inside stays there."""
    with Path("/proc/thread-self/ns/net").open("rb") as own, (Path("/run/netns") / namespace).open("rb") as wanted:
        netns.setns(wanted.fileno())
        try:
            yield
        finally:
            netns.setns(own.fileno())


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
            f"a host has no separate sysctl {name}", hint="it belongs to the whole machine, which trials do not change"
        ) from error
    except OSError as error:
        raise UsageError(f"the kernel refuses {name} = {value!r}: {error.strerror}") from error
