"""What a trial cost the server under test, and who else used the CPUs of its hosts.

System calls are not among the costs: Linux counts them only for a tracer, which makes each of them slower. The time
that they take is kernel CPU time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dnsrig.rundir import ProcessCounts
from dnsrig.runs.trial import Trial

FOREIGN_SHARE = 0.15
"""Share of the time of a CPU, taken by other programs, from which a result counts as disturbed. Interrupts count as
other programs if they come while the CPU is idle: up to 0.099 in 143 trials on an idle machine."""


def shares_of(trial: Trial, host: str) -> tuple[float, float, float] | None:
    """(seconds, share of steal, share of other programs) over `measure`, for the CPUs of ``host``.

    The time that a CPU was busy is what it was not idle. Linux notes the moments at which a CPU becomes idle and busy
    (kernel/time/tick-sched.c), but usually charges the user and system time of /proc/stat to whatever runs at a tick,
    250 times a second. A generator that wakes in step with the tick makes this wrong: it was 0.55 more and 0.54 less
    than the CPU time of the server's cgroup, which is exact, in 78 trials on an idle machine.
    """
    spec = trial.record.spec
    cpus, machine = spec.hosts[host].cpus, spec.whole_machine(host)
    usage = trial.during_measure(host, "cgroup", "cpu_usage_us")
    if usage.height < 2:
        return None
    span_us = float(usage["time_ns"][-1] - usage["time_ns"][0]) / 1000
    own_us = float(usage["value"][-1] - usage["value"][0])
    steal_us, idle_us = 0.0, 0.0
    for cpu in cpus:
        grown = {name: trial.growth(machine, f"cpu{cpu}", name) for name in ("idle_us", "iowait_us", "steal_us")}
        if any(value is None for value in grown.values()):
            return None
        steal_us += grown["steal_us"] or 0.0
        idle_us += (grown["idle_us"] or 0.0) + (grown["iowait_us"] or 0.0)
    whole_us = span_us * len(cpus)
    foreign_us = max(0.0, whole_us - idle_us - steal_us - own_us - _other_hosts_us(trial, host))
    return span_us / 1e6, steal_us / whole_us, foreign_us / whole_us


def busy_share(trial: Trial, host: str) -> float | None:
    """Share of the time of its CPUs that the programs of ``host`` used in `measure`; None without samples."""
    usage = trial.during_measure(host, "cgroup", "cpu_usage_us")
    if usage.height < 2:
        return None
    span_us = float(usage["time_ns"][-1] - usage["time_ns"][0]) / 1000
    used_us = float(usage["value"][-1] - usage["value"][0])
    return used_us / (span_us * len(trial.record.spec.hosts[host].cpus))


def _other_hosts_us(trial: Trial, host: str) -> float:
    """CPU time of other hosts that share the CPUs of ``host`` by the experiment's own will."""
    hosts = trial.record.spec.hosts
    here = [name for name, other in hosts.items() if name != host and other.machine == hosts[host].machine]
    shared = [name for name in here if set(hosts[name].cpus) & set(hosts[host].cpus)]
    return sum(trial.growth(name, "cgroup", "cpu_usage_us") or 0.0 for name in shared)


def steal_series(trial: Trial, host: str) -> tuple[str, ...]:
    """Names of the series with the stolen time of the CPUs of ``host``."""
    spec = trial.record.spec
    return tuple(f"{spec.whole_machine(host)}/cpu{cpu}/steal_us" for cpu in spec.hosts[host].cpus)


@dataclass(frozen=True)
class Cost:
    """Counted from the beginning of `measure` to its end."""

    name: str
    title: str
    unit: str
    of: Callable[[Trial], float | None]
    """None where it was not recorded."""


def process_counts(trial: Trial) -> ProcessCounts | None:
    """Counts of the processes of the server under test."""
    return trial.record.counts.get(trial.subject)


def _counted(name: str) -> Callable[[Trial], float | None]:
    return lambda trial: None if (found := process_counts(trial)) is None else float(getattr(found, name))


def _cpu_us(name: str) -> Callable[[Trial], float | None]:
    return lambda trial: trial.growth(trial.subject, "cgroup", name)


COSTS = {
    cost.name: cost
    for cost in (
        Cost("user_cpu_us", "CPU time in user mode", "µs", _cpu_us("cpu_user_us")),
        Cost("kernel_cpu_us", "CPU time in the kernel", "µs", _cpu_us("cpu_system_us")),
        Cost("voluntary_switches", "voluntary context switches", "", _counted("voluntary_switches")),
        Cost("involuntary_switches", "involuntary context switches", "", _counted("involuntary_switches")),
        Cost("minor_faults", "minor page faults", "", _counted("minor_faults")),
        Cost("major_faults", "major page faults", "", _counted("major_faults")),
    )
}
"""The most telling first."""


def answered(trial: Trial) -> int:
    """Queries answered, by which costs can be divided; 0 where nothing was asked, or at many rates, as by a ramp."""
    return trial.load.answered if trial.load.has_latencies else 0


def an_answer(trial: Trial, *names: str) -> float | None:
    """The sum of these costs, divided by the queries answered; None where one is missing, or nothing was answered."""
    found = [COSTS[name].of(trial) for name in names]
    known = [amount for amount in found if amount is not None]
    return sum(known) / answered(trial) if len(known) == len(found) and answered(trial) else None
