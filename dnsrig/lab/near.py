"""What a trial asks of a machine that has hosts of it: each a call of ``end``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dnsrig.lab import host_calls
from dnsrig.lab.host import Host
from dnsrig.lab.remote_machine import RemoteMachine
from dnsrig.rundir import HostSpec, LinkSpec, Privileges


def make_host(machine: RemoteMachine, name: str, spec: HostSpec) -> Host:
    told = machine.call(host_calls.make_host, name, spec.model_dump(mode="json"))
    cgroups = tuple(map(Path, told.pop("cgroups")))
    return Host(name, spec, cgroups=cgroups, machine=machine, **told)


def join(machine: RemoteMachine, here: Host, there: Host, mtu_bytes: int) -> None:
    machine.call(host_calls.join, here.name, _told(there), there.nic_address, mtu_bytes)


def link(machine: RemoteMachine, spec: LinkSpec, number: int) -> None:
    machine.call(host_calls.link, *spec.ends, spec.model_dump(mode="json"), number)


def check_link(machine: RemoteMachine, here: Host, there: Host, spec: LinkSpec) -> dict[str, Any]:
    found: dict[str, Any] = machine.call(host_calls.check_link, here.name, _told(there), spec.model_dump(mode="json"))
    return found


def settle(machine: RemoteMachine, here: Host, neighbours: Sequence[Host]) -> dict[str, Any]:
    found: dict[str, Any] = machine.call(host_calls.settle, here.name, [_told(there) for there in neighbours])
    return found


def pids(machine: RemoteMachine, name: str) -> set[int]:
    return set(machine.call(host_calls.pids, name))


def threads(machine: RemoteMachine, pids: Sequence[int]) -> int:
    return int(machine.call(host_calls.threads, list(pids)))


def privileges(machine: RemoteMachine, pid: int) -> Privileges | None:
    found = machine.call(host_calls.privileges, pid)
    return Privileges.model_validate(found) if found else None


def _told(host: Host) -> dict[str, Any]:
    return {"name": host.name, "spec": host.spec.model_dump(mode="json")}
