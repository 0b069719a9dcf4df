"""Hosts of a trial on other machines: the way there is SSH, and one connection a machine carries all.

- ``remote``   such a machine, as the trial sees it: calls, programs, files
- ``far_end``  what runs there meanwhile: it answers the calls
- ``machines`` those of a run, looked at before its first trial

What is called there is in ``dnsrig.lab.elsewhere.end``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dnsrig.rundir import MachineSpec


@dataclass(frozen=True)
class Elsewhere:
    """A machine that hosts may be on, beside the one that the run is started on."""

    spec: MachineSpec
    cpus: list[int]
    conditions: dict[str, Any] = field(default_factory=dict)
