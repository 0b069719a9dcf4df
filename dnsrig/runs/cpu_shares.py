"""Who had the CPUs of a host while it was measured: itself, the hypervisor, other programs."""

from __future__ import annotations

from dnsrig.runs.trial import Trial


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


def steal_series(trial: Trial, host: str) -> tuple[str, ...]:
    """Of the CPUs of ``host``."""
    spec = trial.record.spec
    return tuple(f"{spec.whole_machine(host)}/cpu{cpu}/steal_us" for cpu in spec.hosts[host].cpus)
