"""Executes a manifest: each trial as a child process, in its order, without the finished trials."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import dnsrig
from dnsrig import cached, datasets, interruption, paths, query_files, streams
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import children
from dnsrig.experiment.children import Child, Running
from dnsrig.experiment.executors import executor
from dnsrig.experiment.forks import Forks
from dnsrig.experiment.preparation import Where, here, own_cpus
from dnsrig.lab import conditions
from dnsrig.lab.process import move_to
from dnsrig.rundir import OBSERVER, Manifest, TrialKey, TrialSpec, resume_command, trial_dir, write_json
from dnsrig.runs.trial import Trial
from dnsrig.servers import sources

ERRORS_IN_A_ROW = 3
DISK_FREE_WANTED_BYTES = 1 << 30


class Lane(Protocol):
    """A place that executes one trial at a time."""

    def takes(self, key: TrialKey) -> bool:
        """Whether this trial belongs here."""

    def start(self, spec: TrialSpec, target: Path, events: children.Events) -> Running: ...


class Here:
    """This machine. ``lock``: lock of the run (`dnsrig.cached`); ``cpu``: the only CPU that a trial may use."""

    def __init__(self, forks: Forks, lock: int, cpu: int | None) -> None:
        self._forks, self._lock, self._cpu = forks, lock, cpu

    def takes(self, key: TrialKey) -> bool:
        return True

    def start(self, spec: TrialSpec, target: Path, events: children.Events) -> Running:
        if self._cpu is None:
            # Drawing progress must not take time of a server under test.
            move_to(set(spec.hosts[OBSERVER].cpus))
        return Child(spec, target, events, self._lock, partial(self._forks.start, cpu=self._cpu))


class Progress(Protocol):
    """An observer of a run. The thread that executes the run calls all methods."""

    def note(self, text: str) -> None: ...

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        """``number``: position of the trial among all started and finished trials."""

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None: ...

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None: ...


def check_folders(runs: Path) -> None:
    """Refuse folders in which every trial would fail, before anything is made."""
    for folder in (runs, paths.cache()):
        paths.check_for_servers(folder.resolve())


def create(manifest: Manifest, runs: Path) -> Path:
    """Make the directory of a run, with its manifest."""
    check_folders(runs)
    runs.mkdir(parents=True, exist_ok=True)
    _check_disk(runs, "then start it again")
    directory = runs / manifest.run
    directory.mkdir(parents=True)
    write_json(directory / "manifest.json", manifest)
    return directory


def check_unchanged(manifest: Manifest) -> None:
    """Refuse to resume if the results would mix two machines, versions or datasets."""
    if manifest.machines:
        raise UsageError("the trials of this run execute on several machines", hint="name them: --on MACHINES")
    check_machine(manifest, "the machine", manifest.conditions, conditions.snapshot())
    check_material(manifest)


def check_machine(manifest: Manifest, which: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a machine whose conditions have changed since ``before``."""
    changed = [key for key in ("boot_id", "kernel", "cpu_model", "cpus") if before.get(key) != now[key]]
    if changed:
        what = "was restarted" if changed == ["boot_id"] else f"changed ({', '.join(changed)})"
        raise not_resumable(manifest, f"{which} {what}")


def check_material(manifest: Manifest) -> None:
    """Refuse to resume if a version, a server, a dataset or a stream has changed since the run began."""
    if manifest.dnsrig_version != dnsrig.__version__:
        raise not_resumable(manifest, f"dnsrig was {manifest.dnsrig_version} and is {dnsrig.__version__}")
    if manifest.engine_fingerprint != sources.fingerprint(paths.engine()):
        raise not_resumable(manifest, "the engine was built anew")
    for server in manifest.servers.values():
        if not sources.unchanged(server):
            raise not_resumable(manifest, f"{server.label} is no longer what it was")
    for kernel in {spec.kernel for spec in manifest.specs.values()}:
        if why := executor(kernel).changed(manifest.conditions):
            raise not_resumable(manifest, why)
    for spec in manifest.specs.values():
        for dataset in spec.versions:
            if not datasets.facts(datasets.folder(dataset.key)):
                raise not_resumable(manifest, f"the dataset {dataset.key} is gone")
        if spec.stream is not None and not streams.facts(spec.stream.key):
            raise not_resumable(manifest, f"the stream {spec.stream.key} is gone")
        if spec.queries is not None and not query_files.facts(spec.queries.key):
            raise not_resumable(manifest, f"the file of queries {spec.queries.name} is gone from the cache")


def not_resumable(manifest: Manifest, why: str) -> DnsrigError:
    return DnsrigError(
        f"this run cannot be resumed: {why} since it began",
        hint=f"its finished trials remain; start a new run with `dnsrig run {manifest.experiment} --scale {manifest.scale}`",
    )


def missing(manifest: Manifest, directory: Path) -> list[TrialKey]:
    return [k for k in manifest.order if not (trial_dir(directory, k.variant, k.repeat) / "trial.json").exists()]


def check_at_once(manifest: Manifest, at_once: int) -> None:
    """Refuse parallel trials that would disturb each other: each needs a kernel and a CPU of its own."""
    if at_once == 1:
        return
    if not _apart(manifest):
        raise UsageError(
            f"--at-once {at_once}: trials under the running kernel would disturb each other",
            hint="use it for experiments under User-mode Linux: --set kernel=uml",
        )
    if at_once > len(own_cpus()):
        raise UsageError(
            f"--at-once {at_once}: each trial needs its own CPU, and there are {len(own_cpus())}",
            hint=f"--at-once {len(own_cpus())} at most",
        )


