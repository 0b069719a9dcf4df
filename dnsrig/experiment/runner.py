"""Executes a plan: each trial as a child process, in the planned order, skipping what is finished."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import dnsrig
from dnsrig import cached, datasets, paths
from dnsrig.errors import DnsrigError
from dnsrig.experiment import model, path, plan
from dnsrig.experiment.trial import set_aside
from dnsrig.lab import conditions, ledger
from dnsrig.procedures import procedure, versions
from dnsrig.rundir import Manifest, TrialKey, TrialRecord, TrialSpec, read_json, trial_dir, write_json
from dnsrig.servers import debian, sources

TEARDOWN_LIMIT_S = 60.0
"""How long a trial may take to remove what it made after it was told to end."""
TRIAL_COMMAND = [sys.executable, "-m", "dnsrig", "trial", "--until-eof"]
ERRORS_IN_A_ROW = 3
DISK_FREE_WANTED_BYTES = 1 << 30


class Progress(Protocol):
    """Who watches a run. All methods are called in the thread that runs."""

    def note(self, text: str) -> None: ...

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None: ...

    def trial_event(self, event: dict[str, Any]) -> None: ...

    def trial_ended(self, spec: TrialSpec, record: TrialRecord | None, reason: str) -> None: ...


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
    document = model.load(model.find(request.experiment), request.scale, request.settings)
    repeats = request.repeats or document.repeats
    plan.check_size(model.count(document) * repeats, request.max_trials)
    points = path.under_one_kernel(model.points(document))
    for point in points:
        plan.provisional(request.experiment, point, _cpus())
    return document, points, repeats


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
        conditions=conditions.snapshot(),
    )


def _cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def create(manifest: Manifest, runs: Path) -> Path:
    """The run's directory, with its manifest in it."""
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


def execute(manifest: Manifest, directory: Path, progress: Progress) -> int:
    """Run every trial that is not finished. Returns how many failed by our own fault."""
    with cached.only_one(directory, "somebody else is executing this run already"), _own_cpus_kept():
        return _execute(manifest, directory, progress)


def _execute(manifest: Manifest, directory: Path, progress: Progress) -> int:
    todo, errors, in_a_row = missing(manifest, directory), 0, 0
    done_before = len(manifest.order) - len(todo)
    for number, key in enumerate(todo, start=1 + done_before):
        spec = manifest.specs[key.variant].model_copy(update={"repeat": key.repeat})
        _check_disk(directory, f"then `dnsrig run --resume {directory}`")
        _move_to(set(spec.hosts["observer"].cpus))
        progress.trial_started(number, len(manifest.order), spec)
        record, reason = _run_child(spec, trial_dir(directory, key.variant, key.repeat), progress)
        progress.trial_ended(spec, record, reason)
        errors += record is None
        in_a_row = in_a_row + 1 if record is None else 0
        if in_a_row == ERRORS_IN_A_ROW:
            raise DnsrigError(
                f"{in_a_row} trials in a row failed: {reason}",
                hint=f"their logs are kept as *.aborted under {directory}/trials; then `dnsrig run --resume {directory}`",
            )
    return errors


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


def _run_child(spec: TrialSpec, target: Path, progress: Progress) -> tuple[TrialRecord | None, str]:
    """One trial as a child process of its own session; it ends when we do."""
    set_aside(target.with_name(f"{target.name}.running"))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(spec.model_dump_json())
        file.flush()
        child = subprocess.Popen(
            [*TRIAL_COMMAND, file.name, str(target)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        errors: list[str] = []
        reader = threading.Thread(target=_collect, args=(child, errors), daemon=True)
        reader.start()
        try:
            assert child.stdout is not None
            for line in child.stdout:
                progress.trial_event(_event(line))
            child.wait()
        except BaseException:
            _end(child)
            raise
        reader.join(5)
    if (target / "trial.json").exists():
        return read_json(target / "trial.json", TrialRecord), ""
    return None, _reason(errors)


def _event(line: str) -> dict[str, Any]:
    """An event of the trial; whatever else a program may print there counts as none."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    return event if isinstance(event, dict) and "event" in event else {"event": "noise"}


def _reason(errors: list[str]) -> str:
    """The sentence among what a failed trial wrote to standard error."""
    lines = [line for line in errors if line.strip()]
    ours = [line.removeprefix("dnsrig: ") for line in lines if line.startswith("dnsrig: ")]
    return (ours or lines[-1:] or ["it ended at once"])[0]


def _collect(child: subprocess.Popen[str], lines: list[str]) -> None:
    assert child.stderr is not None
    for line in child.stderr:
        if len(lines) < 1000:
            lines.append(line.rstrip())


def _end(child: subprocess.Popen[str]) -> None:
    """Tell a trial to end and wait until it has removed what it made."""
    child.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + TEARDOWN_LIMIT_S
    while child.poll() is None and time.monotonic() < deadline:
        try:
            child.wait(1)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            continue
    if child.poll() is None:
        child.kill()
        child.wait()


def _check_disk(directory: Path, then: str) -> None:
    free = shutil.disk_usage(directory).free
    if free < DISK_FREE_WANTED_BYTES:
        raise DnsrigError(
            f"the disk is nearly full: {free / 1e6:,.0f} MB free where {directory} lies, {DISK_FREE_WANTED_BYTES / 1e6:,.0f} MB wanted",
            hint=f"free some space, {then}",
        )
