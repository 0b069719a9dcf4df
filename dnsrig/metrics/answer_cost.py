"""Cost of an answer for the server under test: CPU time, context switches and page faults during `measure`, divided by
the number of answered queries. A ramp has no such value, because it sends at many rates."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.cpu import an_answer
from dnsrig.runs.trial import Trial


@metric(title="user CPU time per answer", unit="µs", better="lower", order=26)
def user_cpu_an_answer_us(trial: Trial) -> float | None:
    """CPU time in user mode of the cgroup of the server under test during `measure`, to within 0.2 s at either end,
    divided by the number of answered queries."""
    return an_answer(trial, "user_cpu_us")


@metric(title="kernel CPU time per answer", unit="µs", better="lower", order=27)
def kernel_cpu_an_answer_us(trial: Trial) -> float | None:
    """CPU time in the kernel of the cgroup of the server under test during `measure`, to within 0.2 s at either end,
    divided by the number of answered queries: system calls, page faults, and work on packets by the server's
    threads."""
    return an_answer(trial, "kernel_cpu_us")


@metric(title="voluntary context switches per answer", unit="", better="neither", order=28)
def voluntary_switches_an_answer(trial: Trial) -> float | None:
    """Number of times that a thread of the server under test left its CPU to wait (for a query, a lock, a disk),
    divided by the number of answered queries; from just before `measure` to just after it, for threads that exist at
    its end."""
    return an_answer(trial, "voluntary_switches")


@metric(title="involuntary context switches per answer", unit="", better="neither", order=29)
def involuntary_switches_an_answer(trial: Trial) -> float | None:
    """Number of times that a thread of the server under test lost its CPU to another one, divided by the number of
    answered queries; from just before `measure` to just after it, for threads that exist at its end."""
    return an_answer(trial, "involuntary_switches")


@metric(title="page faults per answer", unit="", better="neither", order=29)
def page_faults_an_answer(trial: Trial) -> float | None:
    """Number of page faults of the server under test, minor and major together, divided by the number of answered
    queries; from just before `measure` to just after it."""
    return an_answer(trial, "minor_faults", "major_faults")
