"""Physical interfaces of a machine: what may decide a result of each; moved into the namespace of a host, and put back.

Facts are read from sysfs and /proc, by netlink, and by the ioctl of ethtool (linux/ethtool.h), so no program is
needed. What a driver does not report is left out.
"""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyroute2 import Ethtool, IPRoute, NetNS
from pyroute2.netlink.exceptions import NetlinkError

from dnsrig.errors import UsageError

SYS = Path("/sys")
PROC = Path("/proc")
SIOCETHTOOL = 0x8946
"""linux/sockios.h"""
GET_DRIVER, GET_CHANNELS, GET_RINGS, GET_FLOW_RINGS = 0x03, 0x3C, 0x10, 0x2D
"""ETHTOOL_GDRVINFO, ETHTOOL_GCHANNELS, ETHTOOL_GRINGPARAM, ETHTOOL_GRXRINGS of linux/ethtool.h."""
IFF_UP, IFF_NOARP, IFF_MULTICAST = 1, 1 << 7, 1 << 12
LINK_LOCAL = 253
"""RT_SCOPE_LINK: an address that the kernel gives by itself."""
OFFLOADS = re.compile(
    r"(rx|tx)-(checksum.*|gro.*|lro|scatter-gather|hashing|udp.*)|.*segmentation.*|(rx|tx)-.*offload.*"
)


@dataclass(frozen=True)
class Nic:
    """What a machine tells of an interface; None where it does not."""

    name: str
    driver: str | None
    speed_mbit: int | None
    queues: int
    """In which it receives."""
    interrupts: dict[int, str]
    """Number -> the CPUs that it may go to, as the kernel lists them."""

    @property
    def says(self) -> str:
        """``virtio_net 10,000 Mbit/s``."""
        speed = "" if self.speed_mbit is None else f" {self.speed_mbit:,} Mbit/s"
        return f"{self.driver or 'driver not known'}{speed}"


def found() -> list[Nic]:
    """List the interfaces with a device behind them: not veth, bridges, tun or loopback."""
    return [_nic(folder) for folder in sorted((SYS / "class/net").glob("*")) if (folder / "device").exists()]


def _nic(folder: Path) -> Nic:
    driver = folder / "device/driver"
    return Nic(
        folder.name,
        driver.resolve().name if driver.exists() else None,
        _positive(folder / "speed"),
        len(list((folder / "queues").glob("rx-*"))),
        interrupts(folder.name),
    )


def interrupts(name: str) -> dict[int, str]:
    """Find the interrupts of an interface's device, or of the bus device that carries it, as with virtio."""
    where = (SYS / "class/net" / name / "device").resolve()
    folders = (where / "msi_irqs", where.parent / "msi_irqs")
    numbers = next((sorted(int(file.name) for file in folder.glob("*")) for folder in folders if folder.exists()), [])
    allowed = {number: _text(PROC / f"irq/{number}/smp_affinity_list") for number in numbers}
    return {number: cpus for number, cpus in allowed.items() if cpus is not None}


def facts(name: str) -> dict[str, Any]:
    """What may decide a result: of an interface of the calling thread's network, before it is moved."""
    folder = SYS / "class/net" / name
    told: dict[str, Any] = {
        "name": name,
        "driver": _driver(name),
        "speed_mbit": _positive(folder / "speed"),
        "duplex": _text(folder / "duplex"),
        "mtu_bytes": _positive(folder / "mtu"),
        "numa_node": _numa_node(folder),
        "queues_rx": len([*(folder / "queues").glob("rx-*")]),
        "queues_tx": len([*(folder / "queues").glob("tx-*")]),
        "receive_packet_steering": _steering(folder),
        "channels": _words(name, GET_CHANNELS, 8, ("", "", "", "", "rx", "tx", "other", "combined")),
        "rings": _words(name, GET_RINGS, 8, ("", "", "", "", "rx", "", "", "tx")),
        "rss_rings": _flow_rings(name),
        "offloads": _offloads(name),
        "irqs": {str(number): cpus for number, cpus in interrupts(name).items()},
    }
    return {key: value for key, value in told.items() if value not in (None, {}, [])}


def _driver(name: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        answer = _ioctl(sock, name, struct.pack("=I", GET_DRIVER) + bytes(192))
    if answer is None:
        return None
    driver, version, firmware = (answer[at : at + 32].split(b"\0")[0].decode(errors="replace") for at in (4, 36, 68))
    return " ".join(word for word in (driver, version, firmware and f"firmware {firmware}") if word)


def _words(name: str, command: int, count: int, names: tuple[str, ...]) -> dict[str, int]:
    """Read an answer that is a row of numbers, and return those that have a name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        answer = _ioctl(sock, name, struct.pack("=I", command) + bytes(4 * count))
    if answer is None:
        return {}
    return {what: value for what, value in zip(names, struct.unpack_from(f"={count}I", answer, 4)) if what}


def _flow_rings(name: str) -> int | None:
    """Among how many rings the interface spreads what it receives (RSS)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        answer = _ioctl(sock, name, struct.pack("=IIQ", GET_FLOW_RINGS, 0, 0) + bytes(176))
    return None if answer is None else int(struct.unpack_from("=Q", answer, 8)[0])


def _ioctl(sock: socket.socket, name: str, request: bytes) -> bytes | None:
    data = array.array("B", request)
    try:
        fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sQ16x", name.encode()[:15], data.buffer_info()[0]))
    except OSError:
        return None
    return data.tobytes()


def _offloads(name: str) -> list[str]:
    """List the offloads that are on."""
    try:
        with Ethtool() as ethtool:
            told = ethtool.get_features(name)
    except (NetlinkError, OSError, KeyError):
        return []
    return sorted(feature for feature, state in told.features.items() if state.enable and OFFLOADS.fullmatch(feature))


def _steering(folder: Path) -> dict[str, str]:
    """Queue -> CPUs that packets are handed to (RPS, scaling.rst of Linux), where any are."""
    found = {path.parent.name: _text(path) for path in sorted((folder / "queues").glob("rx-*/rps_cpus"))}
    return {queue: mask for queue, mask in found.items() if mask and int(mask.replace(",", ""), 16)}


def _numa_node(folder: Path) -> int | None:
    """None where there is one node only, or the kernel does not know."""
    text = _text(folder / "device/numa_node")
    return int(text) if text is not None and text.isdigit() else None


def _positive(path: Path) -> int | None:
    """Read a positive number; the kernel has -1 or 0 for a link that is down or has no speed."""
    text = _text(path)
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


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
