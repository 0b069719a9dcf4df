"""What a trial asks of a machine that has hosts of it: each a call of ``end``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dnsrig.lab.elsewhere import Machine, end
from dnsrig.lab.host import Host
from dnsrig.rundir import HostSpec, LinkSpec, Privileges


def make_host(machine: Machine, name: str, spec: HostSpec) -> Host:
    told = machine.call(end.make_host, name, spec.model_dump(mode="json"))
    cgroups = tuple(map(Path, told.pop("cgroups")))
    return Host(name, spec, cgroups=cgroups, machine=machine, **told)


def join(machine: Machine, here: Host, there: Host, mtu_bytes: int) -> None:
    machine.call(end.join, here.name, _told(there), there.nic_address, mtu_bytes)


def link(machine: Machine, spec: LinkSpec, number: int) -> None:
    machine.call(end.link, *spec.ends, spec.model_dump(mode="json"), number)


def check_link(machine: Machine, here: Host, there: Host, spec: LinkSpec) -> dict[str, Any]:
    found: dict[str, Any] = machine.call(end.check_link, here.name, _told(there), spec.model_dump(mode="json"))
    return found


def settle(machine: Machine, here: Host, neighbours: Sequence[Host]) -> dict[str, Any]:
    found: dict[str, Any] = machine.call(end.settle, here.name, [_told(there) for there in neighbours])
    return found


def pids(machine: Machine, name: str) -> set[int]:
    return set(machine.call(end.pids, name))


def threads(machine: Machine, pids: Sequence[int]) -> int:
    return int(machine.call(end.threads, list(pids)))


def privileges(machine: Machine, pid: int) -> Privileges | None:
    found = machine.call(end.privileges, pid)
    return Privileges.model_validate(found) if found else None


def _told(host: Host) -> dict[str, Any]:
    return {"name": host.name, "spec": host.spec.model_dump(mode="json")}
