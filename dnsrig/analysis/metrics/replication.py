"""What a database or a transfer brought to a far site, and when: received, stored, served.

All from the first exec at the far site.
"""

from __future__ import annotations

from dnsrig.analysis import replication
from dnsrig.analysis.metrics import metric
from dnsrig.analysis.metrics.transfer import transfer_time_s
from dnsrig.analysis.read import Trial


def _is_of_sites(trial: Trial) -> bool:
    return replication.far_link(trial.record.spec) is not None


def _since_exec_s(trial: Trial, when_ns: int | None) -> float | None:
    if when_ns is None or trial.exec_ns is None or trial.record.outcome not in ("done", "invalid"):
        return None
    return (when_ns - trial.exec_ns) / 1e9


@metric(title="time until received", unit="s", better="lower", order=16)
def received_s(trial: Trial) -> float | None:
    """From the first exec at the far site to all bytes that came over the link between the sites, but the last
    thousandth or 2,000 of them: signs of life never end. Known to the interval of their count: 0.1 s on an emulated
    link, else 0.2 s. None where there are no two sites."""
    return _since_exec_s(trial, replication.received_ns(trial)) if _is_of_sites(trial) else None


@metric(title="time until stored", unit="s", better="lower", order=17)
def stored_s(trial: Trial) -> float | None:
    """From the first exec at the far site to its database being connected and having all that the near one had, as the
    database says; it is asked every 20 ms, and answers late while it loads. None without a replica: a secondary does
    not say when it has stored."""
    return _since_exec_s(trial, trial.record.instruments.get(replication.REPLICA, {}).get("stored_ns"))


@metric(title="time until served", unit="s", better="lower", order=18)
def served_s(trial: Trial) -> float | None:
    """From the first exec at the far site to the last zone answered with the expected serial, as seen by probe:
    transfer_time_s. None where nothing answers, and where there are no two sites."""
    return transfer_time_s(trial) if _is_of_sites(trial) and "probe" in trial.record.instruments else None


@metric(title="time to publish", unit="s", better="lower", order=92)
def publish_s(trial: Trial) -> float | None:
    """From exec of the primary to its database having all zones: before `measure`, and no part of the other times. None
    without a database."""
    told, primary = trial.record.instruments.get(replication.DATABASE, {}), trial.record.servers.get("primary")
    return None if primary is None or "filled_ns" not in told else (told["filled_ns"] - primary.exec_ns) / 1e9


@metric(title="CPU time, replica", unit="s", better="lower", order=93)
def replica_cpu_s(trial: Trial) -> float | None:
    """CPU time of the cgroup of the database at the far site during `measure`, to within 0.2 s at either end. None
    without a replica."""
    grown_us = trial.growth(replication.REPLICA, "cgroup", "cpu_usage_us")
    return None if grown_us is None else grown_us / 1e6


@metric(title="anonymous memory, replica, peak", unit="B", better="lower", order=94)
def replica_memory_peak_bytes(trial: Trial) -> float | None:
    """Most anonymous memory of the cgroup of the database at the far site at any sample during `measure`, to within 0.2
    s; no file cache, no kernel memory. None without a replica."""
    return trial.peak(replication.REPLICA, "cgroup", "memory_anonymous_bytes")
