"""Turns a synthetic run into one of the procedure `transfer-load`, for tests: nothing in it was measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import synthetic

from dnsrig.rundir import HostSpec, Outcome, Scalar
from dnsrig.runs.run import Run

SECOND = 1_000_000_000
POLICIES: list[Scalar] = ["one", "reused", "pipelined"]
RATES = {"one": 100, "reused": 300, "pipelined": 900}


def summary(done: int = 100, *, elapsed_s: float = 1.0, **changes: Any) -> dict[str, Any]:
    """The last event of the instrument `transfer`, which took ``done`` zones over one connection."""
    made: dict[str, Any] = {
        "event": "summary",
        "transport": "tcp",
        "start_ns": 5_000 * SECOND,
        "end_ns": 5_000 * SECOND + round(elapsed_s * SECOND),
        "elapsed_ns": round(elapsed_s * SECOND),
        "zones": done,
        "done": done,
        "up_to_date": 0,
        "failed": 0,
        "outcomes": {"done": done},
        "retries": 0,
        "records": 4 * done,
        "bytes": 400 * done,
        "transfer_ns": {"mean": 2e6, "p50": 1_500_000, "p99": 9_000_000},
        "connections": {"attempted": 1, "established": 1, "full_handshakes": 0, "resumed": 0},
        "cpu_ns": 20_000 * done,
        "busy_share": 0.3,
        "rows_lost": 0,
    }
    return {**made, **changes}


def transfer_load_run(directory: Path, outcomes: Mapping[str, Outcome] | None = None) -> Run:
    """Two servers × three policies × three repeats; ``outcomes``: by policy, where it is not `done`."""
    plan = synthetic.Plan(zones=[100], extra_axes={"policy": POLICIES}, subject="primary", baseline={"policy": "one"})
    run = Run.open(synthetic.build(directory, plan))
    run.manifest.procedure = "transfer-load"
    for spec in run.manifest.specs.values():
        spec.procedure, spec.main_metric = "transfer-load", "zones_per_s"
    for trial in run.trials:
        record = trial.record
        record.spec.procedure, record.spec.main_metric = "transfer-load", "zones_per_s"
        record.spec.hosts["client"] = HostSpec(address="198.18.0.2", cpus=[0])
        policy = str(record.spec.variant.parameters["policy"])
        record.outcome = (outcomes or {}).get(policy, "done")
        rate = RATES[policy] + record.spec.repeat
        record.instruments = {"transfer": summary(100, elapsed_s=100 / rate)}
        record.metrics = {}
    return run
