"""The line of a report on how small a difference the rig could show, by the certificate that the run cites."""

from __future__ import annotations

from dnsrig import certificate
from dnsrig.certificate import Cited
from dnsrig.report import figures
from dnsrig.rundir import Manifest

NOT_CALIBRATED = "Not calibrated, so how small a difference this rig can show is not known: run `dnsrig calibrate`."
IMPORTED = "Imported: nothing is known here about the machines on which it was measured."
SHOWN = (5, 10, 20)
"""Numbers of repeats for which the line gives the smallest visible difference."""
CONDITIONS = ("kernel", "cpu_model", "cpus", "clocksource", "governor")


def line(manifest: Manifest) -> str:
    """The line for ``manifest``; with several machines, what each machine's own certificate states."""
    if manifest.is_imported:
        return IMPORTED
    if not manifest.machines:
        found = certificate.cited(manifest.conditions)
        return NOT_CALIBRATED if found is None else told(found)
    cited = {machine.name: certificate.cited(machine.conditions) for machine in manifest.machines}
    lines = [f"Machine {name}: {told(found) if found else NOT_CALIBRATED}" for name, found in cited.items()]
    return " ".join(lines) if any(cited.values()) else NOT_CALIBRATED


def told(found: Cited) -> str:
    """``Calibrated 2026-01-01 (quick, …): floor p99 61 µs (udp at 2,000/s, 1 trial); smallest difference 10 % …``."""
    parts = [part for part in (_floor(found), _smallest(found)) if part] or ["no figures"]
    under = [f"{name} {value}" for name in CONDITIONS if (value := found.conditions.get(name)) is not None]
    under.append(f"dnsrig {found.dnsrig_version}")
    spoilt = f"; disturbed by {disturbed}" if (disturbed := found.figures.get("disturbed_by")) else ""
    return f"Calibrated {found.created[:10]} ({found.scale}, {found.id}{spoilt}): {'; '.join(parts)}. Taken with {', '.join(under)}."


def _floor(found: Cited) -> str:
    told = found.figures
    if "floor_p99_us" not in told:
        return ""
    trials = figures.count(int(told["floor_trials"]), "trial")
    where = f"{told['floor_transport']} at {float(told['floor_rate_qps']):,.0f}/s, {trials}{_through_nic(found)}"
    return f"floor p99 {figures.microseconds(float(told['floor_p99_us']))} ({where})"


def _through_nic(found: Cited) -> str:
    told = found.figures
    if "nic_floor_p99_us" not in told:
        return ""
    return f"; {figures.microseconds(float(told['nic_floor_p99_us']))} through {told['nic_path']}"


def _smallest(found: Cited) -> str:
    names = {repeats: f"smallest_of_{repeats}_percent" for repeats in SHOWN}
    shown = [
        f"{figures.slower(float(found.figures[name]))} with {repeats}"
        for repeats, name in names.items()
        if name in found.figures
    ]
    return (
        f"smallest difference {', '.join(shown)} repeats (p99 of {found.figures.get('noise_server', 'a server')})"
        if shown
        else ""
    )
