"""CPU and memory of the servers' hosts, from their cgroups, during `measure`."""

from __future__ import annotations

from dnsrig.analysis.metrics import metric
from dnsrig.analysis.read import Trial


def _cpu_s(trial: Trial, host: str) -> float | None:
    grown = trial.growth(host, "cgroup", "cpu_usage_us")
    return None if grown is None else grown / 1e6


@metric(title="CPU time, secondary", unit="s", better="lower", order=20)
def secondary_cpu_s(trial: Trial) -> float | None:
    """CPU time of the secondary's cgroup during `measure`, to within 0.2 s at either end."""
    return _cpu_s(trial, "secondary")


@metric(title="CPU time, primary", unit="s", better="lower", order=21)
def primary_cpu_s(trial: Trial) -> float | None:
    """CPU time of the primary's cgroup during `measure`, to within 0.2 s at either end."""
    return _cpu_s(trial, "primary")


@metric(title="anonymous memory, secondary, peak", unit="B", better="lower", order=22)
def secondary_memory_peak_bytes(trial: Trial) -> float | None:
    """Most anonymous memory of the secondary's cgroup at any sample during `measure`, to within 0.2 s; no file cache, no kernel memory."""
    return trial.peak("secondary", "cgroup", "memory_anonymous_bytes")


@metric(title="anonymous memory, primary, peak", unit="B", better="lower", order=23)
def primary_memory_peak_bytes(trial: Trial) -> float | None:
    """Most anonymous memory of the primary's cgroup at any sample during `measure`, to within 0.2 s; no file cache, no kernel memory."""
    return trial.peak("primary", "cgroup", "memory_anonymous_bytes")


@metric(title="kernel memory, secondary, peak", unit="B", better="lower", order=24)
def secondary_kernel_memory_peak_bytes(trial: Trial) -> float | None:
    """Most kernel memory of the secondary's cgroup (sockets among it) at any sample during `measure`, to within 0.2 s."""
    return trial.peak("secondary", "cgroup", "memory_kernel_bytes")
