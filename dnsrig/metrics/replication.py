"""Times until a far site has received, stored and served the data of a database or a transfer.

All times begin with the first exec at the far site.
"""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.metrics.transfer import transfer_time_s
from dnsrig.runs import replication
from dnsrig.runs.trial import Trial


def _is_of_sites(trial: Trial) -> bool:
    return replication.far_link(trial.record.spec) is not None


def _since_exec_s(trial: Trial, when_ns: int | None) -> float | None:
    if when_ns is None or trial.exec_ns is None or trial.record.outcome not in ("done", "invalid"):
        return None
    return (when_ns - trial.exec_ns) / 1e9


@metric(title="time until received", unit="s", better="lower", order=16)
def received_s(trial: Trial) -> float | None:
    """Time from the first exec at the far site until all bytes arrived over the link between the sites, except the last
    thousandth or 2,000 of them, because keepalives never end. Resolution: 0.1 s on an emulated link, otherwise 0.2 s.
    None without two sites."""
    return _since_exec_s(trial, replication.received_ns(trial)) if _is_of_sites(trial) else None


@metric(title="time until stored", unit="s", better="lower", order=17)
def stored_s(trial: Trial) -> float | None:
    """Time from the first exec at the far site until its database is connected and has all data of the near one, as the
    database reports it. dnsrig asks it every 20 ms; it answers late while it loads. None without a replica: a secondary
    does not report when it has stored its zones."""
    return _since_exec_s(trial, trial.record.instruments.get(replication.REPLICA, {}).get("stored_ns"))


@metric(title="time until served", unit="s", better="lower", order=18)
def served_s(trial: Trial) -> float | None:
    """Time from the first exec at the far site until the last zone is answered with the expected serial, as seen by
    probe: transfer_time_s. None without answers, or without two sites."""
    return transfer_time_s(trial) if _is_of_sites(trial) and "probe" in trial.record.instruments else None


@metric(title="time to publish", unit="s", better="lower", order=92)
def publish_s(trial: Trial) -> float | None:
    """Time from exec of the primary until its database has all zones: before `measure`, and not part of the other
    times. None without a database."""
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
    """Largest anonymous memory of the cgroup of the database at the far site at any sample during `measure`, to within
    0.2 s; no file cache, no kernel memory. None without a replica."""
    return trial.peak(replication.REPLICA, "cgroup", "memory_anonymous_bytes")
