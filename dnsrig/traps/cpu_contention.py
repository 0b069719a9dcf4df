"""Something else ran on the CPUs of the server under test, or the hypervisor took them away.

Steal is time in which a virtual CPU was ready but not run. Contention is CPU time that neither the server's cgroup nor
the kernel's interrupt work accounts for: some other program on the same CPU.
"""

from __future__ import annotations

from typing import Any

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


def steal_series(trial: Trial, host: str) -> tuple[str, ...]:
    """Of the CPUs of ``host``."""
    spec = trial.record.spec
    return tuple(f"{spec.whole_machine(host)}/cpu{cpu}/steal_us" for cpu in spec.hosts[host].cpus)


def shares_of(trial: Trial, host: str) -> tuple[float, float, float] | None:
    """(seconds, share of steal, share of other programs) over `measure`, for the CPUs of ``host``."""
    spec = trial.record.spec
    cpus, machine = spec.hosts[host].cpus, spec.whole_machine(host)
    usage = trial.during_measure(host, "cgroup", "cpu_usage_us")
    if usage.height < 2:
        return None
    span_us = float(usage["time_ns"][-1] - usage["time_ns"][0]) / 1000
    own_us = float(usage["value"][-1] - usage["value"][0])
    steal_us, programs_us = 0.0, 0.0
    for cpu in cpus:
        grown = {n: trial.growth(machine, f"cpu{cpu}", n) for n in ("user_us", "nice_us", "system_us", "steal_us")}
        if any(value is None for value in grown.values()):
            return None
        steal_us += grown["steal_us"] or 0.0
        programs_us += sum(value or 0.0 for name, value in grown.items() if name != "steal_us")
    whole_us = span_us * len(cpus)
    foreign_us = max(0.0, programs_us - own_us - _other_hosts_us(trial, host))
    return span_us / 1e6, steal_us / whole_us, foreign_us / whole_us


def _other_hosts_us(trial: Trial, host: str) -> float:
    """CPU time of other hosts that share the CPUs of ``host`` by the experiment's own will."""
    hosts = trial.record.spec.hosts
    here = [name for name, other in hosts.items() if name != host and other.machine == hosts[host].machine]
    shared = [name for name in here if set(hosts[name].cpus) & set(hosts[host].cpus)]
    return sum(trial.growth(name, "cgroup", "cpu_usage_us") or 0.0 for name in shared)
