"""Other programs ran on the CPUs of the server under test, or the hypervisor took the CPUs away.

Steal is time in which a virtual CPU was ready but did not run. Contention is time in which the CPU was neither idle nor
used by the server's cgroup: another program used it, or the kernel for interrupts. Interrupts took up to 10 % in trials
on an idle machine.
"""

from __future__ import annotations

from typing import Any

from dnsrig.runs.cpu import FOREIGN_SHARE, shares_of, steal_series
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell

GROUP = "the machine and its clocks"
OUTCOMES = COMPARED
TITLE = "other programs or the hypervisor took CPU time"
SOURCE = "Linux proc(5), /proc/stat; cgroup v2, cpu.stat"
STEAL_SHARE = 0.05
"""Share of the time of `measure`, on one CPU, above which a result counts as disturbed."""
SHORTEST_S = 0.5
"""/proc/stat counts in ticks of 10 ms, too coarse for the shares of a shorter `measure`."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    shares = shares_of(trial, trial.subject)
    if shares is None:
        return cannot_tell(f"No samples of /proc/stat and of the {trial.subject}'s cgroup.")
    span_s, steal, foreign = shares
    others = max(int(moment.get("other_trials_running", 0)) for moment in _around(trial))
    if span_s < SHORTEST_S and not others:
        return cannot_tell(f"A measurement of {span_s:.2f} s is too short for the 10 ms ticks of /proc/stat.")
    if steal <= STEAL_SHARE and foreign <= FOREIGN_SHARE and not others:
        return CLEAR
    machine = record.spec.hosts[trial.subject].machine
    where = f"the machine {machine}" if machine else "this machine"
    also = f"; {others} other trial(s) of dnsrig ran on {where}" if others else ""
    return Conclusion(
        "found",
        summary=f"On the {trial.subject}'s CPU the hypervisor took {steal:.1%} of the time and other programs {foreign:.1%}{also}.",
        evidence={
            "steal_percent": round(100 * steal, 2),
            "foreign_percent": round(100 * foreign, 2),
            "measured_s": round(span_s, 3),
            "other_trials": others,
        },
        series=steal_series(trial, trial.subject),
        metrics=(record.spec.main_metric, f"{record.spec.hosts[trial.subject].role}_cpu_s"),
        remedy=f"Stop the other programs on {where} (`dnsrig check` lists them), or measure on a machine that is not shared.",
    )


def _around(trial: Trial) -> list[dict[str, Any]]:
    """Conditions of the machine with the server under test, before and after the trial."""
    record, machine = trial.record, trial.record.spec.hosts[trial.subject].machine
    if machine is None:
        return [record.read_back.get(when, {}) for when in ("before", "after")]
    return [record.machines[machine].read_back] if machine in record.machines else [{}]
