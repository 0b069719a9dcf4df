"""What kills and full disks leave of a run: at random moments a part of it is killed, or its disk fills up

Parts are the runner, the process that forks trials, the process of a trial, an instrument, a server, `watch`; each
signal that ends programs is sent.
Afterwards the run is resumed until it is complete. Three things are wrong: a finished trial that is gone or changed;
anything that is left on this machine when the run is complete; a result that comes from the fault. Needs root, NSD from
`make servers`, and for `disks` as much free memory as a run wants free disk (1 GB).

    sudo .venv/bin/python benches/kills.py [kills] [disks] [--seed N] [--count N] [--out FILE]

Each outcome is a line of FILE. A bench that is started again with the same FILE goes on after its last line.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

from machines_lost import DNSRIG, digest
from smoke import add_parts, parser, sized, status

from dnsrig.experiment import forks
from dnsrig.experiment.runner import DISK_FREE_WANTED_BYTES
from dnsrig.lab import cgroup, ledger
from dnsrig.rundir import OBSERVER, TrialRecord, read_json

COUNT = {"kills": sized(100, smoke=3), "disks": sized(20, smoke=1)}
REPEATS = sized(4, smoke=2)
EXPERIMENT = ["tour", "--set", "server=nsd@forky", "--set", "zones=10", "--repeats", str(REPEATS)]
EXPERIMENT += ["--set", "storage=memory"]  # a small disk is a tmpfs, and would not be what a variant on disk asks for
PARTS = ("runner", "forks", "trial", "instrument", "server", "watch")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
ERROR, INTERRUPTED = 1, 130
STARTS_MAX = 10
DELAY_MAX_S = sized(10.0, smoke=3.0)
"""The start of a run and its trials take about as long."""
END_LIMIT_S = 300.0
TAG_START = os.environ.get(ledger.TAG_START, "kkk")
"""Benches that run at the same time need different ones."""
SPARE_BYTES = 100 << 20
"""Size of the small disk beyond the free space that a run wants."""
FULL_BYTES = 1 << 14
"""A disk with less free space is full."""


class Wrong(Exception):
    """Something that must not be."""


@dataclass
class Run:
    """One run in a folder of its own, which is started again until it is complete."""

    folder: Path
    runs: Path
    process: subprocess.Popen[bytes] | None = None
    said_from: int = 0
    """Where the words of ``process`` begin in the log."""
    seen: dict[Path, str] = field(default_factory=dict)
    """Finished trial -> its digest when it was first seen."""

    @property
    def directory(self) -> Path | None:
        return next((path.parent for path in self.runs.glob("*/*/manifest.json")), None)

    @property
    def log(self) -> Path:
        return self.folder / "runner.log"

    def running(self) -> subprocess.Popen[bytes]:
        """The process that executes the run; a new one if the last has ended."""
        if self.process is None or self.process.poll() is not None:
            words = ["--resume", str(self.directory)] if self.directory else [*EXPERIMENT, "--runs", str(self.runs)]
            with self.log.open("ab") as log:
                self.said_from = log.tell()
                self.process = subprocess.Popen(
                    [*DNSRIG, "run", *words], stdout=log, stderr=log, env=self._environment()
                )
        return self.process

    def _environment(self) -> dict[str, str]:
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        return {**os.environ, ledger.TAG_START: TAG_START, "TMPDIR": str(temporary)}

    def said(self) -> bytes:
        """What its process has printed."""
        return self.log.read_bytes()[self.said_from :]

    def await_end(self) -> int:
        """The exit status of its process."""
        assert self.process is not None
        try:
            return self.process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Wrong(f"it did not end in {END_LIMIT_S:g} s") from None

    def check_finished(self) -> None:
        """Each trial that was finished is as it was."""
        assert self.directory is not None or not self.seen
        if self.directory is not None:
            found = [path.parent for path in self.directory.glob("trials/*/*/trial.json")]
            now = {path: digest(path) for path in found if path.name.isdecimal()}  # not what is set aside
            if changed := [path for path, was in self.seen.items() if now.get(path) != was]:
                raise Wrong(f"a finished trial changed: {changed[0]}")
            self.seen = now

    def complete(self) -> dict[str, Any]:
        """Resume it until it is complete; returns how its trials ended."""
        for _ in range(STARTS_MAX):
            self.running()
            if self.await_end() not in (ERROR, INTERRUPTED, -signal.SIGKILL):
                break
        self.check_finished()
        if len(self.seen) != REPEATS or self.directory is None:
            raise Wrong(f"{len(self.seen)} of {REPEATS} trials after it was resumed")
        left = [*left_behind(), *(self.folder / "tmp").iterdir(), *self.directory.glob("trials/*/*.running")]
        if left:
            raise Wrong(f"left behind: {', '.join(map(str, left))}")
        records = [read_json(path / "trial.json", TrialRecord) for path in sorted(self.seen)]
        return {"trials": Counter(f"{record.outcome}: {record.reason}".removesuffix(": ") for record in records)}

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def left_behind() -> list[str]:
    """What trials of this bench left on this machine."""
    name = f"{ledger.PREFIX}{TAG_START}"
    trees = [tree.mount / cgroup.PARENT for tree in cgroup.hierarchies()]
    found = [*Path("/run/netns").glob(f"{name}*"), *ledger.MEMORY.glob(f"{name}*")]
    found += [path for tree in trees for path in tree.glob(f"{TAG_START}*")]
    return [*map(str, found), *map(str, ledgers())]


def ledgers() -> list[Path]:
    return sorted(ledger.FOLDER.glob(f"{TAG_START}*.json"))


def pid_of(part: str, run: Run) -> int | None:
    """The process of a part of the run; None if it does not exist now."""
    if part == "runner":
        return run.running().pid
    if part == "forks":
        assert run.process is not None
        found = subprocess.run(["pgrep", "-P", str(run.process.pid), "-f", forks.COMMAND[-1]], stdout=PIPE, check=False)
        return next(map(int, found.stdout.split()), None)
    for path in ledgers():
        with contextlib.suppress(OSError, ValueError, KeyError):
            made = json.loads(path.read_text())
            if part == "trial":
                return int(made["pid"])
            for folder in map(Path, made["cgroups"]):
                pids = [pid for pid in cgroup.processes(folder) if is_a(part, folder.name, pid)]
                if pids:
                    return pids[0]
    return None


def is_a(part: str, host: str, pid: int) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    if host != OBSERVER:
        return part == "server" and not words[0].endswith(b"dnsrig-engine")
    return part == ("watch" if b"watch" in words[:3] else "instrument")


def kill(run: Run, chance: random.Random) -> dict[str, Any]:
    """Send a signal to a part of the run, at a random moment, and look at what comes of it."""
    part, number = chance.choice(PARTS), chance.choice(SIGNALS)
    process = run.running()
    time.sleep(chance.uniform(0, DELAY_MAX_S))
    while (pid := pid_of(part, run)) is None and process.poll() is None:
        time.sleep(0.02)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    finished = len(run.seen)
    if part == "runner":
        ended = run.await_end()
        said = run.said()
        at_last = ended == -number and b"\nmore: " in said  # it had said all, and Python was ending
        if number != signal.SIGKILL and ended not in (0, INTERRUPTED) and not at_last:
            raise Wrong(f"the runner ended with {ended}")
        if ended == INTERRUPTED and (b"--resume" if f"/{REPEATS}]".encode() in said else b"interrupted") not in said:
            raise Wrong("no word of how to go on")
        if ended == INTERRUPTED and (left := left_behind()):
            raise Wrong(f"left behind: {', '.join(left)}")
    run.check_finished()
    return {"part": part, "signal": number.name, "hit": pid is not None, "finished": finished}


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    size = DISK_FREE_WANTED_BYTES + SPARE_BYTES
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "kills", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(run: Run, chance: random.Random) -> dict[str, Any]:
    """Fill the disk of a run at a random moment, and free it when the run has ended."""
    process = run.running()
    while run.directory is None and process.poll() is None:
        time.sleep(0.05)
    time.sleep(chance.uniform(0, DELAY_MAX_S))
    filler = run.runs / "filler"
    with filler.open("wb") as file:
        while (free := shutil.disk_usage(run.runs).free) >= FULL_BYTES:
            with contextlib.suppress(OSError):  # the run took some of it meanwhile
                os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, free)
    ended = run.await_end()
    said = run.said()
    filler.unlink()
    if ended and not (b"disk is full" in said or b"disk is nearly full" in said):
        raise Wrong(f"it ended with {ended} and did not name the disk")
    run.check_finished()
    return {"ended": ended, "finished": len(run.seen)}


def bench(kind: str, folder: Path, seed: int, number: int, count: int) -> Iterator[dict[str, Any]]:
    """The outcomes of ``kind`` from ``number`` to ``count``. A run takes kills until it is complete, or a full disk."""
    act: Callable[[Run, random.Random], dict[str, Any]] = kill if kind == "kills" else fill
    while number < count:
        with contextlib.ExitStack() as stack:
            own = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True)))
            run = Run(own, stack.enter_context(small_disk(own / "disk")) if kind == "disks" else own / "runs")
            stack.callback(run.end)
            while number < count and len(run.seen) < REPEATS:
                yield outcome(kind, seed, number, act, run, random.Random(f"{seed} {kind} {number}"))
                number += 1
                if kind == "disks":
                    break
            yield outcome(kind, seed, number - 1, Run.complete, run)


def outcome(
    kind: str, seed: int, number: int, what: Callable[..., dict[str, Any]], run: Run, *words: Any
) -> dict[str, Any]:
    began_s = time.monotonic()
    told: dict[str, Any] = {"kind": kind, "seed": seed, "number": number}
    try:
        told |= what(run, *words)
    except Wrong as wrong:
        told |= {"wrong": str(wrong), "said": run.log.read_text().splitlines()[-10:]}
    return {**told, "took_s": round(time.monotonic() - began_s, 1)}


def report(lines: list[dict[str, Any]]) -> bool:
    """Print the outcomes; returns whether nothing was wrong."""
    kills = Counter((line["part"], line["signal"], line["hit"]) for line in lines if "part" in line)
    print("\n| part | signal | sent | no such process any more |\n| --- | --- | --- | --- |")
    for part in PARTS:
        for number in SIGNALS:
            print(f"| {part} | {number.name} | {kills[part, number.name, True]} | {kills[part, number.name, False]} |")
    print(f"\n{sum('ended' in line for line in lines)} full disks")
    trials = sum((Counter(line["trials"]) for line in lines if "trials" in line), Counter[str]())
    print("\nTrials of the runs that were complete at the end:")
    for told, count in trials.most_common():
        print(f"- {count} {told}")
    wrong = [line for line in lines if "wrong" in line]
    print(f"\n{len(wrong)} outcomes are wrong; {sum(line['took_s'] for line in lines):,.0f} s in all")
    for line in wrong:
        print(f"- {json.dumps(line)}")
    return not wrong


def main() -> None:
    asking = parser(__doc__)
    add_parts(asking, COUNT)
    asking.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    asking.add_argument("--count", type=int, help="number of each [default: 100 kills, 20 full disks]")
    asking.add_argument("--out", type=Path, help="file of outcomes, one a line")
    asked = asking.parse_args()
    for number in SIGNALS[1:]:
        if signal.getsignal(number) is signal.SIG_IGN:  # as in the background of a shell; a run would ignore it, too
            signal.signal(number, signal.SIG_DFL)
    lines = [*map(json.loads, asked.out.open())] if asked.out and asked.out.exists() else []
    seed = lines[0]["seed"] if lines else asked.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="dnsrig-kills-") as folder:
        for kind in asked.parts:
            first = 1 + max((line["number"] for line in lines if line["kind"] == kind), default=-1)
            for line in bench(kind, Path(folder), seed, first, asked.count or COUNT[kind]):
                print(json.dumps(line), flush=True)
                lines.append(line)
                if asked.out:
                    with asked.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")
    sys.exit(status(report(lines)))


if __name__ == "__main__":
    main()
