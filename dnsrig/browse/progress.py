"""A run in progress, as its directory tells: nothing but files is asked, so a page survives a reload and the run does
not notice."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dnsrig import files
from dnsrig.comparison.summary import describe
from dnsrig.report import figures
from dnsrig.report.wording import of_trial
from dnsrig.rundir import TrialKey, trial_dir
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

LAST = 12
"""Results that are shown."""
LOCKS = Path("/proc/locks")


@dataclass(frozen=True)
class Now:
    """A trial that is being executed."""

    key: TrialKey
    label: str
    since_s: float


@dataclass(frozen=True)
class Progress:
    planned: int
    finished: int
    executing: bool
    """Whether a process holds the run; of one on another machine that is not known."""
    now: list[Now]
    left_s: float | None
    """About, by the trials before; None of a run that is not executing, or with no trial before."""
    last: list[Trial]
    """Finished trials, the last first."""
    not_done: dict[str, int]
    """Outcome -> trials, of those that are not `done`."""
    aborted: list[str]
    """Trials that failed by a fault of dnsrig or of the machine; each is tried again when the run is resumed."""

    @property
    def complete(self) -> bool:
        return self.finished >= self.planned


def progress(run: Run, finished_at: Sequence[float], now_s: float, executing: bool) -> Progress:
    """``finished_at``: when each trial of ``run`` was finished, in its order; times are by the wall clock."""
    labels = {variant.id: variant.label for variant in run.manifest.variants}
    running = [
        Now(key, labels.get(key.variant, key.variant), max(0.0, now_s - began))
        for key in run.manifest.order
        if (began := _running_since(run.directory, key)) is not None
    ]
    ordered = [trial for _, trial in sorted(zip(finished_at, run.trials), key=lambda pair: pair[0], reverse=True)]
    planned, finished = len(run.manifest.order), len(run.trials) + len(run.unreadable)
    outcomes = [trial.record.outcome for trial in run.trials if trial.record.outcome != "done"]
    return Progress(
        planned=planned,
        finished=finished,
        executing=executing,
        now=running if executing else [],
        left_s=_left_s(finished_at, planned - finished, running, at_once=max(1, len(running))) if executing else None,
        last=ordered[:LAST],
        not_done={outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)},
        aborted=[f"{labels.get(k.variant, k.variant)} repeat {k.repeat}" for k in _aborted(run)],
    )


def _left_s(finished_at: Sequence[float], left: int, running: Sequence[Now], at_once: int) -> float | None:
    """By the median distance between the ends of trials: setup and all between two trials is in it."""
    ends = sorted(finished_at)
    apart = [late - early for early, late in itertools.pairwise(ends)]
    if not apart or left <= 0:
        return None
    each = median(apart)
    spent = min(each, max((now.since_s for now in running), default=0.0) / at_once)
    return max(0.0, left * each - spent)


def read(run: Run) -> Progress:
    """Of ``run`` as it is now."""
    finished_at = [_modified(trial.directory / "trial.json") for trial in run.trials]
    return progress(run, finished_at, time.time(), is_executing(run.directory))


def is_executing(directory: Path, locks: Path = LOCKS) -> bool:
    """Whether a process on this machine holds the run's lock. It is looked up (proc_locks(5)) and never taken: who
    wants to execute the run must find it free."""
    try:
        held, told = (directory / ".lock").lstat(), locks.read_text()
    except OSError:
        return False
    file = f"{os.major(held.st_dev):02x}:{os.minor(held.st_dev):02x}:{held.st_ino}"
    return any(file in line.split() and "->" not in line for line in told.splitlines())


def _running_since(directory: Path, key: TrialKey) -> float | None:
    target = trial_dir(directory, key.variant, key.repeat)
    working = target.with_name(f"{target.name}.running")
    if (target / "trial.json").exists() or not working.is_dir():
        return None
    inside = files.names(working, directory)[:50]
    return min(_modified(path) for path in (working, *(working / name for name in inside)))


def _aborted(run: Run) -> list[TrialKey]:
    return [
        key
        for key in run.manifest.order
        if (target := trial_dir(run.directory, key.variant, key.repeat)).with_name(f"{target.name}.aborted").is_dir()
        and not (target / "trial.json").exists()
    ]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def as_json(found: Progress, address: str) -> dict[str, Any]:
    """For a page; texts are made visible, and whoever shows them takes them as text."""
    return {
        "planned": found.planned,
        "finished": found.finished,
        "complete": found.complete,
        "executing": found.executing,
        "left": "" if found.left_s is None else duration(found.left_s),
        "now": [
            {"what": figures.visible(f"{n.label}, repeat {n.key.repeat}"), "since": duration(n.since_s)}
            for n in found.now
        ],
        "last": [_result(trial, address) for trial in found.last],
        "not_done": found.not_done,
        "aborted": [figures.visible(text) for text in found.aborted],
    }


def _result(trial: Trial, address: str) -> dict[str, str]:
    spec = trial.record.spec
    return {
        "what": figures.visible(f"{spec.variant.label}, repeat {spec.repeat}"),
        "where": f"{address}/{spec.variant.id}/{spec.repeat}",
        "outcome": trial.record.outcome,
        "result": figures.visible(of_trial(trial, describe(spec.main_metric))),
        "reason": figures.visible(trial.record.reason),
    }


def duration(seconds: float) -> str:
    """``42 s``, ``3 min``, ``1 h 05 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
