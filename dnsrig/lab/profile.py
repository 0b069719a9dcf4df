"""Where a host's CPU time goes, and when: stacks sampled by `perf` on its CPUs, folded for flame graphs.

perf looks `RATE_HZ` times a second at each of the CPUs: a prime, so it does not keep step with anything that happens
every 10 ms. For a loop of `connect()` on the CPU that was sampled this cost 1 % of its speed (median of 12 pairs, with
and without, of one second of CPU time each, in a virtual machine of two CPUs).

Frames of the kernel have their names. Frames of a program have names if its symbols are there: for a stripped server,
the functions of its shared libraries. A program compiled without frame pointers has broken stacks above them: what
perf cannot name is `UNKNOWN`.

Beside the folded file lie rows, one a sample: when it was taken, and which line of that file its stack is. So what ran
in some part of the time can be separated from what ran in the rest.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import polars as pl

from dnsrig import paths
from dnsrig.confinement import ENVIRONMENT
from dnsrig.rundir import ProfileRecord

RATE_HZ = 199
MOST_SAMPLES = 1_000_000
"""Read of one profile: 84 minutes of one CPU."""
MOST_DATA = "1G"
"""Size of perf's file, where it ends by itself."""
START_LIMIT_S = 10.0
STOP_LIMIT_S = 20.0
FOLD_LIMIT_S = 120.0
TRY_CPU_S = 0.05

KERNEL_NAMES = Path("/proc/kallsyms")

UNKNOWN = "[unknown]"
"""Stands for all frames without a name that follow each other."""
LONGEST_NAME = 200
"""Characters of a frame; templates of C++ can be longer."""

_OWNER = re.compile(r" *([0-9]{1,10}) +([0-9]{1,10})\.([0-9]{9}): *")
_FRAME = re.compile(r"\t *[0-9a-f]+ (.*)")
_COPY = re.compile(r"(\.(cold|constprop|isra|part)(\.\d+)?)+$")
"""What GCC adds to the name of a function when it makes a copy or cuts one up: it is still that function."""


class Sample(NamedTuple):
    """What one look at a CPU found."""

    pid: int
    time_ns: int
    """CLOCK_MONOTONIC."""
    frames: list[str]
    """Innermost first."""

    @property
    def stack(self) -> str:
        """``outermost;…;innermost``."""
        return ";".join(reversed(self.frames))


