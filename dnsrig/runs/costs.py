"""What a trial cost the server under test: CPU time of its cgroup, context switches and page faults of its processes.

System calls are not among them: Linux counts those only for a tracer, which makes each of them slower. The time that
they take is kernel CPU time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dnsrig.rundir import ProcessCounts
from dnsrig.runs.trial import Trial


@dataclass(frozen=True)
class Cost:
    """Counted from the beginning of `measure` to its end."""

    name: str
    title: str
    unit: str
    of: Callable[[Trial], float | None]
    """None where it was not recorded."""


def counts(trial: Trial) -> ProcessCounts | None:
    """Of the processes of the server under test."""
    return trial.record.counts.get(trial.subject)


def _counted(name: str) -> Callable[[Trial], float | None]:
    return lambda trial: None if (found := counts(trial)) is None else float(getattr(found, name))


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


def answers(trial: Trial) -> int:
    """Queries answered, by which costs can be divided; 0 where nothing was asked, or at many rates, as by a ramp."""
    return trial.load.answered if trial.load.has_latencies else 0


def an_answer(trial: Trial, *names: str) -> float | None:
    """The sum of these costs, divided by the queries answered; None where one is missing, or nothing was answered."""
    found = [COSTS[name].of(trial) for name in names]
    known = [amount for amount in found if amount is not None]
    return sum(known) / answers(trial) if len(known) == len(found) and answers(trial) else None
