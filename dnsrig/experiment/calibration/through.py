"""The floor through an interface of this machine, with a generator on the machine at the other end of the cable."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dnsrig.certificate import Floor, NicPath
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment.calibration import figures
from dnsrig.experiment.preparation import Note
from dnsrig.lab import nics
from dnsrig.machines import document, ssh_machine
from dnsrig.runs.run import Run

SERVER, GENERATOR = "primary", "generator-1"
"""The hosts at the two ends of the cable."""


@dataclass(frozen=True)
class Through:
    """An interface of this machine, and the interface of another machine at the other end of its cable."""

    nic: str
    machine: str
    machine_nic: str
    file: Path
    """File of machines that describes the other machine."""

    @property
    def label(self) -> str:
        return f"{self.nic} – {self.machine}:{self.machine_nic}"

    @property
    def settings(self) -> list[str]:
        """Values of `--set` with which ``floor.toml`` measures this path."""
        values: dict[str, str | int] = {
            "title": f"Floor of latency and lag through {self.label}",
            "options.generators": 1,
            f"hosts.{SERVER}.nic": self.nic,
            f"hosts.{GENERATOR}.machine": self.machine,
            f"hosts.{GENERATOR}.nic": self.machine_nic,
        }
        return [f"{path}={json.dumps(value)}" for path, value in values.items()]

    def check(self, note: Note) -> None:
        """Refuse interfaces that do not exist or are in use, and a machine that cannot be reached."""
        nics.check(self.nic)
        note(f"looking at {self.machine}")
        specs = document.named([self.machine], self.file)
        with (
            tempfile.TemporaryDirectory() as folder,
            ssh_machine.opened(specs, Path(folder), "calibration") as found,
        ):
            found[self.machine].call(nics.check, self.machine_nic)


def wanted(name: str, other_end: str, file: Path | None) -> Through | None:
    """The path that the options ``--nic``, ``--other-end`` and ``--machines`` describe; None: no path through an
    interface."""
    if not other_end:
        if file is not None:
            raise UsageError(
                "--machines without --other-end: on which machine is the other end of the cable?",
                hint="add --other-end MACHINE:INTERFACE",
            )
        return None
    machine, _, machine_nic = other_end.partition(":")
    if not machine or not machine_nic:
        raise UsageError(
            f"--other-end {other_end} does not name a machine and an interface",
            hint="write MACHINE:INTERFACE, e.g. rack-2:eth1",
        )
    if not name:
        raise UsageError(
            "--other-end without --nic: which interface of this machine?", hint="add --nic NAME, e.g. --nic eth1"
        )
    if file is None:
        raise UsageError(
            f"--other-end {other_end}: the address of the machine {machine} is missing",
            hint="name a file of machines: --machines machines.toml",
        )
    return Through(name, machine, machine_nic, file)


def floors_of(run: Run, through: Through) -> list[Floor]:
    """The floors through the interface. Raises DnsrigError if none has a figure, because then the cable is broken."""
    found = figures.floors(run, through.label)
    if not any(floor.p50_us for floor in found):
        raise DnsrigError(
            f"no measurement through {through.label} succeeded: {found[0].not_done}",
            hint="are these two interfaces connected by a cable? `ip link` shows which have a carrier",
        )
    return found


def path_of(run: Run, through: Through) -> NicPath:
    facts = run.trials[0].record.read_back["nics"]
    clocks = [trial.record.machines[through.machine].clock for trial in run.trials]
    return NicPath(
        label=through.label,
        nic=facts[SERVER],
        machine=through.machine,
        machine_nic=facts[GENERATOR],
        machine_conditions=run.manifest.conditions["other_machines"][through.machine],
        clock=min((clock for clock in clocks if clock), key=lambda clock: clock.error_ns, default=None),
    )
