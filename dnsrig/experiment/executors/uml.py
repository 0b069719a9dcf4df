"""A trial under another kernel: boots User-mode Linux, and executes `dnsrig trial` there, with the same files.

For the runner nothing is different: it gets events, then the directory of the trial, and everything is removed when it
ends the trial early. Only the spec is changed: all hosts have CPU 0, the only one inside.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dnsrig import interruption, paths
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import trial
from dnsrig.experiment.needed import data
from dnsrig.lab import ledger, removal, uml
from dnsrig.procedures.context.phases import Report
from dnsrig.rundir import HostSpec, TrialRecord, TrialSpec, read_json, write_json

CPU = 0
"""The only one inside."""
SILENCE_LIMIT_S = 3600.0
"""How long the trial may report nothing beyond its own limit. Preparing a server may take half an hour."""
TCP_CONGESTION = "net.ipv4.tcp_congestion_control"
RELEASE = "uml_kernel"
"""In the manifest's conditions: the release of the kernel."""
APART = True
OVERHEAD_S = 19.0
"""Measured: 4 s as under the running kernel, the boot, and programs that take ten times as long to start."""


@interruption.caught()
def run_trial(spec: TrialSpec, directory: Path, report: Report) -> TrialRecord:
    """Execute a trial under User-mode Linux; inside it, simply execute it. Raises the error of the trial inside."""
    if uml.inside():
        return trial.run_trial(spec, directory, report)
    trial.check_new(directory)
    kernel = uml.install()
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _job() as (job, ledger_handle):
        write_json(job / "spec.json", inside(spec))
        seen = f"{uml.JOB_SEEN}/spec.json"
        machine = uml.Guest.start(
            kernel,
            job,
            [sys.executable, "-P", "-m", "dnsrig", "trial", "--until-eof", seen, str(directory.resolve())],
            writable=[directory.parent],
            seen=needed(spec),
            modules=[name for name in modules(spec) if kernel.has(name)],
            cpu=max(os.sched_getaffinity(0)),
            holding=[ledger_handle],
        )
        try:
            machine.wait_until_booted()
            _follow(machine, report, limit_s=spec.limit_s + SILENCE_LIMIT_S)
        finally:
            machine.stop()
        if not (directory / "trial.json").exists():
            raise _complaint(machine)
    return read_json(directory / "trial.json", TrialRecord)


def provide(specs: Sequence[TrialSpec], note: Callable[[str], None]) -> dict[str, Any]:
    if uml.find() is None:
        note("fetching the kernel of User-mode Linux from this machine's Debian mirror into the cache, once")
    kernel = uml.install()
    check_congestion(specs, kernel.congestion_controls())
    return {RELEASE: kernel.release}


def check_congestion(specs: Iterable[TrialSpec], controls: Collection[str]) -> None:
    """Refuse a congestion control that a host of ``specs`` asks for and this kernel, which has ``controls``, lacks."""
    hosts = [host for spec in specs for host in spec.hosts.values()]
    if lacking := sorted({host.congestion for host in hosts if host.congestion} - set(controls)):
        raise UsageError(
            f"User-mode Linux has no congestion control {lacking[0]!r}", hint=f"it has {', '.join(controls)}"
        )


def changed(conditions: dict[str, Any]) -> str:
    kernel = uml.find()
    same = kernel is not None and kernel.release == conditions.get(RELEASE)
    return "" if same else "the kernel of User-mode Linux is another"


def inside(spec: TrialSpec) -> TrialSpec:
    """Change a spec for a machine with one CPU."""
    hosts = {name: host.model_copy(update={"cpus": [CPU]}) for name, host in spec.hosts.items()}
    return spec.model_copy(update={"hosts": hosts})


def needed(spec: TrialSpec) -> list[Path]:
    """List files and folders that the trial reads, wherever they are."""
    programs = [Path(place) for place in (*sys.path, sys.prefix, sys.base_prefix) if place and Path(place).exists()]
    return [*programs, paths.engine(), *data(spec)]


def modules(spec: TrialSpec) -> list[str]:
    """Name the modules that a namespace cannot load by itself: congestion controls that hosts ask for."""
    asked = {name for host in spec.hosts.values() for name in _congestion(host)}
    return sorted(f"tcp_{name}" for name in asked)


def _congestion(host: HostSpec) -> Iterator[str]:
    yield from filter(None, (host.congestion, host.sysctls.get(TCP_CONGESTION)))


@contextlib.contextmanager
def _job() -> Iterator[tuple[Path, int]]:
    """Make a folder in memory that a ledger lists; yields the folder and the ledger's handle.

    As long as the kernel holds the ledger, others see that a trial runs. The folder is removed however this process
    ends.
    """
    made = ledger.Ledger.open_new()
    folder = ledger.MEMORY / f"{ledger.PREFIX}{made.tag}"
    try:
        made.add(folder=str(folder))
        folder.mkdir(mode=0o700)
        yield folder, made.handle
    finally:
        if left := removal.remove(made):
            raise DnsrigError(f"could not remove {', '.join(left)}", hint="run `dnsrig clean` to try again")


def _follow(machine: uml.Guest, report: Report, *, limit_s: float) -> None:
    """Pass events on until the trial has ended, without the last one, which the caller reports. Raises DnsrigError
    after ``limit_s`` of silence."""
    try:
        while (event := machine.events.get(timeout=limit_s)) is not None:
            if event["event"] != "ended":
                report(event)
    except queue.Empty:
        raise DnsrigError(
            f"the trial under kernel uml sent no message for {limit_s:,.0f} s: {machine.last_words()}",
            hint="the kernel seems to hang; is there enough memory?",
        ) from None


def _complaint(machine: uml.Guest) -> DnsrigError:
    """Make an error of what the trial inside wrote to standard error, or else of the kernel's last words."""
    said = [line.strip() for line in machine.errors if line.strip()]
    messages = [line.removeprefix("dnsrig: ") for line in said if line.startswith("dnsrig: ")]
    hints = [line.removeprefix("hint: ") for line in said if line.startswith("hint: ")]
    if messages:
        return DnsrigError(messages[-1], hint=hints[-1] if hints else "")
    return DnsrigError(
        f"the kernel ended before the trial did: {machine.last_words()}",
        hint=f"was its memory ({uml.MEMORY_MB} MB at most) too small for this trial?",
    )
