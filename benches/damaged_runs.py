"""What damaged and hostile files of a run do to its readers: report, export, compare, browse and resume.

Each case is a file of a run with one kind of damage, links out of the run and FIFOs among them
(`tests/damaged_files.py`). The runs are made up. Each run is read by a process of its own, which is ended if one
command takes too long. A fault is a traceback, a command that takes more than 10 s of CPU time or waits as long, more
than 500 MB of memory, a process that dies, and anything outside of the run that is opened or changed.

    python benches/damaged_runs.py [--cases N] [--seed N]
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ |= {"POLARS_MAX_THREADS": "1", "COLUMNS": "1000", "TERM": "dumb"}
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import damaged_files  # type: ignore[import-not-found, unused-ignore]
from damaged_files import Damaged, Watch  # type: ignore[import-not-found, unused-ignore]
from smoke import parser, sized, status

import dnsrig
from dnsrig.errors import DnsrigError

CASES = sized(5_000, smoke=8)
TRIALS = sized(30, smoke=8)
"""Trials of a run: as many files of trials are damaged in it."""
MOST_CPU_S = 10
MOST_MB = 500
MOST_BLOCKED_S = 10
"""In which a command does nothing but wait."""
FORMATS = (
    "csv",
    "json",
    "markdown",
    "parquet",
    "pairs",
    "perfetto",
    "speedscope",
    "svg",
    "png",
    "paper",
    "dns-metrics",
)
"""Each run is exported to one of them."""
SHOWN = 20
"""Faults of a run."""
TRACES = ("Traceback", "this should not happen")
Step = tuple[str, Callable[[], str]]


def steps(run: Path, whole: Path, number: int) -> Iterator[Step]:
    """The commands, each with a name and what executes it; what a command says is returned."""
    yield "report", lambda: command("report", run)
    yield "export", lambda: command("export", run, "--format", FORMATS[number % len(FORMATS)])
    yield "compare", lambda: command("compare", whole, run) + command("compare", run)
    yield "resume", lambda: command("run", "--resume", run, "--dry-run") + resumed(run)
    yield from browse_steps(run, number)


def command(*words: object) -> str:
    """What `dnsrig` with these words prints."""
    from dnsrig.cli import _app

    said = io.StringIO()
    sys.argv = ["dnsrig", *map(str, words)]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        _app.main()
    return said.getvalue()


def resumed(run: Path) -> str:
    """What resuming writes before the first trial."""
    from dnsrig.cli import _resume
    from dnsrig.experiment import resume

    try:
        manifest = _resume.read(run)
        resume.set_invalid_aside(manifest, run)
        resume.extend(run, manifest.repeats + 1, 1)
    except (DnsrigError, OSError) as error:
        return str(error)
    return ""


def browse_steps(run: Path, number: int) -> Iterator[Step]:
    import browsing  # type: ignore[import-not-found, unused-ignore]

    from dnsrig.browse.scan import run_id

    root = run.parents[1]
    client = browsing.client(root, root.parent / "cache")
    where = f"/run/{run_id(run.relative_to(root).as_posix())}"

    def got(*paths: str) -> str:
        answers = [client.get(path) for path in paths]
        wrong = [
            f"{path}: Traceback: status {answer.status_code}"
            for path, answer in zip(paths, answers)
            if answer.is_server_error
        ]
        return "\n".join([*wrong, *(answer.text for answer in answers)])

    yield "list of runs", lambda: got("/")
    yield "run", lambda: got(where, f"{where}/findings", f"{where}/conditions", f"{where}/live.json")
    names = [f"{where}/trial/v00/{number}" for number in range(1, TRIALS + 1)]
    yield "trials", lambda: got(*names)
    some = names[number % 3 :: 3]
    yield "axes", lambda: got(*[f"{name}/{what}.json" for name in some for what in ("axis", "profile")])
    yield "charts", lambda: got(*[f"{where}/chart/{name}.json" for name in ("time-by-variant", "repeats")])
    other = run_id(next(each for each in sorted(root.glob("*/*")) if each != run).relative_to(root).as_posix())
    yield (
        "others",
        lambda: got(f"/compare?run={other}&run={where.split('/')[2]}", f"/history?run={where.split('/')[2]}"),
    )
    form = {"form_token": browsing.ACCESS.form_token, "note": "one", "tags": "", "baseline": "yes"}
    yield (
        "note",
        lambda: str(client.post(f"{where}/notes", data=form, headers={"origin": browsing.ADDRESS}).status_code),
    )


def child(run: Path, whole: Path, number: int, told: int) -> None:
    """Execute all commands, and write a line before and after each."""
    resource.setrlimit(resource.RLIMIT_CPU, (10 * MOST_CPU_S, 10 * MOST_CPU_S))
    with os.fdopen(told, "w", buffering=1) as out:
        for name, execute in steps(run, whole, number):
            print(json.dumps({"step": name}), file=out)
            Path("/proc/self/clear_refs").write_text("5")
            used = time.process_time()
            try:
                said = execute()
            except BaseException:
                said = traceback.format_exc()
            print(json.dumps({"said": said[-200_000:], "mb": peak_mb(), "cpu_s": time.process_time() - used}), file=out)


def peak_mb() -> float:
    """The most memory since it was last asked."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