@dataclass(frozen=True)
class Local:
    """This machine executes a run, ``at_once`` trials at a time. `spread.Spread` does the same on several machines."""

    at_once: int = 1

    def where(self) -> Where:
        return here()

    def check(self, manifest: Manifest) -> None:
        """Refuse a run that cannot be executed as it is asked."""
        check_at_once(manifest, self.at_once)

    def check_unchanged(self, manifest: Manifest) -> None:
        """Refuse to resume if a result would mix machines, versions or datasets."""
        check_unchanged(manifest)

    def execute(self, manifest: Manifest, directory: Path, progress: Progress) -> int:
        """Run every trial that is not finished. Returns how many failed by our own fault."""
        return execute(manifest, directory, progress, at_once=self.at_once)


def execute(manifest: Manifest, directory: Path, progress: Progress, *, at_once: int = 1) -> int:
    """Execute all unfinished trials here, ``at_once`` in parallel. Returns how many failed because of dnsrig or the
    machine."""
    check_at_once(manifest, at_once)
    with _own_cpus_kept(), _held(directory, progress) as lock, contextlib.ExitStack() as stack:
        lanes = [Here(stack.enter_context(Forks()), lock, cpu) for cpu in _cpus(manifest, at_once)]
        return _execute(manifest, directory, progress, lanes)


def execute_on(lanes: Sequence[Lane], manifest: Manifest, directory: Path, progress: Progress) -> int:
    """Execute all unfinished trials on ``lanes``. Returns how many failed because of dnsrig or the machines."""
    with _held(directory, progress):
        return _execute(manifest, directory, progress, lanes)


def _held(directory: Path, progress: Progress) -> AbstractContextManager[int]:
    return cached.only_one(directory, "somebody else is executing this run already", progress.note)


def _cpus(manifest: Manifest, at_once: int) -> list[int | None]:
    """The CPU of each lane of this machine; None: its hosts have the CPUs of their specs."""
    return [*own_cpus()[-at_once:]] if _apart(manifest) else [None]


def _apart(manifest: Manifest) -> bool:
    return all(executor(spec.kernel).APART for spec in manifest.specs.values())


@interruption.caught()
def _execute(manifest: Manifest, directory: Path, progress: Progress, lanes: Sequence[Lane]) -> int:
    waiting = missing(manifest, directory)
    started = len(manifest.order) - len(waiting)
    running: dict[Running, Lane] = {}
    events: children.Events = queue.SimpleQueue()
    errors, in_a_row = 0, Counter[Lane]()
    try:
        while waiting or running:
            for lane in (lane for lane in lanes if lane not in running.values()):
                if found := next((key for key in waiting if lane.takes(key)), None):
                    waiting.remove(found)
                    started += 1
                    with interruption.deferred():  # or a trial would run that nobody ends
                        running[_start(manifest, directory, progress, started, found, lane, events)] = lane
            if not running:
                progress.note(f"{len(waiting)} trials are left: the machine that they belong to does not answer")
                return errors + len(waiting)
            trial, event = events.get()
            if event is not None:
                progress.trial_event(trial.spec, event)
                continue
            lane = running.pop(trial)
            record, reason = trial.result()
            progress.trial_ended(trial.spec, Trial(trial.target, record) if record else None, reason)
            errors += record is None
            in_a_row[lane] = in_a_row[lane] + 1 if record is None else 0
            if in_a_row[lane] == ERRORS_IN_A_ROW:
                raise _too_many(directory, ERRORS_IN_A_ROW, reason)
    except KeyboardInterrupt:
        progress.note("interrupted: each trial that runs now removes what it made; that may take a minute")
        raise
    finally:
        _end(running)
    return errors


def _end(running: Iterable[Running]) -> None:
    """End all trials in parallel, because each may take a while. Another Ctrl-C does not stop the removal."""
    threads = [threading.Thread(target=trial.end) for trial in running]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with contextlib.suppress(KeyboardInterrupt):
            for thread in threads:
                thread.join()


def _start(
    manifest: Manifest,
    directory: Path,
    progress: Progress,
    number: int,
    key: TrialKey,
    lane: Lane,
    events: children.Events,
) -> Running:
    """Start a trial. ``number``: its position among all started and finished trials."""
    spec = manifest.specs[key.variant].model_copy(update={"repeat": key.repeat})
    _check_disk(directory, f"then `{resume_command(directory)}`")
    progress.trial_started(number, len(manifest.order), spec)
    return lane.start(spec, trial_dir(directory, key.variant, key.repeat), events)


def _too_many(directory: Path, in_a_row: int, reason: str) -> DnsrigError:
    return DnsrigError(
        f"{in_a_row} trials in a row failed: {reason}",
        hint=f"their logs are kept as *.aborted under {directory}/trials; then `{resume_command(directory)}`",
    )


@contextlib.contextmanager
def _own_cpus_kept() -> Iterator[None]:
    """Restore the CPUs of this process at the end."""
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        move_to(before)


def _check_disk(directory: Path, then: str) -> None:
    free = shutil.disk_usage(directory).free
    if free < DISK_FREE_WANTED_BYTES:
        raise DnsrigError(
            f"the disk is nearly full: {free / 1e6:,.0f} MB free for {directory}, {DISK_FREE_WANTED_BYTES / 1e6:,.0f} MB wanted",
            hint=f"free some space, {then}",
        )
