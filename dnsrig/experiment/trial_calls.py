"""What a run calls on another machine that executes its trials: looks at it, executes trials, hands over results.

A run holds a machine by a lease, which it renews every few seconds. If it does not, because its process or the network
is gone, the trial there is ended and removes what it made. Finished trials stay until the run has fetched them.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
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
from dnsrig.machines import folders, leases, worker
from dnsrig.machines.dask import Report
from dnsrig.rundir import OBSERVER, TrialSpec
from dnsrig.servers import sources

_executing = threading.Lock()
_ending = threading.Event()
worker.endings.append(lambda: end(children.TEARDOWN_LIMIT_S))


def look() -> dict[str, Any]:
    """Report what must be equal on all machines of a run, and what is recorded of each."""
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
    """Report what `dnsrig check` finds on this machine."""
    return [asdict(remark) for remark in check.remarks()]


def execute(spec_json: str, lease: str, report: Report) -> dict[str, Any]:
    """Execute one trial; returns its archive, or the archive of its logs with the reason why it failed."""
    # A trial that was lost with its worker may still be removing what it made.
    with _executing, cached.locked(paths.cache() / "trial") as lock:
        return _execute(TrialSpec.model_validate_json(spec_json), lease, report, lock)


def end(limit_s: float) -> None:
    """End the trial here, which removes what it made, and begin no other one: this process ends."""
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
        reason = _follow(Child(spec, target, events, lock, children.program), events, lease, report)
        return _packed(target, reason)
    finally:
        _remove(target)


def finished(run: str) -> list[dict[str, Any]]:
    """List the archives of trials that the run has not fetched."""
    return [_described(path) for path in sorted(_results(run).glob("*/*.json"))]


def forget(archive: str) -> None:
    """Remove an archive that the run has fetched."""
    path = Path(archive)
    path.with_suffix(".json").unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    for folder in (path.parent, path.parent.parent):
        with contextlib.suppress(OSError):  # it has another archive
            folder.rmdir()


def _follow(child: Child, events: children.Events, lease: str, report: Report) -> str:
    """Wait until the trial has ended; returns why it failed, or an empty string."""
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
    """Pack what is to be fetched: the trial, or its logs if it failed."""
    folder = target.with_name(f"{target.name}.aborted") if reason else target
    folder.mkdir(exist_ok=True)
    archive = folders.pack(folder, target.with_suffix(".tar.partial"))
    final = target.with_suffix(".tar")
    archive.path.rename(final)
    result = {"archive": str(final), "size_bytes": archive.size_bytes, "sha256": archive.sha256, "reason": reason}
    result |= {"variant": target.parent.name, "repeat": int(target.name)}
    target.with_suffix(".json").write_text(json.dumps(result))
    return result


def _remove(target: Path) -> None:
    """Remove what trials leave, however they end."""
    for name in (target.name, f"{target.name}.running", f"{target.name}.aborted"):
        folders.remove(target.with_name(name))


def _described(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _results(run: str) -> Path:
    return paths.cache() / "machines" / run.replace("/", "-")
