"""Does a run over three machines survive whatever is lost? Real trials; at random moments something is lost, 20 times

Machines are namespaces with an sshd each, or workers of a Dask cluster with a cache each, all on this machine: so what
their trials measure says nothing about servers. Needs a machine with nothing else to do, and half an hour.

    python benches/machines_lost.py ssh|dask [--losses 20] [--seed 1] [--folder NEW] [OPTIONS OF `dnsrig run`…]
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import dask_cluster
import ssh_machines
from dask_cluster import Cluster
from smoke import parser, scratch, sized
from ssh_machines import Lab

from dnsrig.lab import ledger
from dnsrig.rundir import Manifest, read_json

NAMES = ("rack-1", "rack-2", "rack-3")
EXPERIMENT = ["many-zones", "--scale", "quick", "--repeats", "3"]
SMALLEST = ["echo-baseline", "--set", "transport=udp", "--set", "options.duration_s=0.5", "--repeats", "3"]
DNSRIG = [sys.executable, "-P", "-m", "dnsrig"]
TAG_START = "zzz"
OUTAGE_S = 60.0
"""The longest outage of a network."""
PAUSE_S = 5.0
STARTS_MAX = 200
Key = tuple[str, int]
"""Variant and repeat of a trial."""
LEASE_S = 30.0
"""The time for which a killed run may still hold a machine."""
NOTING = """
from dnsrig import paths
from dnsrig.experiment import trial_calls
trial_calls.itself = getattr(trial_calls, "itself", trial_calls._execute)  # this is loaded twice
def noting(spec, *arguments):
    told = trial_calls.itself(spec, *arguments)
    with (paths.cache() / "executed").open("a") as file:
        print(spec.variant.id, spec.repeat, file=file)
    return told
