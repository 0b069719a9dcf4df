"""What is called on a machine: imported there by name, so that both sides are one version of dnsrig.

A run holds a machine by a lease, which it renews every few seconds. Where it does not, because its process or the
network is gone, the trial there is ended and removes what it made. What was finished stays until the run has it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dnsrig
from dnsrig import cached, paths
from dnsrig.errors import DnsrigError
from dnsrig.experiment import certificates, children
from dnsrig.experiment.children import Child
from dnsrig.lab import check, conditions
from dnsrig.lab.process import move_to
from dnsrig.machines import folders, leases
from dnsrig.machines.folders import Archive
from dnsrig.rundir import OBSERVER, TrialSpec
from dnsrig.servers import sources

Report = Callable[[dict[str, Any]], None]
_executing = threading.Lock()
_ending = threading.Event()


def look() -> dict[str, Any]:
    """What must be equal on all machines of a run, and what is to be told of each."""
    around = conditions.snapshot()
    return {
        "version": dnsrig.__version__,
        "engine_fingerprint": sources.fingerprint(paths.engine()),
        "available_cpus": sorted(os.sched_getaffinity(0)),
        "root": os.geteuid() == 0,
        "holder": held.holder if (held := leases.current()) is not None and not held.is_over else "",
        "conditions": {**around, **certificates.cited(around)},
    }


def remarks() -> list[dict[str, str]]:
    """What `dnsrig check` says of it."""
    return [asdict(remark) for remark in check.remarks()]


def lacking(folders: list[str]) -> list[str]:
    """Of folders of the cache, named from there, those that this one has not."""
    return [folder for folder in folders if not (paths.cache() / folder).exists()]


def receive(archive: str, offset: int, data: bytes) -> None:
    """A part of an archive that is on its way."""
    folders.add(_incoming() / archive, offset, data)


def install(archive: str, size_bytes: int, sha256: str, folder: str) -> None:
    """What arrived becomes ``folder`` of the cache."""
    path = _incoming() / archive
    try:
        folders.install(Archive(path, size_bytes, sha256), paths.cache() / folder)
    finally:
        path.unlink(missing_ok=True)


def execute(spec_json: str, lease: str, report: Report) -> dict[str, Any]:
    """Execute one trial; returns its archive, or that of its logs with the reason why it failed."""
    # One that was lost with its worker may still be removing what it made.
    with _executing, cached.locked(paths.cache() / "trial") as lock:
        return _execute(TrialSpec.model_validate_json(spec_json), lease, report, lock)


def end(limit_s: float) -> None:
    """Before this process ends: the trial here removes what it made, and no other one begins."""
    _ending.set()
    if _executing.acquire(timeout=limit_s):
        _executing.release()


def _execute(spec: TrialSpec, lease: str, report: Report, lock: int) -> dict[str, Any]:
    move_to(set(spec.hosts[OBSERVER].cpus))
    target = _results(spec.run) / spec.variant.id / f"{spec.repeat:02d}"
    _remove(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    events: children.Events = queue.SimpleQueue()
    try:
        reason = _follow(Child(spec, target, events, lock), events, lease, report)
        return _packed(target, reason)
    finally:
        _remove(target)


def finished(run: str) -> list[dict[str, Any]]:
    """The archives of trials that the run has not fetched."""
    return [_described(path) for path in sorted(_results(run).glob("*/*.json"))]


def part(archive: str, offset: int) -> bytes:
    return folders.part(Path(archive), offset)


def forget(archive: str) -> None:
    """The run has fetched it."""
    path = Path(archive)
    path.with_suffix(".json").unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    for folder in (path.parent, path.parent.parent):
        with contextlib.suppress(OSError):  # another archive lies there
            folder.rmdir()


def _follow(child: Child, events: children.Events, lease: str, report: Report) -> str:
    """Until it has ended; returns why it failed, or nothing."""
    while True:
        try:
            _, event = events.get(timeout=1)
        except queue.Empty:
            event = {}
        if event is None:
            break
        if event:
            report(event)
        if _ending.is_set() or not leases.holds(lease):
            child.end()
            raise DnsrigError(
                "its run has ended, or no longer has a lease on this machine", hint="continue with --resume"
            )
    return child.result()[1]


def _packed(target: Path, reason: str) -> dict[str, Any]:
    """What is to be fetched; of a trial that failed, its logs."""
    folder = target.with_name(f"{target.name}.aborted") if reason else target
    folder.mkdir(exist_ok=True)
    archive = folders.pack(folder, target.with_suffix(".tar.partial"))
    final = target.with_suffix(".tar")
    archive.path.rename(final)
    told = {"archive": str(final), "size_bytes": archive.size_bytes, "sha256": archive.sha256, "reason": reason}
    told |= {"variant": target.parent.name, "repeat": int(target.name)}
    target.with_suffix(".json").write_text(json.dumps(told))
    return told


def _remove(target: Path) -> None:
    """What trials leave there, however they end."""
    for name in (target.name, f"{target.name}.running", f"{target.name}.aborted"):
        folders.remove(target.with_name(name))


def _described(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _folder() -> Path:
    return paths.cache() / "machines"


def _results(run: str) -> Path:
    return _folder() / run.replace("/", "-")


def _incoming() -> Path:
    folder = _folder() / "incoming"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
