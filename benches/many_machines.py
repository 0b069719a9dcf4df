"""What a hundred machines cost the run: 10,000 trials by 100 workers that only pretend to measure, killed in the middle

The summary is in docs/explanation/machines.md. A real Dask scheduler and real workers, one process each with a
cache of its own, all on this machine; needs 12 GB of memory for 100 of them, and no time of them is asserted.

    python benches/many_machines.py [--machines 100] [--variants 100] [--folder NEW]
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dask_cluster import Cluster
from smoke import parser, scratch, sized

from dnsrig.rundir import SCHEMA_VERSION, Manifest, read_json

DNSRIG = [sys.executable, "-P", "-m", "dnsrig"]
LEASE_S = 30.0
LOOK_S = 0.5
ROWS = 10
PRETENDING = """
import sys
from dnsrig.experiment import children
children.TRIAL_COMMAND = [sys.executable, "-I", "-S", {program!r}]
"""
TRIAL = """
import json, os, sys
spec, target = json.load(open(sys.argv[-2])), sys.argv[-1]
os.makedirs(target)
record = dict(schema_version={version}, spec=spec, outcome="done", phases=[], servers={{}}, instruments={{}})
record["metrics"] = {{spec["main_metric"]: 1.0 + spec["repeat"]}}
json.dump(record, open(os.path.join(target, "trial.json"), "w"))
"""
"""A trial that is done at once, and costs as little as Python can."""
EXPERIMENT = """
title = "Trials that only pretend"
question = "What does it cost to spread them?"
procedure = "latency"
repeats = {machines}
limit_s = 60

[dataset]
kind = "tiny-zones"

[hosts.primary]
server = "echo@engine"

[matrix]
"options.rate_qps" = {rates}
"""


@dataclass
class Sample:
    finished: int
    seconds: float
    runner_bytes: int
    runner_cpu_s: float
    scheduler_bytes: int
    scheduler_cpu_s: float


@dataclass
class Watched:
    """The run as it goes on, with what runner and scheduler take."""

    folder: Path
    scheduler: psutil.Process
    samples: list[Sample] = field(default_factory=list)

    def follow(self, runner: subprocess.Popen[bytes], log: Path, until: int) -> None:
        """Take samples until ``until`` trials are finished, or the run has ended."""
        process = psutil.Process(runner.pid)
        while runner.poll() is None and (not self.samples or self.samples[-1].finished < until):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.samples.append(self._sample(process, finished(log)))
            time.sleep(LOOK_S)

    def _sample(self, runner: psutil.Process, done: int) -> Sample:
        ours, theirs = runner.cpu_times(), self.scheduler.cpu_times()
        return Sample(
            done, time.monotonic(), runner.memory_info().rss, ours.user + ours.system,
            self.scheduler.memory_info().rss, theirs.user + theirs.system,
        )  # fmt: skip


def finished(log: Path) -> int:
    """The run says a line of each."""
    return len(re.findall(rb"^\[\d+/\d+\]", log.read_bytes(), re.MULTILINE))


def table(samples: list[Sample], total: int) -> Iterator[str]:
    yield "| finished | runner, MB | CPU a trial, ms | scheduler, MB | CPU a trial, ms | trials/s |"
    yield "| --- | --- | --- | --- | --- | --- |"
    base = next((sample for sample in samples if sample.finished), samples[-1])
    for part in range(1, ROWS + 1):
        now = next((s for s in samples if s.finished >= total * part // ROWS), samples[-1])
        if (more := now.finished - base.finished) <= 0:
            continue
        yield (
            f"| {now.finished} | {now.runner_bytes / 1e6:.0f} | {1e3 * (now.runner_cpu_s - base.runner_cpu_s) / more:.1f} "
            f"| {now.scheduler_bytes / 1e6:.0f} | {1e3 * (now.scheduler_cpu_s - base.scheduler_cpu_s) / more:.1f} "
            f"| {more / (now.seconds - base.seconds):.1f} |"
        )
        base = now


def records(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*/trials/*/*/trial.json")}


def loopback_bytes() -> int:
    sent: int = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    return sent


def start(folder: Path, log: Path, *words: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen([*DNSRIG, "run", *words], cwd=folder, stdout=file, stderr=file)


def measure(folder: Path, cluster: Cluster, total: int) -> None:
    on = ("--on", cluster.on)
    watched = Watched(folder, psutil.Process(cluster.scheduler.pid))
    before = loopback_bytes()
    first, second = folder / "first.log", folder / "second.log"
    runner = start(folder, first, str(folder / "pretend.toml"), "--max-trials", str(total), *on)
    watched.follow(runner, first, total // 2)
    runner.kill()
    runner.wait()
    print(
        f"killed when {watched.samples[-1].finished} of {total} were finished"
        if watched.samples
        else "it ended at once"
    )
    print("\n".join(table(watched.samples, total)))
    time.sleep(LEASE_S + 5)
    kept, (directory,) = records(folder), folder.glob("runs/*/*")
    again = Watched(folder, watched.scheduler)
    runner = start(folder, second, "--resume", str(directory), *on)
    again.follow(runner, second, total + 1)
    status, after = runner.wait(), records(folder)
    print(f"\ngone on: exit status {status}, {len(after)} of {total} finished")
    print(f"finished before the kill: {len(kept)}, unchanged: {len(kept.items() & after.items())}")
    print("\n".join(table(again.samples, total)))
    manifest = read_json(directory / "manifest.json", Manifest)
    print(f"\nloopback: {(loopback_bytes() - before) / total:.0f} bytes a trial")
    print(f"on disk: {sum(path.stat().st_size for path in after) / len(after):.0f} bytes a result; "
          f"manifest {(directory / 'manifest.json').stat().st_size / 1e6:.1f} MB of {len(manifest.order)} trials")  # fmt: skip


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("--machines", type=int, default=sized(100, smoke=2))
    asking.add_argument("--variants", type=int, default=sized(100, smoke=10))
    asking.add_argument("--folder", type=Path, default=scratch())
    asked = asking.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="dnsrig-many-"))
    folder.mkdir(parents=True, exist_ok=True)
    trial, preload = folder / "pretend.py", folder / "preload.py"
    trial.write_text(TRIAL.format(version=SCHEMA_VERSION))
    preload.write_text(PRETENDING.format(program=str(trial)))
    rates = [1000 + 10 * number for number in range(asked.variants)]
    (folder / "pretend.toml").write_text(EXPERIMENT.format(machines=asked.machines, rates=rates))
    os.environ["COLUMNS"] = "200"
    cluster = Cluster(folder, [f"m{number:03}" for number in range(asked.machines)], preload, nanny=False)
    os.environ |= cluster.environment("client")
    try:
        measure(folder, cluster, asked.machines * asked.variants)
    finally:
        cluster.end()
    print(folder)


if __name__ == "__main__":
    main()
