"""The machines that hosts of a run are on: found in a file, and looked at before the first trial."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dnsrig.errors import UsageError
from dnsrig.experiment.model import Point
from dnsrig.machines import document, ssh_machine
from dnsrig.rundir import MachineSpec


@dataclass(frozen=True)
class HostingMachine:
    """A machine that hosts may be on, beside the one that the run is started on."""

    spec: MachineSpec
    cpus: list[int]
    conditions: dict[str, Any] = field(default_factory=dict)


def wanted(points: Iterable[Point]) -> list[str]:
    """Those that hosts name."""
    return sorted({host.machine for point in points for host in point.document.hosts.values() if host.machine})


def look(names: list[str], file: Path | None, note: Callable[[str], None]) -> dict[str, HostingMachine]:
    """Connect to each, bring what it lacks of dnsrig, and see what it is. Raises where one cannot be had."""
    if not names:
        return {}
    specs = named(names, file)
    note(f"looking at {', '.join(names)}")
    with tempfile.TemporaryDirectory() as folder, ssh_machine.opened(specs, Path(folder), "that begins") as found:
        return {
            name: HostingMachine(
                specs[name].model_copy(update={"boot_id": one.boot}), one.looked["cpus"], one.looked["conditions"]
            )
            for name, one in found.items()
        }


def named(names: list[str], file: Path | None) -> dict[str, MachineSpec]:
    """What the file says of each. Raises UsageError where it does not."""
    if file is None:
        raise UsageError(
            f"the experiment needs the machine {names[0]}, whose address is not known",
            hint="name a file of machines: --machines machines.toml",
        )
    known = document.read(file)
    if missing := [name for name in names if name not in known.machines]:
        raise UsageError(
            f"{file} has no machine {missing[0]}",
            hint=f"it has: {', '.join(known.machines)}; write [machines.{missing[0]}]",
        )
    return {name: MachineSpec(**known.machines[name].model_dump(), config=known.config) for name in names}
