"""Which manipulation checks a spec has: those of its procedure, and those that any procedure may need. Pure."""

from __future__ import annotations

from dnsrig.procedures import procedure
from dnsrig.rundir import TrialSpec


def declared(spec: TrialSpec) -> list[str]:
    """The names of the checks that ``spec`` has, those of its procedure first."""
    return [*procedure(spec.procedure).checks(spec), *common(spec)]


def common(spec: TrialSpec) -> list[str]:
    """What experiments ask of hosts and links, whatever the procedure."""
    return []
