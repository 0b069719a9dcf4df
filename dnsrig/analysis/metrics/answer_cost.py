"""What an answer costs the server under test: CPU time, context switches and page faults during `measure`, divided by
the queries that were answered. None of a ramp, which sends at many rates."""

from __future__ import annotations

from dnsrig.analysis.costs import an_answer
from dnsrig.analysis.metrics import metric
from dnsrig.analysis.read import Trial


@metric(title="user CPU time an answer", unit="µs", better="lower", order=26)
def user_cpu_an_answer_us(trial: Trial) -> float | None:
    """CPU time in user mode of the cgroup of the server under test during `measure`, to within 0.2 s at either end,
    divided by the queries answered."""
    return an_answer(trial, "user_cpu_us")


@metric(title="kernel CPU time an answer", unit="µs", better="lower", order=27)
def kernel_cpu_an_answer_us(trial: Trial) -> float | None:
    """The same in the kernel: system calls, page faults, and the work on packets that the server's threads do there."""
    return an_answer(trial, "kernel_cpu_us")


@metric(title="voluntary context switches an answer", unit="", better="neither", order=28)
def voluntary_switches_an_answer(trial: Trial) -> float | None:
    """How often a thread of the server under test left its CPU because it had to wait (for a query, a lock, a disk),
    divided by the queries answered; from just before `measure` to just after, of the threads that are there at its
    end."""
    return an_answer(trial, "voluntary_switches")


@metric(title="involuntary context switches an answer", unit="", better="neither", order=29)
def involuntary_switches_an_answer(trial: Trial) -> float | None:
    """How often a thread of the server under test lost its CPU to another one, counted and divided likewise."""
    return an_answer(trial, "involuntary_switches")


@metric(title="page faults an answer", unit="", better="neither", order=29)
def page_faults_an_answer(trial: Trial) -> float | None:
    """How often the server under test touched memory that it had no page of, minor and major faults together, counted
    and divided likewise."""
    return an_answer(trial, "minor_faults", "major_faults")
