"""Something else ran on the CPUs of the server under test, or the hypervisor took them away.

Steal is time in which a virtual CPU was ready but not run. Contention is CPU time that neither the server's cgroup nor
the kernel's interrupt work accounts for: some other program on the same CPU.
"""

from __future__ import annotations

from typing import Any

from dnsrig.analysis.cpu_shares import shares_of, steal_series
from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

TITLE = "CPU time went to others: steal or contention"
SOURCE = "Linux proc(5), /proc/stat; cgroup v2, cpu.stat"
STEAL_SHARE = 0.05
FOREIGN_SHARE = 0.10
"""Share of the time of `measure`, on one CPU, from which a result is called disturbed."""
SHORTEST_S = 0.5
"""/proc/stat counts in ticks of 10 ms: a shorter `measure` is not judged by shares."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    if record.outcome not in ("done", "timeout"):
        return None
    shares = shares_of(trial, trial.subject)
    if shares is None:
        return cannot_tell(f"No samples of /proc/stat and of the {trial.subject}'s cgroup.")
    span_s, steal, foreign = shares
    others = max(int(moment.get("other_trials_running", 0)) for moment in _around(trial))
    if span_s < SHORTEST_S and not others:
        return cannot_tell(f"A measurement of {span_s:.2f} s is too short to judge by ticks of 10 ms.")
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
        remedy=f"Stop what else runs on {where} (`dnsrig check` names it), or measure on one that is not shared.",
    )


def _around(trial: Trial) -> list[dict[str, Any]]:
    """Conditions of the machine of the server under test, before the trial and after."""
    record, machine = trial.record, trial.record.spec.hosts[trial.subject].machine
    if machine is None:
        return [record.conditions.get(when, {}) for when in ("before", "after")]
    return [record.machines[machine].conditions] if machine in record.machines else [{}]