@dataclass
class Profiler:
    """`perf record` while it runs. It dies with the calling process (PR_SET_PDEATHSIG)."""

    host: str
    popen: subprocess.Popen[str]
    data: Path

    @staticmethod
    def unavailable() -> str | None:
        """Why stacks cannot be sampled here, by trying it; None if they can."""
        if shutil.which("perf", path=ENVIRONMENT["PATH"]) is None:
            return "perf is not installed: apt-get install linux-perf (or your distribution's package)"
        if not named(KERNEL_NAMES):
            return "the kernel hides the names of its functions: sysctl -w kernel.kptr_restrict=1"
        with tempfile.TemporaryDirectory() as folder:
            profiler = Profiler.start("this one", sorted(os.sched_getaffinity(0)), Path(folder, "perf.data"))
            enough_s = time.process_time() + TRY_CPU_S
            while time.process_time() < enough_s:
                Path("/").stat()
            return profiler.stop({os.getpid()}, Path(folder, "folded")).reason or None

    @staticmethod
    def start(host: str, cpus: Sequence[int], data: Path) -> Profiler:
        """Sample the CPUs of ``host`` from now on into the file ``data``; perf runs on the others, if there are any.

        It never fails: `stop` says what went wrong.
        """
        own = os.sched_getaffinity(0)
        record = ["perf", "record", "--quiet", "--event=cpu-clock", f"--freq={RATE_HZ}", "-g"]
        record += ["--clockid=CLOCK_MONOTONIC"]  # as all other times of a trial
        record += [f"--cpu={_list(cpus)}", f"--max-size={MOST_DATA}", f"--output={data}"]
        # The kernel notes which build of a file runs, so that a server of a root file system is not
        # given the names of another build that the machine has in the same place.
        record += ["--no-buildid-cache", "--buildid-mmap"]
        # It waits for our word, and says when it samples: nothing of what follows is missed.
        record += ["--delay=-1", "--control=fd:0,1"]
        popen = _start(record, own - set(cpus) or own, stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        profiler = Profiler(host, popen, data)
        profiler._enable()
        return profiler

    def stop(self, pids: Collection[int], out: Path) -> ProfileRecord:
        """End it, and write the stacks of the processes ``pids`` to ``out``: ``outermost;…;innermost count``.

        Beside it, with the ending ``.arrow``, goes a row a sample: time_ns, stack (the number of its line, from 0).

        Call it while they still run: perf looks for the files of a program in the root that it has.
        """
        early = self.popen.poll() is not None
        try:
            if reason := self._end():
                return ProfileRecord(reason=reason)
            taken, reason = self._read(pids)
        finally:
            self.data.unlink(missing_ok=True)
        _write(taken, out)
        if early and not reason:
            reason = f"perf ended before its time, as at {MOST_DATA} of data"
        return ProfileRecord(samples=len(taken), rate_per_s=RATE_HZ, reason=reason)

    def _enable(self) -> None:
        assert self.popen.stdin is not None and self.popen.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            os.write(self.popen.stdin.fileno(), b"enable\n")
        ready, _, _ = select.select([self.popen.stdout], [], [], START_LIMIT_S)
        if not ready:
            self.popen.kill()

    def _end(self) -> str:
        """Why there are no samples; empty if all went well."""
        with self.popen:
            self.popen.send_signal(signal.SIGINT)
            try:
                # Its standard input stays open until then: at the end of it, perf 6.1 may leave its file unfinished.
                self.popen.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                return f"perf did not end within {STOP_LIMIT_S:g} s"
            assert self.popen.stdout is not None
            said = self.popen.stdout.read()
        # Having written its file, perf ends by the signal that it was sent.
        if self.popen.returncode in (0, -signal.SIGINT):
            return ""
        complaints = (line.strip("\0 ") for line in said.split("\n"))
        first = next((line for line in complaints if line not in ("", "ack", "Error:")), "")
        return f"perf: {first or 'it did not start, or was ended'}"

    def _read(self, pids: Collection[int]) -> tuple[list[tuple[int, str]], str]:
        """When each stack of ``pids`` was seen, and what is wrong with them."""
        script = ["perf", "script", f"--input={self.data}", "--fields=pid,time,ip,sym", "--ns", "--no-inline"]
        popen = _start(script, os.sched_getaffinity(0), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        late = threading.Timer(FOLD_LIMIT_S, popen.kill)
        late.start()
        try:
            with popen:  # at its end perf is waited for; if it has more to say, it ends by SIGPIPE
                assert popen.stdout is not None
                found = samples(popen.stdout)
                taken = stacks(islice(found, MOST_SAMPLES), pids)
                more = next(found, None) is not None
        finally:
            late.cancel()
        if more:
            return taken, f"only the first {MOST_SAMPLES:,} samples were read"
        if popen.returncode != 0:
            return taken, f"perf script ended with status {popen.returncode}: there may be more samples"
        return taken, "" if taken else f"in no sample was a process of host {self.host}"


def samples(lines: Iterable[str]) -> Iterator[Sample]:
    """What ``perf script -F pid,time,ip,sym --ns`` prints: process and time, its frames from the innermost on, an empty
    line.

    Other lines are passed over.
    """
    owner: tuple[int, int] | None = None
    frames: list[str] = []
    for line in (line.rstrip("\n") for line in lines):
        if frame := _FRAME.fullmatch(line):
            name = _plain(frame[1])
            if name != UNKNOWN or frames[-1:] != [UNKNOWN]:
                frames.append(name)
        else:
            if owner is not None and frames:
                yield Sample(*owner, frames)
            head = _OWNER.fullmatch(line)
            owner, frames = (int(head[1]), int(head[2] + head[3])) if head else None, []
    if owner is not None and frames:
        yield Sample(*owner, frames)


def stacks(found: Iterable[Sample], pids: Collection[int]) -> list[tuple[int, str]]:
    """When each stack of one of ``pids`` was seen, in the order of time."""
    known: dict[str, str] = {}  # few stacks are seen many times: one text each
    taken = ((sample.time_ns, sample.stack) for sample in found if sample.pid in pids)
    return sorted((time_ns, known.setdefault(stack, stack)) for time_ns, stack in taken)


def _write(taken: Sequence[tuple[int, str]], out: Path) -> None:
    counted = sorted(Counter(stack for _, stack in taken).items())
    numbers = {stack: number for number, (stack, _) in enumerate(counted)}
    out.write_text("".join(f"{stack} {count}\n" for stack, count in counted))
    rows = {"time_ns": [time_ns for time_ns, _ in taken], "stack": [numbers[stack] for _, stack in taken]}
    schema = {"time_ns": pl.Int64, "stack": pl.UInt32}
    pl.DataFrame(rows, schema=schema).write_ipc_stream(out.with_suffix(".arrow"))


def named(symbols: Path) -> bool:
    """Whether the kernel tells where its functions are, by the first lines of /proc/kallsyms.

    It writes zeros if this user may not know (proc_sys_kernel(5), ``kptr_restrict``); perf then finds no name.
    """
    if not symbols.exists():
        return False
    with symbols.open() as lines:
        return any(line.partition(" ")[0].strip("0") for line in islice(lines, 1000))


def _plain(name: str) -> str:
    """Make a name fit for a folded line, in which ``;`` separates frames."""
    plain = _COPY.sub("", name[:LONGEST_NAME].strip()).replace(";", ":")
    return "".join(char if char.isprintable() else "?" for char in plain) or UNKNOWN


def _start(command: Sequence[str], cpus: Iterable[int], *, stdin: int, stderr: int) -> subprocess.Popen[str]:
    """Start perf outside of every host. The user's configuration of perf does not count."""
    return subprocess.Popen(
        [str(paths.engine()), "enter", f"--cpus={_list(cpus)}", "--", *command],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=ENVIRONMENT | {"PERF_CONFIG": os.devnull},
        start_new_session=True,
        text=True,
        errors="replace",
    )


def _list(cpus: Iterable[int]) -> str:
    return ",".join(map(str, sorted(cpus)))
