"""Hosts on other machines, as a trial has them: made up, nothing of it measured."""

from __future__ import annotations

from typing import Any

from trial_data import SECOND

from dnsrig.rundir import ClockRecord, HostSpec, LinkSpec, MachineRecord, MachineSpec
from dnsrig.runs.trial import Trial

CONDITIONS: dict[str, Any] = {"load_average_1min": 0.2, "other_trials_running": 0}


def clock(**changes: Any) -> ClockRecord:
    """One that is 3.7 s ahead, well known, with the same wall time."""
    usual: dict[str, Any] = {
        "at_ns": 5_000 * SECOND,
        "offset_ns": 3_700_000_000,
        "drift_ppb": 185.0,
        "error_ns": 22_000,
        "realtime_offset_ns": 2_780,
        "realtime_error_ns": 21_000,
        "comparisons": 3,
    }
    return ClockRecord(**usual | changes)


def put(trial: Trial, host: str, machine: str, **changes: Any) -> None:
    """Let ``host`` of ``trial`` be on ``machine``, joined with the server under test by an interface of each."""
    spec, subject = trial.record.spec, trial.subject
    there = spec.hosts.get(host, HostSpec(address=f"198.18.1.{len(spec.hosts)}", cpus=[1]))
    spec.hosts[host] = there.model_copy(update={"machine": machine, "nic": "eno1", **changes})
    spec.hosts[subject] = spec.hosts[subject].model_copy(update={"nic": "eno2"})
    spec.links = [link for link in spec.links if set(link.ends) != {host, subject}]
    spec.links.append(LinkSpec(ends=(subject, host), kind="nic"))
    spec.machines[machine] = MachineSpec(ssh=f"{machine}.example")
    trial.record.machines.setdefault(machine, MachineRecord(read_back=dict(CONDITIONS), clock=clock()))


def generators(trial: Trial, *machines: str, **of_each: Any) -> None:
    """Let a generator on each of ``machines`` ask in the observer's place. What each saw is what all saw, with changes:
    ``generator_2={"busy_share": 1.0}``."""
    together = trial.record.instruments["load"]
    for number, machine in enumerate(machines, start=1):
        name = f"generator-{number}"
        put(trial, name, machine, asks=True)
        trial.record.instruments[f"load-{name}"] = together | of_each.get(f"generator_{number}", {})
