"""A trial with made-up rows, for tests of traps and metrics."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl
import synthetic
from golden_files import hold

from dnsrig import checks
from dnsrig.rundir import Anchor, Check, LogDrilldown
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps import Conclusion, all_traps

SECOND = 1_000_000_000


def clean_trial(directory: Path, plan: synthetic.Plan | None = None) -> Trial:
    """A synthetic trial of 100 zones on which everything is in order, alone in its run."""
    plan = plan or synthetic.Plan()
    alone = replace(plan, servers=plan.servers[:1], zones=[100], repeats=1)
    (found,) = Run.open(synthetic.build(directory, alone)).trials
    found.record.outcome = "done"
    return found


def judge(trap: str, trial: Trial) -> Conclusion:
    """The conclusion of a trap: its words and numbers are those in unit/golden/traps."""
    conclusion = all_traps()[trap].after(trial)
    assert conclusion is not None
    hold("traps", [trap, fields_of(conclusion)])
    return conclusion


def across(trap: str, run: Run) -> list[tuple[Any, Conclusion]]:
    """The conclusions of a trap about a whole run, compared as `judge` does."""
    found = list(all_traps()[trap].module.across(run))
    hold("traps", [trap, *([variant, fields_of(conclusion)] for variant, conclusion in found)])
    return found


def check(name: str, trial: Trial) -> Check:
    """The verdict of a check: its words and numbers are those in unit/golden/checks."""
    (found,) = checks.look(trial, [name])
    hold("checks", found.model_dump(mode="json", exclude_defaults=True))
    return found


def fields_of(conclusion: Conclusion) -> dict[str, Any]:
    """The fields of a conclusion that are not empty."""
    return {name: value for name, value in asdict(conclusion).items() if value}


def series(start_ns: int, **columns: list[int]) -> pl.DataFrame:
    """Samples a second: ``host__source__metric`` -> values."""
    rows = [
        (*name.replace("link_", "link:").split("__"), start_ns + index * SECOND, value)
        for name, values in columns.items()
        for index, value in enumerate(values)
    ]
    return pl.DataFrame(rows, schema=["host", "source", "metric", "time_ns", "value"], orient="row")


def use(trial: Trial, samples: pl.DataFrame | None = None, seen_s: list[float] | None = None) -> None:
    """Put made-up rows into ``trial``; ``seen_s``: when each zone became ready, from exec."""
    if samples is not None:
        trial.__dict__["samples"] = samples
    if seen_s is not None:
        server = trial.server
        assert server is not None
        seen = [server.exec_ns + int(s * SECOND) for s in seen_s]
        trial.__dict__["zones"] = pl.DataFrame({"seen_ns": seen}, schema={"seen_ns": pl.Int64})


def measured(trial: Trial, seconds: int) -> int:
    """Let `measure` last ``seconds`` from exec on; returns its start."""
    phase, server = trial.measure, trial.server
    assert phase is not None and server is not None
    phase.end = anchor(phase.start, seconds)
    server.exec_ns = phase.start.monotonic_ns
    return phase.start.monotonic_ns


def anchor(first: Anchor, seconds: float, *, set_by_s: float = 0.0, error_ns: int = 200) -> Anchor:
    """A reading ``seconds`` after ``first``, of a clock that was set by ``set_by_s`` in between."""
    return Anchor(
        monotonic_ns=first.monotonic_ns + round(seconds * SECOND),
        realtime_ns=first.realtime_ns + round((seconds + set_by_s) * SECOND),
        error_ns=error_ns,
    )


def log_of(
    trial: Trial, failures: dict[str, int], first_s: float | None = None, resolution_ns: int = 1_000_000
) -> None:
    """Let the secondary's log have these failures, the first of each ``first_s`` after exec."""
    phase, server = trial.measure, trial.server
    assert phase is not None and server is not None
    log = LogDrilldown(zones=100, first_realtime_ns=None, last_realtime_ns=None, resolution_ns=resolution_ns)
    log.failures = {kind: count for kind, count in failures.items() if count}
    log.examples = {kind: f"a line that says {kind}" for kind in log.failures}
    if first_s is not None:
        offset_ns = phase.start.realtime_ns - phase.start.monotonic_ns
        log.first_failure_realtime_ns = dict.fromkeys(
            log.failures, server.exec_ns + offset_ns + round(first_s * SECOND)
        )
    trial.record.logs = {trial.subject: log}
