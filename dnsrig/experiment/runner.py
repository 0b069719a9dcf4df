"""Executes a plan: each trial as a child process, in the planned order, skipping what is finished."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import dnsrig
from dnsrig import cached, datasets, paths, streams
from dnsrig.analysis.read import Trial
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import children
from dnsrig.experiment.children import Child
from dnsrig.experiment.executors import executor
from dnsrig.experiment.preparation import own_cpus
from dnsrig.lab import conditions
from dnsrig.rundir import OBSERVER, Manifest, TrialKey, TrialSpec, resume_command, trial_dir, write_json
from dnsrig.servers import sources

ERRORS_IN_A_ROW = 3
DISK_FREE_WANTED_BYTES = 1 << 30


class Progress(Protocol):
    """Who watches a run. All methods are called in the thread that runs."""

    def note(self, text: str) -> None: ...

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None: ...

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None: ...

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None: ...


def check_folders(runs: Path) -> None:
    """Refuse, before anything is made, folders of which each trial would fail."""
    for folder in (runs, paths.cache()):
        paths.check_for_servers(folder.resolve())


def create(manifest: Manifest, runs: Path) -> Path:
    """The run's directory, with its manifest in it."""
    check_folders(runs)
    runs.mkdir(parents=True, exist_ok=True)
    _check_disk(runs, "then start it again")
    directory = runs / manifest.run
    directory.mkdir(parents=True)
    write_json(directory / "manifest.json", manifest)
    return directory


def check_unchanged(manifest: Manifest) -> None:
    """Refuse to resume where a result would mix two machines, versions or datasets."""
    now = conditions.snapshot()
    changed = [key for key in ("boot_id", "kernel", "cpu_model", "cpus") if manifest.conditions.get(key) != now[key]]
    if changed:
        what = "the machine was restarted" if changed == ["boot_id"] else f"the machine changed ({', '.join(changed)})"
        raise _not_resumable(manifest, what)
    if manifest.dnsrig_version != dnsrig.__version__:
        raise _not_resumable(manifest, f"dnsrig was {manifest.dnsrig_version} and is {dnsrig.__version__}")
    if manifest.engine_fingerprint != sources.fingerprint(paths.engine()):
        raise _not_resumable(manifest, "the engine was built anew")
    for server in manifest.servers.values():
        if not sources.unchanged(server):
            raise _not_resumable(manifest, f"{server.label} is no longer what it was")
    for kernel in {spec.kernel for spec in manifest.specs.values()}:
        if why := executor(kernel).changed(manifest.conditions):
            raise _not_resumable(manifest, why)
    for spec in manifest.specs.values():
        for dataset in filter(None, (spec.dataset, spec.next_dataset)):
            if not datasets.facts(datasets.folder(dataset.key)):
                raise _not_resumable(manifest, f"the dataset {dataset.key} is gone")
        if spec.stream is not None and not streams.facts(spec.stream.key):
            raise _not_resumable(manifest, f"the stream {spec.stream.key} is gone")


def _not_resumable(manifest: Manifest, why: str) -> DnsrigError:
    return DnsrigError(
        f"this run cannot be resumed: {why} since it began",
        hint=f"its finished trials stay as they are; start anew with `dnsrig run {manifest.experiment} --scale {manifest.scale}`",
    )


def missing(manifest: Manifest, directory: Path) -> list[TrialKey]:
    return [k for k in manifest.order if not (trial_dir(directory, k.variant, k.repeat) / "trial.json").exists()]


def check_at_once(manifest: Manifest, at_once: int) -> None:
    """Refuse trials at once that would measure each other: each needs a kernel and a CPU of its own."""
    if at_once == 1:
        return
    if not _apart(manifest):
        raise UsageError(
            f"--at-once {at_once}: trials under the running kernel would measure each other",
            hint="it is for experiments under User-mode Linux: --set kernel=uml",
        )
    if at_once > len(own_cpus()):
        raise UsageError(
            f"--at-once {at_once}: each needs a CPU of its own, and there are {len(own_cpus())}",
            hint=f"--at-once {len(own_cpus())} at most",
        )


def execute(manifest: Manifest, directory: Path, progress: Progress, *, at_once: int = 1) -> int:
    """Run every trial that is not finished, ``at_once`` at a time. Returns how many failed by our own fault."""
    check_at_once(manifest, at_once)
    with cached.only_one(directory, "somebody else is executing this run already"), _own_cpus_kept():
        return _execute(manifest, directory, progress, _lanes(manifest, at_once))


def _lanes(manifest: Manifest, at_once: int) -> list[int | None]:
    """For each trial that may run at once: its own CPU, or None where hosts have the CPUs of their specs."""
    return [*own_cpus()[-at_once:]] if _apart(manifest) else [None]


def _apart(manifest: Manifest) -> bool:
    return all(executor(spec.kernel).APART for spec in manifest.specs.values())


def _execute(manifest: Manifest, directory: Path, progress: Progress, free: list[int | None]) -> int:
    """``free``: the lanes of `_lanes`."""
    todo = missing(manifest, directory)
    waiting = deque(enumerate(todo, start=1 + len(manifest.order) - len(todo)))
    running: list[Child] = []
    events: children.Events = queue.SimpleQueue()
    errors = in_a_row = 0
    try:
        while waiting or running:
            while waiting and free:
                number, key = waiting.popleft()
                running.append(_start(manifest, directory, progress, number, key, events, free.pop()))
            child, event = events.get()
            if event is not None:
                progress.trial_event(child.spec, event)
                continue
            running.remove(child)
            free.append(child.cpu)
            record, reason = child.result()
            progress.trial_ended(child.spec, Trial(child.target, record) if record else None, reason)
            errors += record is None
            in_a_row = in_a_row + 1 if record is None else 0
            if in_a_row == ERRORS_IN_A_ROW:
                raise _too_many(directory, in_a_row, reason)
    finally:
        for child in running:
            child.end()
    return errors


def _start(
    manifest: Manifest,
    directory: Path,
    progress: Progress,
    number: int,
    key: TrialKey,
    events: children.Events,
    cpu: int | None,
) -> Child:
    """Start trial ``number`` of the run."""
    spec = manifest.specs[key.variant].model_copy(update={"repeat": key.repeat})
    _check_disk(directory, f"then `{resume_command(directory)}`")
    if cpu is None:
        _move_to(set(spec.hosts[OBSERVER].cpus))
    progress.trial_started(number, len(manifest.order), spec)
    return Child(spec, trial_dir(directory, key.variant, key.repeat), events, cpu)


def _too_many(directory: Path, in_a_row: int, reason: str) -> DnsrigError:
    return DnsrigError(
        f"{in_a_row} trials in a row failed: {reason}",
        hint=f"their logs are kept as *.aborted under {directory}/trials; then `{resume_command(directory)}`",
    )


@contextlib.contextmanager
def _own_cpus_kept() -> Iterator[None]:
    """Afterwards the process may run where it might before."""
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        _move_to(before)


def _move_to(cpus: set[int]) -> None:
    """Drawing progress must not take time of a server under test, so all threads leave its CPUs."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it may have ended, or the machine may have fewer CPUs
            os.sched_setaffinity(int(thread.name), cpus)


def _check_disk(directory: Path, then: str) -> None:
    free = shutil.disk_usage(directory).free
    if free < DISK_FREE_WANTED_BYTES:
        raise DnsrigError(
            f"the disk is nearly full: {free / 1e6:,.0f} MB free where {directory} lies, {DISK_FREE_WANTED_BYTES / 1e6:,.0f} MB wanted",
            hint=f"free some space, {then}",
        )
