"""Which congestion controls the kernel of this machine has: those in it, and those that it would load."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = Path("/lib/modules")
PREFIX = "tcp_"
NOT_CONTROLS = {"tcp_diag"}
"""Modules beside them that begin in the same way."""


@cache
def available() -> tuple[str, ...]:
    """Names as ip-route(8) takes them for ``congctl``: those of the kernel, then those in modules, sorted."""
    present = AVAILABLE.read_text().split() if AVAILABLE.exists() else []
    return tuple(sorted({*present, *loadable(MODULES, platform.release())}))


def loadable(modules: Path, release: str) -> set[str]:
    """Those in the modules of a kernel on disk; it loads one when a route asks for it (tcp(7), CAP_NET_ADMIN)."""
    folder = modules / release / "kernel/net/ipv4"
    names = {path.name.partition(".")[0] for path in folder.glob(f"{PREFIX}*.ko*")}
    return {name.removeprefix(PREFIX) for name in names - NOT_CONTROLS}
