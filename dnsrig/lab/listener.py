"""A server that dnsrig did not start, on the machine that it runs on: its cgroup, so that it can be sampled."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dnsrig.lab import cgroup
from dnsrig.lab.cgroup import Hierarchy

EVERYWHERE = ("0.0.0.0", "::")


def cgroups(address: str, port: int) -> list[Path]:
    """Folders of the cgroup of the programs that listen for UDP at ``address`` and ``port``; empty if there is none in
    this network namespace, or if they have several cgroups, or none of their own."""
    import psutil  # type: ignore[import-untyped]

    sockets = [one for one in psutil.net_connections("udp") if one.pid and one.laddr and one.laddr.port == port]
    exact = [one.pid for one in sockets if one.laddr.ip == address]
    found = exact or [one.pid for one in sockets if one.laddr.ip in EVERYWHERE]
    texts = set()
    for pid in found:
        with suppress(OSError):  # it has ended
            texts.add(Path(f"/proc/{pid}/cgroup").read_text())
    return folders(texts.pop(), cgroup.hierarchies()) if len(texts) == 1 else []


def folders(text: str, trees: Sequence[Hierarchy]) -> list[Path]:
    """The folders that a process has in ``trees``, from the text of its /proc/PID/cgroup (cgroups(7)). The root of a
    tree is left out, because it contains the whole machine."""
    places = [line.split(":", 2) for line in text.splitlines()]
    found = []
    for tree in trees:
        for _, controllers, path in places:
            is_its = set(tree.controllers) & {*controllers.split(",")} if tree.version == 1 else not controllers
            folder = tree.mount / path.lstrip("/")
            if is_its and path != "/" and folder.is_dir():
                found.append(folder)
    return found
