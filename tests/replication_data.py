"""A made-up trial of two sites, for tests of what `replication` measures."""

from __future__ import annotations

from pathlib import Path

from trial_data import SECOND, clean_trial, measured

from dnsrig.rundir import HostSpec
from dnsrig.runs.trial import Trial


def replicated(directory: Path) -> Trial:
    """A clean trial, made one of two sites."""
    return between_sites(clean_trial(directory))


def between_sites(trial: Trial) -> Trial:
    """Make ``trial`` that of a secondary that reads from a replica beside it, which was executed half a second before
    it."""
    spec, servers = trial.record.spec, trial.record.servers
    spec.procedure = "replication"
    spec.options = {"carrier": "replica"}
    spec.hosts["database"] = HostSpec(address="198.18.0.3", cpus=[0], role="database")
    spec.hosts["replica"] = HostSpec(
        address="198.18.0.4", cpus=[1], role="database", under_test=True, database="database", database_far=True
    )
    spec.hosts["secondary"].database = "replica"
    start_ns = measured(trial, 60)
    servers["replica"] = servers["secondary"].model_copy(update={"exec_ns": start_ns, "host": "replica"})
    servers["secondary"].exec_ns = start_ns + SECOND // 2
    return trial


def zero_ns(trial: Trial) -> int:
    assert trial.exec_ns is not None
    return trial.exec_ns


def answered(trial: Trial, *, first_s: float, stored_s: float | None, servfail: int) -> None:
    start = zero_ns(trial)
    stored_ns = None if stored_s is None else start + int(stored_s * SECOND)
    trial.record.instruments["replica"] = {"stored_ns": stored_ns}
    trial.record.instruments["probe"] |= {
        "first_answer_ns": start + int(first_s * SECOND),
        "first_seen_ns": start + 6 * SECOND,
        "answers": {"servfail": servfail},
    }
