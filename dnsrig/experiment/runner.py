"""Executes a plan: each trial as a child process, in the planned order, skipping what is finished."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import dnsrig
from dnsrig import cached, datasets, paths
from dnsrig.analysis.read import Trial
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import children, model, path, plan
from dnsrig.experiment.children import Child
from dnsrig.lab import conditions, ledger, uml
from dnsrig.procedures import procedure, versions
from dnsrig.rundir import Manifest, TrialKey, TrialSpec, trial_dir, write_json
from dnsrig.servers import debian, sources

UML_KERNEL = "uml_kernel"
"""In the manifest's conditions: the release of the kernel of those trials that run under User-mode Linux."""
NAME = r"\w[\w.+-]{0,99}"
"""Of an experiment."""
ERRORS_IN_A_ROW = 3
DISK_FREE_WANTED_BYTES = 1 << 30


class Progress(Protocol):
    """Who watches a run. All methods are called in the thread that runs."""

    def note(self, text: str) -> None: ...

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None: ...

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None: ...

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None: ...


@dataclass
class Request:
    """What a person asked for."""

    experiment: str
    scale: str = "quick"
    settings: list[str] = field(default_factory=list)
    repeats: int | None = None
    seed: int | None = None
    max_trials: int = plan.MAX_TRIALS


def draft(request: Request) -> tuple[model.Document, list[model.Point], int]:
    """Document, points and repeats: everything that needs neither root nor network. Raises on bad input."""
    check_name(request.experiment)
    document = model.load(model.find(request.experiment), request.scale, request.settings)
    repeats = request.repeats or document.repeats
    plan.check_size(model.count(document) * repeats, request.max_trials)
    points = path.under_one_kernel(model.points(document))
    for point in points:
        plan.provisional(request.experiment, point, _cpus())
    return document, points, repeats


def check_name(experiment: str) -> None:
    """Refuse a file whose name cannot be the experiment's: it becomes a part of paths that servers read in their configuration."""
    stem = Path(experiment).stem
    if not re.fullmatch(NAME, stem):
        better = re.sub(r"[^\w.+]+", "-", stem).strip("-.") or "experiment"
        raise UsageError(
            f"an experiment cannot be called {stem!r}: its name stands in paths, and may have letters, digits, dots, dashes and underscores",
            hint=f"call the file {better}.toml",
        )


def check_folders(runs: Path) -> None:
    """Refuse, before anything is made, folders of which each trial would fail."""
    for folder in (runs, paths.cache()):
        paths.check_for_servers(folder.resolve())


def prepare(request: Request, note: Callable[[str], None]) -> Manifest:
    """Everything up to the first trial: servers installed, datasets made, order drawn."""
    document, points, repeats = draft(request)
    servers = {}
    for name in plan.wanted_servers(points):
        found = sources.find(name)
        if found is None:
            note(f"installing {name}: its packages are fetched from this machine's Debian mirror into the cache, once")
            found = sources.install(name)
        servers[name] = found
    name = Path(request.experiment).stem
    run = f"{name}/{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{''.join(secrets.choice(ledger.TAG_LETTERS) for _ in range(4))}"
    specs = {}
    for point in points:
        kind, values = plan.wanted_dataset(point.document)
        measured_by = procedure(point.document.procedure)
        made = []
        for version in versions(measured_by, values, {**measured_by.OPTIONS, **point.document.options}):
            if not datasets.path_of(kind, version).exists():
                note(f"making the dataset {kind} {' '.join(f'{k}={v}' for k, v in version.items())}, once")
            made.append(datasets.provide(kind, version))
        spec = plan.spec(run, name, point, servers, made[0], _cpus(), *made[1:])
        specs[spec.variant.id] = spec
    machine = conditions.snapshot()
    if any(spec.kernel == "uml" for spec in specs.values()):
        if uml.find() is None:
            note("fetching the kernel of User-mode Linux from this machine's Debian mirror into the cache, once")
        kernel = uml.install()
        path.check_congestion(specs.values(), kernel.congestion_controls())
        machine[UML_KERNEL] = kernel.release
    seed = request.seed if request.seed is not None else secrets.randbelow(1 << 32)
    return Manifest(
        run=run,
        dnsrig_version=dnsrig.__version__,
        engine_fingerprint=sources.fingerprint(paths.engine()),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        experiment=name,
        title=document.title,
        question=document.question,
        sources=document.sources,
        scale=request.scale,
        document=document.model_dump(),
        procedure=document.procedure,
        axes=model.axes(document),
        baseline=document.baseline,
        variants=[spec.variant for spec in specs.values()],
        order=plan.order(list(specs), repeats, seed),
        order_seed=seed,
        repeats=repeats,
        servers=servers,
        specs=specs,
        conditions=machine,
    )


