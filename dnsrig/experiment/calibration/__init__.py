"""`dnsrig calibrate`: what this rig can tell, measured by runs as any other, and written as a certificate
(`dnsrig.certificate`).

- ``floor.toml``, ``capacity.toml``, ``noise.toml``  the experiments, which the runner executes
- ``rounds``   one of them: so many rounds as its time allows
- ``through``  the floor through an interface, with a generator on another machine
- ``machine``  what needs no trials: clocks, the self-test of links, which machine this is
- ``figures``  the trials as the certificate's figures

Where certificates lie, and which one a run cites, says `dnsrig.experiment.certificates`.
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
from dnsrig.errors import UsageError
from dnsrig.experiment import certificates, runner
from dnsrig.experiment.calibration import figures, machine, rounds
from dnsrig.experiment.calibration.through import Through, floors_of, path_of
from dnsrig.experiment.runner import Progress
from dnsrig.lab import conditions, disturbances, ledger, nics
from dnsrig.lab.disturbances import CpuTimes, Remark
from dnsrig.rundir import write_json
from dnsrig.servers import sources

LIMIT_S: dict[Scale, float] = {"quick": 120.0, "standard": 540.0}
"""When all rounds should be over; looking before and drawing after take up to a minute where others have the CPUs. The
fewest rounds of each part are measured even where that takes longer."""
FLOOR_UNTIL, CAPACITY_UNTIL = 0.5, 0.7
"""Shares of it, for the first two parts; the rest is for the noise, of which more trials say most."""
NIC_UNTIL = 0.35
"""The share that comes before them where a floor is measured through an interface: connecting to the other machine, and
comparing clocks, makes its trials longer."""
REST_S = 2.0
"""In which dnsrig does nothing, to see what others do."""


def calibrate(scale: Scale, nic: str, through: Through | None, folder: Path, progress: Progress) -> Path:
    """Measure, and write the certificate; returns its folder, which is there as a whole or not at all.

    ``nic``: an interface that is told about; ``through``: the way through it, where the floor is measured there, too.
    Interrupted it leaves nothing; where a trial fails its logs stay, until the next calibration begins.
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
    """Refuse an interface that this machine has not. Of one that is measured through, `Through.check` asks more."""
    known = [nic.name for nic in nics.found()]
    if name and name not in known:
        there = f"it has {', '.join(known)}" if known else "it has none that is hardware or a hypervisor's"
        raise UsageError(f"this machine has no network interface {name!r}", hint=there)


def measure(name: str, scale: Scale, nic: str, through: Through | None, runs: Path, progress: Progress) -> Certificate:
    """Everything, in the order in which it is told."""
    began_s, began = time.monotonic(), datetime.now(UTC)
    around: dict[str, Any] = conditions.snapshot()
    progress.note(f"looking at this machine: load, clocks, links; it rests for {REST_S:g} s")
    before = CpuTimes.now()
    time.sleep(REST_S)
    others = disturbances.others(before, CpuTimes.now())
    told = [*disturbances.remarks(), others, *([] if through else _of_nic(nic))]
    clock, links = machine.clock(), machine.links(progress.note)
    until_s = [began_s + LIMIT_S[scale] * share for share in shares(through is not None)]
    # Before all others: a cable that is not where it should be is then told at once.
    nic_path, nic_floors = _through(through, scale, runs, progress, until_s[0]) if through else (None, [])
    floor = rounds.execute("floor", scale, [], runs, progress, 1, until_s[1])
    capacity = rounds.execute("capacity", scale, [], runs, progress, 1, until_s[2])
    servers = figures.noisy_servers()
    noise = rounds.execute("noise", scale, [figures.server_axis(servers)], runs, progress, 6, until_s[3])
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
    run = rounds.execute("floor", scale, through.settings, runs, progress, 1, until_s, through.file)
    return path_of(run, through), floors_of(run, through)


def shares(through_nic: bool) -> list[float]:
    """Of the limit, those in which the parts end: the floor through an interface, that over veth, capacity, noise."""
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
