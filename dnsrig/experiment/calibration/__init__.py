"""`dnsrig calibrate`: the accuracy of this rig, measured by ordinary runs and written as a certificate
(`dnsrig.certificate`).

- ``floor.toml``, ``capacity.toml``, ``noise.toml``  the experiments, which the runner executes
- ``through``  the floor through an interface, with a generator on another machine
- ``machine``  measurements without trials: clocks, and the self-test of links
- ``figures``  from the trials to the figures of the certificate

`dnsrig.experiment.certificates` finds the certificates of this machine.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dnsrig
from dnsrig import cached, paths
from dnsrig.certificate import FILE, Certificate, Disturbance, Floor, NicPath, Scale
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import certificates, preparation, runner
from dnsrig.experiment.calibration import figures, machine
from dnsrig.experiment.calibration.through import Through, floors_of, path_of
from dnsrig.experiment.runner import Progress
from dnsrig.lab import conditions, disturbances, ledger, nics
from dnsrig.lab.disturbances import CpuTimes, Remark
from dnsrig.rundir import write_json
from dnsrig.runs.run import Run
from dnsrig.servers import sources

LIMIT_S: dict[Scale, float] = {"quick": 120.0, "standard": 540.0}
"""Time in which all rounds should end. Looking at the machine before and drawing afterwards take up to a minute on busy
CPUs. The fewest rounds of each part are measured even if that takes longer."""
FLOOR_UNTIL, CAPACITY_UNTIL = 0.5, 0.7
"""Shares of that time at which the first two parts end. The rest is for the noise, which gains most from more
trials."""
NIC_UNTIL = 0.35
"""Share of that time for the floor through an interface, which comes first. Its trials are longer, because they connect
to the other machine and compare clocks."""
REST_S = 2.0
"""Time in which dnsrig does nothing, in order to see what other programs do."""


def calibrate(scale: Scale, nic: str, through: Through | None, folder: Path, progress: Progress) -> Path:
    """Measure, write the certificate, and return its folder, which appears as a whole or not at all.

    ``nic``: an interface that the certificate describes; ``through``: the path through it, if the floor is measured
    there, too. An interrupted calibration leaves nothing behind. If a trial fails, its logs stay until the next one.
    """
    runner.check_folders(folder)
    if through is not None:
        through.check(progress.note)
    folder.mkdir(parents=True, exist_ok=True)
    with cached.only_one(folder, "somebody else is calibrating already"):
        for leftover in folder.glob(f"{cached.UNFINISHED}*"):
            shutil.rmtree(leftover)
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{''.join(secrets.choice(ledger.TAG_LETTERS) for _ in range(4))}"
        working = folder / f"{cached.UNFINISHED}{name}"
        with _nothing_left_of(working):
            made = measure(name, scale, nic, through, working / "runs", progress)
            write_json(working / FILE, made)
            working.rename(folder / name)
    return folder / name


@contextlib.contextmanager
def _nothing_left_of(working: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        shutil.rmtree(working, ignore_errors=True)
        raise


def check_nic(name: str) -> None:
    """Refuse an interface that this machine does not have. `Through.check` demands more of an interface that is
    used."""
    known = [nic.name for nic in nics.found()]
    if name and name not in known:
        there = f"it has {', '.join(known)}" if known else "it has none that is hardware or a hypervisor's"
        raise UsageError(f"this machine has no network interface {name!r}", hint=there)


def measure(name: str, scale: Scale, nic: str, through: Through | None, runs: Path, progress: Progress) -> Certificate:
    """Measure everything, in the order of the certificate."""
    began_s, began = time.monotonic(), datetime.now(UTC)
    around: dict[str, Any] = conditions.snapshot()
    progress.note(f"looking at this machine: load, clocks, links; it rests for {REST_S:g} s")
    before = CpuTimes.now()
    time.sleep(REST_S)
    others = disturbances.others(before, CpuTimes.now())
    told = [*disturbances.remarks(), others, *([] if through else _of_nic(nic))]
    clock, links = machine.clock(), machine.links(progress.note)
    until_s = [began_s + LIMIT_S[scale] * share for share in shares(through is not None)]
    # It comes first, so that a cable in the wrong place is reported at once.
    nic_path, nic_floors = _through(through, scale, runs, progress, until_s[0]) if through else (None, [])
    floor = _rounds("floor", scale, [], runs, progress, 1, until_s[1])
    capacity = _rounds("capacity", scale, [], runs, progress, 1, until_s[2])
    servers = figures.noisy_servers()
    noise = _rounds("noise", scale, [figures.server_axis(servers)], runs, progress, 6, until_s[3])
    told.append(disturbances.steal(before, CpuTimes.now()))
    progress.note("computing the smallest difference that repeats would show")
    return Certificate(
        id=name,
        machine=certificates.machine(around),
        created=began.isoformat(timespec="seconds"),
        duration_s=round(time.monotonic() - began_s, 1),
        scale=scale,
        dnsrig_version=dnsrig.__version__,
        engine_fingerprint=sources.fingerprint(paths.engine()),
        conditions=around,
        nic=nic,
        nic_path=nic_path,
        floors=[*figures.floors(floor), *nic_floors],
        capacities=figures.capacities(capacity),
        clock=clock,
        links=links,
        noise=figures.noise(noise),
        disturbances=[
            Disturbance(what=each.what, grade=each.grade, says=each.says, remedy=each.remedy) for each in told
        ],
    )


def _through(
    through: Through, scale: Scale, runs: Path, progress: Progress, until_s: float
) -> tuple[NicPath, list[Floor]]:
    run = _rounds("floor", scale, through.settings, runs, progress, 1, until_s, through.file)
    return path_of(run, through), floors_of(run, through)


def shares(through_nic: bool) -> list[float]:
    """Shares of the time at which the parts end: floor through an interface, floor over veth, capacity, noise."""
    first = NIC_UNTIL if through_nic else 0.0
    return [first, *(first + (1 - first) * share for share in (FLOOR_UNTIL, CAPACITY_UNTIL, 1.0))]


def _of_nic(name: str) -> list[Remark]:
    if not name:
        return []
    (nic,) = (nic for nic in nics.found() if nic.name == name)
    says = f"{nic.says}: nothing is measured through it; all latencies, lags and rates here are of veth"
    remedy = (
        "measure what it adds, with a machine at the other end of its cable:"
        f" `dnsrig calibrate --nic {name} --other-end MACHINE:INTERFACE --machines machines.toml`"
    )
    return [Remark(f"interface {name}", "note", says, remedy)]


def _rounds(
    part: str,
    scale: str,
    settings: list[str],
    runs: Path,
    progress: Progress,
    fewest: int,
    until_s: float,
    machines: Path | None = None,
) -> Run:
    """Execute at least ``fewest`` rounds of ``part``, and more if they would end before ``until_s`` (monotonic clock).

    ``machines``: the file that describes other machines. Raises DnsrigError if a trial fails because of dnsrig or the
    machine: a certificate must have all its figures.
    """
    request = preparation.Request(str(Path(__file__).with_name(f"{part}.toml")), scale, settings, machines=machines)
    manifest = preparation.prepare(request, progress.note)
    progress.note(f"{part}: {manifest.title}")
    directory = runner.create(manifest, runs)
    number, longest_s = 0, 0.0
    while number < manifest.repeats and (number < fewest or time.monotonic() + longest_s < until_s):
        number, began_s = number + 1, time.monotonic()
        so_far = manifest.order[: number * len(manifest.variants)]
        done = manifest.model_copy(update={"order": so_far, "repeats": number})
        if errors := runner.execute(done, directory, progress):
            raise DnsrigError(
                f"{errors} trial(s) of the part {part} failed because of dnsrig or the machine",
                hint=f"their logs are in {directory}/trials/*/*.aborted until the next calibration; `dnsrig check` may show what is missing",
            )
        write_json(directory / "manifest.json", done)
        longest_s = max(longest_s, time.monotonic() - began_s)
    return Run.open(directory)