def _cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


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
    for name, server in manifest.servers.items():
        gone = server.root is not None and not Path(server.root, debian.RECORD).exists()
        if gone or (server.root is None and sources.find(name) != server):
            raise _not_resumable(manifest, f"{server.label} is no longer what it was")
    kernel = uml.find() if UML_KERNEL in manifest.conditions else None
    if manifest.conditions.get(UML_KERNEL) != (kernel.release if kernel else None):
        raise _not_resumable(manifest, "the kernel of User-mode Linux is another")
    for spec in manifest.specs.values():
        for dataset in filter(None, (spec.dataset, spec.next_dataset)):
            if not Path(dataset.path, "dataset.json").is_file():
                raise _not_resumable(manifest, f"the dataset {dataset.path} is gone")


def _not_resumable(manifest: Manifest, why: str) -> DnsrigError:
    return DnsrigError(
        f"this run cannot be resumed: {why} since it began",
        hint=f"its finished trials stay as they are; start anew with `dnsrig run {manifest.experiment} --scale {manifest.scale}`",
    )


def missing(manifest: Manifest, directory: Path) -> list[TrialKey]:
    return [k for k in manifest.order if not (trial_dir(directory, k.variant, k.repeat) / "trial.json").exists()]


def check_at_once(manifest: Manifest, at_once: int) -> None:
    """Refuse what would measure itself: trials share a kernel and its CPUs unless each has a kernel and a CPU of its own."""
    if at_once == 1:
        return
    if any(spec.kernel != "uml" for spec in manifest.specs.values()):
        raise UsageError(
            f"--at-once {at_once}: trials under the running kernel would measure each other",
            hint="it is for experiments under User-mode Linux: --set kernel=uml",
        )
    if at_once > len(_cpus()):
        raise UsageError(
            f"--at-once {at_once}: each needs a CPU of its own, and there are {len(_cpus())}",
            hint=f"--at-once {len(_cpus())} at most",
        )


def execute(manifest: Manifest, directory: Path, progress: Progress, *, at_once: int = 1) -> int:
    """Run every trial that is not finished, ``at_once`` at a time. Returns how many failed by our own fault."""
    check_at_once(manifest, at_once)
    with cached.only_one(directory, "somebody else is executing this run already"), _own_cpus_kept():
        return _execute(manifest, directory, progress, _lanes(manifest, at_once))


def _lanes(manifest: Manifest, at_once: int) -> list[int | None]:
    """For each trial that may run at once the CPU that is its own, or None where hosts have those that their specs say."""
    if any(spec.kernel != "uml" for spec in manifest.specs.values()):
        return [None]
    return [*_cpus()[-at_once:]]


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
    _check_disk(directory, f"then `dnsrig run --resume {directory}`")
    if cpu is None:
        _move_to(set(spec.hosts["observer"].cpus))
    progress.trial_started(number, len(manifest.order), spec)
    return Child(spec, trial_dir(directory, key.variant, key.repeat), events, cpu)


def _too_many(directory: Path, in_a_row: int, reason: str) -> DnsrigError:
    return DnsrigError(
        f"{in_a_row} trials in a row failed: {reason}",
        hint=f"their logs are kept as *.aborted under {directory}/trials; then `dnsrig run --resume {directory}`",
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