@dataclass
class Seen:
    """What became of the cases so far."""

    faults: list[str] = field(default_factory=list)
    mb: dict[str, float] = field(default_factory=dict)
    """The most memory of each command."""
    cpu_s: dict[str, list[float]] = field(default_factory=dict)
    """The CPU time of each command, run by run."""

    def add(self, step: str, what: dict[str, Any]) -> list[str]:
        """Note what one command did; returns what was wrong with it."""
        if "fault" in what:
            return [f"{step}: {what['fault']}"]
        mb, cpu_s = float(what["mb"]), float(what["cpu_s"])
        self.mb[step] = max(self.mb.get(step, 0.0), mb)
        self.cpu_s.setdefault(step, []).append(cpu_s)
        wrong = [f"{step}: {line}" for line in traces(what["said"])]
        wrong += [f"{step}: {mb:.0f} MB"] if mb > MOST_MB else []
        return wrong + ([f"{step}: {cpu_s:.0f} s"] if cpu_s > MOST_CPU_S else [])


def traces(said: str) -> list[str]:
    """The first place where a command shows that it did not expect what it read."""
    lines = said.splitlines()
    places = (at for at, line in enumerate(lines) if any(text in line for text in TRACES))
    return [" / ".join([*lines[max(0, at - 1) : at + 1], lines[-1]])[:400] for at in itertools.islice(places, 1)]


def examine(damaged: Damaged, number: int, wholes: dict[str, Path], scratch: Path, seen: Seen) -> list[str]:
    """Make a damaged run and execute all commands; returns what was wrong."""
    root, outside = scratch / "root", scratch / "outside"
    run, other = root / "synthetic/damaged", root / "synthetic/other"
    damaged.make(wholes[damaged.kind], run, outside)
    shutil.copytree(wholes[damaged.kind], other)
    before, watch, wrong = states(outside), Watch(outside), list[str]()
    for step, what in executed(run, other, number):
        wrong += seen.add(step, what)
        wrong += [f"{step}: outside of the run, {name}" for name in sorted(watch.seen())]
    watch.close()
    if states(outside) != before:
        wrong.append("something outside of the run was changed")
    for folder in (root, outside, scratch / "cache"):
        shutil.rmtree(folder, ignore_errors=True)
    return wrong


def states(folder: Path) -> dict[str, Any]:
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns, path.lstat().st_ino) for path in folder.rglob("*")
    }


def executed(run: Path, whole: Path, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each command and its outcome, or the fault at which the process ended."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        os.setsid()
        with contextlib.suppress(BaseException):
            child(run, whole, number, writing)
        os._exit(0)
    os.close(writing)
    step, rest, blocked_s = "start", b"", 0
    with os.fdopen(reading, "rb", buffering=0) as told:
        while True:
            if not select.select([told], [], [], 1)[0]:
                blocked_s = 0 if is_busy(pid) else blocked_s + 1
                if blocked_s > MOST_BLOCKED_S:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    yield step, {"fault": f"waits for more than {MOST_BLOCKED_S} s"}
                    return
                continue
            if not (data := told.read(1 << 20)):
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in map(json.loads, lines):
                step, blocked_s = line.get("step", step), 0
                if "said" in line:
                    yield step, line
    _, ended = os.waitpid(pid, 0)
    if ended:
        yield step, {"fault": f"the process ended with {os.waitstatus_to_exitcode(ended)}"}


def is_busy(pid: int) -> bool:
    """Whether a thread executes, or would if it had a CPU: on a busy machine that may take long."""
    states = (path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat"))
    return not {"R", "D"}.isdisjoint(states)


def prepared(scratch: Path) -> dict[str, Path]:
    """The whole runs; made in another process, because polars must not have been used before a fork."""
    pid = os.fork()
    if not pid:
        try:
            made = damaged_files.build(scratch / "whole", TRIALS)
            (scratch / "whole.json").write_text(json.dumps({name: str(path) for name, path in made.items()}))
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.waitpid(pid, 0)
    return {name: Path(path) for name, path in json.loads((scratch / "whole.json").read_text()).items()}


READING = (
    "browse",
    "checks",
    "cli",
    "comparison",
    "metrics",
    "prediction",
    "report",
    "rundir",
    "runs",
    "stats",
    "traps",
)


def import_all() -> None:
    """What the commands import; each process would otherwise need seconds for it."""
    for module in pkgutil.walk_packages(dnsrig.__path__, "dnsrig."):
        if module.name.split(".")[1] in READING:
            importlib.import_module(module.name)
    import altair
    import browsing  # type: ignore[import-not-found, unused-ignore]  # noqa: F401

    altair.Chart()


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("--cases", type=int, default=CASES, help=f"number of cases, by default {CASES:,}")
    asking.add_argument("--seed", type=int, default=1, help="seed of the cases, by default 1")
    asked = asking.parse_args()
    import_all()
    began, seen, cases, faulty = time.monotonic(), Seen(), Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="damaged-") as folder:
        scratch = Path(folder)
        os.environ["DNSRIG_CACHE"] = str(scratch / "cache")
        os.chdir(folder)
        wholes = prepared(scratch)
        number = 0
        for number, damaged in enumerate(damaged_files.damaged(asked.seed, asked.cases, TRIALS), 1):
            wrong = examine(damaged, number, wholes, scratch, seen)
            cases.update(case.damage for case in damaged.cases)
            faulty += bool(wrong)
            seen.faults += wrong
            if wrong:
                told = ", ".join(f"{case.file} {case.damage}" for case in damaged.cases)
                print(f"run {number} ({damaged.kind}: {told}):", *wrong[:SHOWN], sep="\n    ", flush=True)
        os.chdir("/")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(cases.items()))
    print(
        f"{cases.total():,} cases in {number:,} runs with seed {asked.seed}, {time.monotonic() - began:,.0f} s: {counts}"
    )
    print("command       most memory  CPU time, median and most")
    for step, used in seen.cpu_s.items():
        print(f"{step:14}{seen.mb[step]:8.0f} MB {statistics.median(used):12.2f} s {max(used):10.2f} s")
    print(f"faults: {len(seen.faults)}, in {faulty} runs")
    return status(not seen.faults)


if __name__ == "__main__":
    sys.exit(main())