trial_calls._execute = noting
"""
"""What each worker loads first: it notes each trial that it finishes."""


@dataclass
class Run:
    """One run, which is started again whenever it has ended too early."""

    machines: Lab | Cluster
    folder: Path
    words: list[str]
    starts: int = 0
    seen: dict[Key, str] = field(default_factory=dict)
    """Digest of what a finished trial left, when it was first seen."""
    process: subprocess.Popen[str] | None = None

    @property
    def directory(self) -> Path | None:
        return next((path.parent for path in self.folder.glob("runs/*/*/manifest.json")), None)

    def keep_running(self) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            if self.starts:
                time.sleep(PAUSE_S)
            self.starts += 1
            if self.starts > STARTS_MAX:
                sys.exit(f"it does not end: {self.folder}/runner.log")
            words = ["--resume", str(self.directory)] if self.directory else self.words
            enter = self.machines.enter if isinstance(self.machines, Lab) else []
            with (self.folder / "runner.log").open("a") as log:
                self.process = subprocess.Popen(
                    [*enter, *DNSRIG, "run", *words, "--on", self.machines.on],
                    cwd=self.folder, stdout=log, stderr=log, text=True,
                )  # fmt: skip
        return self.process

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def look(self) -> int:
        """How many trials are finished. Raises AssertionError where one is gone."""
        found = {(p.parts[-3], int(p.parts[-2])): p.parent for p in self._records()}
        assert self.seen.keys() <= found.keys(), "a finished trial is gone"
        self.seen |= {key: digest(path) for key, path in found.items() if key not in self.seen}
        return len(found)

    def changed(self) -> list[Key]:
        now = {(p.parts[-3], int(p.parts[-2])): digest(p.parent) for p in self._records()}
        return [key for key, value in self.seen.items() if now.get(key) != value]

    def _records(self) -> Iterator[Path]:
        return self.folder.glob("runs/*/*/trials/*/*/trial.json")

    def manifest(self) -> Manifest:
        assert self.directory is not None
        return read_json(self.directory / "manifest.json", Manifest)


def digest(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        whole.update(str(path.relative_to(folder)).encode() + (path.read_bytes() if path.is_file() else b"/"))
    return whole.hexdigest()


def lose(run: Run, victims: list[str], chance: random.Random) -> None:
    """Until each of them was lost once, at random numbers of finished trials."""
    run.keep_running()
    while run.directory is None:
        time.sleep(0.1)
    total = len(run.manifest().order)
    for number, (victim, after) in enumerate(
        zip(victims, sorted(chance.sample(range(1, total), len(victims))), strict=True)
    ):
        while run.look() < after:
            run.keep_running()
            time.sleep(0.2)
        process = run.keep_running()
        time.sleep(chance.uniform(0, 5))
        before = run.look()
        bring_back = run.machines.lose(victim, process, chance)
        time.sleep(chance.uniform(1, OUTAGE_S) if victim == "network" else 0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LEASE_S + PAUSE_S if victim in ("runner", "interrupted", "scheduler") else 0)
        bring_back()
        print(f"| {number + 1} | {victim} | {before} of {total} |", flush=True)
    while run.keep_running().wait():
        run.look()
    run.look()


def tell(run: Run, caches: dict[str, Path]) -> None:
    manifest = run.manifest()
    print(f"finished: {len(run.seen)} of {len(manifest.order)}; changed afterwards: {len(run.changed())}")
    print(f"the run was started {run.starts} times")
    machine_of = {(key.variant, key.repeat): manifest.machine_of(key.repeat) for key in manifest.order}
    for name, cache in caches.items():
        lines = [line.rsplit(" ", 1) for line in (cache / "executed").read_text().splitlines()]
        noted = {(variant, int(repeat)) for variant, repeat in lines}
        own = {key for key, machine in machine_of.items() if machine is not None and machine.name == name}
        each = Counter(variant for variant, _ in own & noted)
        print(
            f"{name}: {len(own & noted)} trials, each variant {min(each.values())} to {max(each.values())} times; "
            f"of other machines {len(noted - own)}; executed more than once {len(lines) - len(noted)}; "
            f"not its own note {len(own - noted)}"
        )
    assert run.directory is not None
    report = (run.directory / "report.html").read_text()
    print(f"named in the report: {', '.join(name for name in NAMES if name in report)}")


def left_behind() -> list[str]:
    """What trials would have left on this machine."""
    places = {Path("/run/netns"): f"{ledger.PREFIX}{TAG_START}*", ledger.FOLDER: f"{TAG_START}*.json"}
    return [str(path) for folder, name in places.items() for path in folder.glob(name)]


@contextlib.contextmanager
def machines(kind: str, folder: Path) -> Iterator[tuple[Lab | Cluster, dict[str, Path], tuple[str, ...]]]:
    preload = folder / "noting.py"
    preload.write_text(NOTING)
    if kind == "ssh":
        python = folder / "python"
        python.mkdir()
        with ssh_machines.lab(
            folder / "lab", NAMES, python, {"DASK_DISTRIBUTED__WORKER__PRELOAD": str(preload)}
        ) as lab:
            yield lab, {name: one.cache for name, one in lab.machines.items()}, ssh_machines.VICTIMS
            ended(lambda: not lab.processes() and not lab.connections())
            left = [path for machine in lab.machines.values() for path in machine.left_behind()]
    else:
        cluster = Cluster(folder, NAMES, preload)
        os.environ |= cluster.environment("client")
        try:
            yield cluster, {name: cluster.cache(name) for name in NAMES}, dask_cluster.VICTIMS
        finally:
            cluster.end()
        left = []
    print(f"left behind: {len([*left, *left_behind()])}")


def ended(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 3 * LEASE_S
    while not is_so():
        assert time.monotonic() < deadline, "something still runs"
        time.sleep(0.5)


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("kind", choices=["ssh", "dask"], nargs=sized(None, smoke="?"), default="dask")
    asking.add_argument("--losses", type=int, default=sized(20, smoke=1))
    asking.add_argument("--seed", type=int, default=1)
    asking.add_argument("--folder", type=Path, default=scratch())
    asked, words = asking.parse_known_args()
    os.environ[ledger.TAG_START] = TAG_START
    chance, folder = random.Random(asked.seed), asked.folder or Path(tempfile.mkdtemp(prefix="dnsrig-lost-"))
    folder.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    with machines(asked.kind, folder) as (made, caches, kinds):
        victims = [kinds[number % len(kinds)] for number in range(1, asked.losses + 1)]
        chance.shuffle(victims)
        run = Run(made, folder, words or sized(EXPERIMENT, smoke=SMALLEST))
        print("| | lost | finished until then |\n| --- | --- | --- |")
        try:
            lose(run, victims, chance)
        finally:
            run.end()
        tell(run, caches)
    print(f"{(time.monotonic() - began_s) / 60:.0f} minutes; {folder}")


if __name__ == "__main__":
    main()
