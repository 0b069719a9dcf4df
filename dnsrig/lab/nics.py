"""The network interfaces of a machine: which are hardware or a hypervisor's, and what may decide a result of each.

All is read from sysfs and /proc, by netlink, and by the ioctl of ethtool (linux/ethtool.h), so no program has to be
there. What a driver does not tell is left out.
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

from pyroute2 import Ethtool
from pyroute2.netlink.exceptions import NetlinkError

SYS = Path("/sys")
PROC = Path("/proc")
SIOCETHTOOL = 0x8946
"""linux/sockios.h"""
GET_DRIVER, GET_CHANNELS, GET_RINGS, GET_FLOW_RINGS = 0x03, 0x3C, 0x10, 0x2D
"""ETHTOOL_GDRVINFO, ETHTOOL_GCHANNELS, ETHTOOL_GRINGPARAM, ETHTOOL_GRXRINGS of linux/ethtool.h."""
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
    """Those with a device behind them: not veth, bridges, tun or loopback."""
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
    """Those of the device of an interface, or of the bus's device that carries it, as with virtio."""
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
    """Of an answer that is numbers in a row, those that have a name."""
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
    """Those that are on."""
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
    """-1 and 0 are what the kernel says of a link that is down or has no speed."""
    text = _text(path)
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
