"""Is this machine fit to measure on? Each remark with its remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from pyroute2.netlink.exceptions import NetlinkError

from dnsrig import paths, version
from dnsrig.errors import DnsrigError
from dnsrig.lab import addresses, cgroup, conditions, disturbances, links, removal, tcp, uml
from dnsrig.lab.disturbances import Remark
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec

DISK_WANTED_BYTES = 5 << 30
OPEN_FILES_WANTED = 20_000
WANTED_CONTROLS = ("reno", "cubic", "bbr", "hybla", "illinois")
"""What the built-in experiments compare."""
NAMESPACES = "may this container make network namespaces? It needs CAP_SYS_ADMIN and CAP_NET_ADMIN"


def remarks() -> Iterator[Remark]:
    for look in LOOKS:
        yield from look()


def _remains() -> Iterator[Remark]:
    _, left = removal.clean()
    if left:
        yield Remark("dead trials", "note", f"not removed: {', '.join(left)}", "`dnsrig clean` as root")


def _root() -> Iterator[Remark]:
    if os.geteuid() == 0:
        yield Remark("root", "good", "hosts can be made")
    else:
        yield Remark("root", "bad", "network namespaces need root", "run dnsrig with sudo")


def _engine() -> Iterator[Remark]:
    try:
        yield Remark("engine", "good", version.engine())
    except (DnsrigError, OSError, subprocess.CalledProcessError) as error:
        yield Remark("engine", "bad", str(error), "`make setup` builds and installs it")


def _network() -> Iterator[Remark]:
    if os.geteuid() != 0:
        return
    hosts = {
        name: HostSpec(address=str(addresses.TRIED.ipv4[n]), cpus=[0])
        for n, name in enumerate(("left", "right"), start=1)
    }
    try:
        with Network(hosts, [LinkSpec(ends=("left", "right"))]) as network:
            (link,) = network.check_links()
    except DnsrigError as error:
        yield Remark("network", "bad", f"two hosts cannot be made: {error.message}", error.hint)
        return
    except OSError as error:
        yield Remark("network", "bad", f"two hosts cannot be made: {error}", NAMESPACES)
        return
    except NetlinkError as error:
        yield Remark("network", "bad", f"two hosts cannot be joined by veth: {error}", "does the kernel have veth?")
        return
    if link["works"]:
        yield Remark("network", "good", f"two hosts joined by veth: {link['rtt_median_us']} µs there and back")
    else:
        yield Remark(
            "network", "bad", "no packets pass between two hosts joined by veth", "look at the firewall of this machine"
        )


def _links() -> Iterator[Remark]:
    """What paths can be emulated with: one is enough."""
    if os.geteuid() != 0:
        return
    emulating = {name: kind for name, kind in links.within_machine().items() if kind.EMULATES}
    missing = {name: kind.unavailable() for name, kind in emulating.items()}
    there = next((name for name, why in missing.items() if why is None), None)
    instead = f'experiments with a [path] take link = "{there}" by themselves' if there else 'kernel = "uml" has one'
    for name, why in missing.items():
        if why is None:
            default = ", and experiments with a [path] take it by default" if name == there else ""
            yield Remark(f"link {name}", "good", emulating[name].DESCRIPTION + default)
        else:
            yield Remark(f"link {name}", "note", why, f"none needed: {instead}; or {emulating[name].REMEDY}")


def _congestion() -> Iterator[Remark]:
    controls = tcp.congestion_controls()
    lacking = [name for name in WANTED_CONTROLS if name not in controls]
    says = f"congestion controls {', '.join(controls)}"
    if lacking:
        remedy = (
            f'experiments that ask for them run under kernel = "uml" by themselves; or `modprobe {" ".join("tcp_" + name for name in lacking)}`, '
            "with a kernel that has them"
        )
        yield Remark("kernel running", "note", f"{says}; not {', '.join(lacking)}", remedy)
    else:
        yield Remark("kernel running", "good", says)


def _uml() -> Iterator[Remark]:
    if why := uml.available():
        yield Remark("kernel uml", "note", why, "only experiments that need another kernel need it")
    elif kernel := uml.find():
        controls = ", ".join(kernel.congestion_controls())
        yield Remark(
            "kernel uml", "good", f"Linux {kernel.release} as a process, with netem; congestion controls {controls}"
        )
    else:
        yield Remark(
            "kernel uml",
            "good",
            "a stock kernel as a process, with netem and all congestion controls: fetched when it is first needed",
        )


def _cgroups() -> Iterator[Remark]:
    trees = cgroup.hierarchies()
    if not trees:
        yield Remark("cgroups", "bad", "no cgroup tree is mounted", "mount -t cgroup2 none /sys/fs/cgroup")
        return
    yield Remark("cgroups", "good", ", ".join(f"v{t.version} {' '.join(t.controllers)}".strip() for t in trees))
    if os.geteuid() == 0:
        for tree in trees:
            if not os.access(tree.mount, os.W_OK):
                yield Remark("cgroups", "bad", f"{tree.mount} cannot be written", cgroup.WRITABLE)


def _pressure() -> Iterator[Remark]:
    if Path("/proc/pressure/cpu").exists():
        yield Remark("PSI", "good", "the kernel tells who waited for CPU, memory and I/O")
    else:
        yield Remark("PSI", "note", "no pressure stall information: some traps cannot tell", "boot with psi=1")


def _ports() -> Iterator[Remark]:
    ports = conditions.sysctl("net.ipv4.ip_local_port_range")
    buckets = conditions.sysctl("net.ipv4.tcp_max_tw_buckets")
    yield Remark(
        "TCP",
        "good",
        f"ephemeral ports {ports}, tcp_max_tw_buckets {buckets}, {conditions.sysctl('net.ipv4.tcp_congestion_control')}",
    )


def _files() -> Iterator[Remark]:
    limit = conditions.snapshot()["open_files_limit"]
    if limit < OPEN_FILES_WANTED:
        yield Remark(
            "open files", "note", f"at most {limit:,} a process: too few for very many connections", "ulimit -Hn 100000"
        )


def _disk() -> Iterator[Remark]:
    folder = paths.cache()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < DISK_WANTED_BYTES:
        yield Remark(
            "disk",
            "note",
            f"{free / 1e9:.1f} GB free at {folder}",
            f"make room, or move the cache: DNSRIG_CACHE={folder}",
        )
    else:
        yield Remark("disk", "good", f"{free / 1e9:.0f} GB free at {folder}")


def _suites() -> Iterator[Remark]:
    if shutil.which("apt-get"):
        yield Remark("Debian suites", "good", "apt-get is here: servers of any suite can be installed")
    else:
        yield Remark(
            "Debian suites",
            "note",
            "no apt-get: only KIND@system and KIND@/path",
            "build the servers that you want to compare",
        )


LOOKS: tuple[Callable[[], Iterator[Remark]], ...] = (
    _remains, _root, _engine, _network, _links, _congestion, _uml, _cgroups, _pressure, disturbances.remarks, _ports, _files, _disk, _suites,
)  # fmt: skip
