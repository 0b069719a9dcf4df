"""The snapshot of conditions: what a result depends on and nobody remembers later.

Everything is read back from the system, never repeated from what was asked for. What a machine does not tell is None.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
from pathlib import Path
from typing import Any

from dnsrig import discovery
from dnsrig.lab import cgroup, clock, idle, ledger, nics, uml

NETWORK_SYSCTLS = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
)

AUTOGROUPS = "/proc/sys/kernel/sched_autogroup_enabled"
"""sched(7): 1 shares the CPUs evenly among sessions, and a nice value or SCHED_IDLE counts only within one."""


def snapshot() -> dict[str, Any]:
    """The machine: constant while it is up, or nearly so. Taken at the start of a run."""
    wall_clock = clock.synchronisation()
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "system": _os_release(),
        "boot_id": boot_id(),
        "cpu_model": _cpu_model(),
        "cpus": os.cpu_count(),
        "memory_total_bytes": _meminfo("MemTotal"),
        "virtualisation": _virtualisation(),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "autogroups": read(AUTOGROUPS),
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "clock_synchronised": None if wall_clock is None else wall_clock.synchronised,
        "clock_error_bound_us": None if wall_clock is None else wall_clock.error_bound_us,
        "transparent_hugepages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "open_files_limit": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "cgroups": [f"v{t.version} {','.join(t.controllers)}".strip() for t in cgroup.hierarchies()],
        "psi": Path("/proc/pressure/cpu").exists(),
        "nics": {nic.name: nic.says for nic in nics.found()},
        **({"plugins": plugins} if (plugins := discovery.packages()) else {}),
        "sysctls": {name: sysctl(name) for name in NETWORK_SYSCTLS},
    }


def moment(folder: Path, own_tag: str) -> dict[str, Any]:
    """What may differ from one trial to the next, of which the ledger has ``own_tag``. ``folder``: where it writes."""
    return {
        "load_average_1min": round(os.getloadavg()[0], 2),
        "memory_available_bytes": _meminfo("MemAvailable"),
        "disk_free_bytes": shutil.disk_usage(folder).free,
        "wakeup_latency_us": idle.wakeup_latency_us(),
        "other_trials_running": len([tag for tag in ledger.live() if tag != own_tag]),
    }


def kernel() -> dict[str, Any]:
    """The kernel that this very process runs under: in User-mode Linux not the one of `snapshot`."""
    return {
        "kind": "uml" if uml.inside() else "running",
        "release": platform.release(),
        "cpus": os.cpu_count(),
        "memory_total_bytes": _meminfo("MemTotal"),
    }


def boot_id() -> str | None:
    """Another one since the machine was started anew (random(4))."""
    return read("/proc/sys/kernel/random/boot_id")


def read(path: str | Path) -> str | None:
    try:
        return " ".join(Path(path).read_text().split())
    except (OSError, UnicodeDecodeError):
        return None


def sysctl(name: str) -> str | None:
    return read(Path("/proc/sys", *name.split(".")))


def _os_release() -> str | None:
    text = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    pairs = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return pairs.get("PRETTY_NAME", "").strip('"') or None


def _cpu_model() -> str | None:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)


def _meminfo(name: str) -> int | None:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return None


def _virtualisation() -> str | None:
    """The hypervisor as far as the kernel tells: a virtual machine's clock and CPUs are not its own."""
    if vendor := read("/sys/class/dmi/id/sys_vendor"):
        return vendor
    flags = Path("/proc/cpuinfo").read_text()
    return "virtual machine (hypervisor flag)" if "hypervisor" in flags else None
