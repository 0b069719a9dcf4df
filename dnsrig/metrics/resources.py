"""CPU, memory and waiting of the servers' hosts, from their cgroups, during `measure`.

With several primaries, the primary's figures are sums.
"""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.cpu import an_answer
from dnsrig.runs.trial import Trial, total


def _cpu_s(trial: Trial, role: str) -> float | None:
    grown_us = total(trial.growth(host, "cgroup", "cpu_usage_us") for host in trial.hosts_as(role))
    return None if grown_us is None else grown_us / 1e6


def _peak(trial: Trial, role: str, name: str) -> float | None:
    return total(trial.peak(host, "cgroup", name) for host in trial.hosts_as(role))


@metric(title="CPU time, secondary", unit="s", better="lower", order=20)
def secondary_cpu_s(trial: Trial) -> float | None:
    """CPU time of the secondary's cgroup during `measure`, to within 0.2 s at either end."""
    return _cpu_s(trial, "secondary")


@metric(title="CPU time, primary", unit="s", better="lower", order=21)
def primary_cpu_s(trial: Trial) -> float | None:
    """CPU time of the primary's cgroup (of all primaries') during `measure`, to within 0.2 s at either end."""
    return _cpu_s(trial, "primary")


@metric(title="CPU time, resolver", unit="s", better="lower", order=21)
def resolver_cpu_s(trial: Trial) -> float | None:
    """CPU time of the resolver's cgroup during `measure`, to within 0.2 s at either end."""
    return _cpu_s(trial, "resolver")


@metric(title="CPU time per query", unit="µs", better="lower", order=21)
def cpu_a_query_us(trial: Trial) -> float | None:
    """CPU time of the cgroup of the server under test during `measure`, to within 0.2 s at either end, divided by the
    queries sent to it. None for a ramp, which sends at many rates."""
    grown_us = trial.growth(trial.subject, "cgroup", "cpu_usage_us")
    if grown_us is None or not trial.load.has_latencies or not trial.load.sent:
        return None
    return grown_us / trial.load.sent


@metric(title="anonymous memory, secondary, peak", unit="B", better="lower", order=22)
def secondary_memory_peak_bytes(trial: Trial) -> float | None:
    """Most anonymous memory of the secondary's cgroup at any sample during `measure`, to within 0.2 s; no file cache,
    no kernel memory."""
    return _peak(trial, "secondary", "memory_anonymous_bytes")


@metric(title="anonymous memory, primary, peak", unit="B", better="lower", order=23)
def primary_memory_peak_bytes(trial: Trial) -> float | None:
    """Most anonymous memory of the primary's cgroup (the sum of all primaries' peaks) at any sample during `measure`,
    to within 0.2 s; no file cache, no kernel memory."""
    return _peak(trial, "primary", "memory_anonymous_bytes")


@metric(title="anonymous memory, resolver, peak", unit="B", better="lower", order=23)
def resolver_memory_peak_bytes(trial: Trial) -> float | None:
    """Most anonymous memory of the resolver's cgroup at any sample during `measure`, to within 0.2 s; no file cache, no
    kernel memory."""
    return _peak(trial, "resolver", "memory_anonymous_bytes")


@metric(title="kernel memory, secondary, peak", unit="B", better="lower", order=24)
def secondary_kernel_memory_peak_bytes(trial: Trial) -> float | None:
    """Most kernel memory of the secondary's cgroup (sockets among it) at any sample during `measure`, to within 0.2
    s."""
    return _peak(trial, "secondary", "memory_kernel_bytes")


@metric(title="waiting for I/O", unit="s", better="lower", order=25)
def io_wait_s(trial: Trial) -> float | None:
    """Time in which at least one task of the cgroup under test waited for I/O (PSI, `some` of io.pressure) during
    `measure`, to within 0.2 s at either end."""
    grown_us = trial.growth(trial.subject, "psi", "io_some_us")
    return None if grown_us is None else grown_us / 1e6


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
