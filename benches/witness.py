"""Does the witness name the place where packets were lost? Losses made on purpose at each place, and clean trials.

    .venv/bin/python benches/witness.py [lossy] [clean]

Needs root and nft (package nftables). Each trial asks the echo server over UDP, and in a lossy one this program
interferes once the measurement runs: it stops the generator or the server, puts a short queue or a filter that drops
before an interface, or opens the server's port a second time. The witness (`runs/packets.py`) must then name this place
as the one that lost most. In a clean trial of the echo server, BIND, Knot DNS or NSD the trap `lost-on-the-way` must
find nothing. Trials in which the kernels counted other datagrams than the generator are printed: warm-up or other
traffic.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from false_alarms import Quiet  # which finds what tests share
from own_processes import engines, measuring_loads
from smoke import SMOKE, add_parts, parser, sized, status

from dnsrig.experiment import preparation, runner
from dnsrig.rundir import TrialSpec
from dnsrig.runs import packets
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

REPEATS = sized(3, smoke=1)
CLEAN_REPEATS = sized(25, smoke=1)
CLEAN_SERVERS = sized(("echo@engine", "bind@forky", "knot@forky", "nsd@forky"), smoke=("echo@engine",))
DURATION_S = sized(3, smoke=2)
AFTER_S = 0.5
"""From the start of the measurement until something is done."""
TRAP = "lost-on-the-way"
LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438
"""A number that is the same on every architecture (pidfd_getfd(2))."""
SECOND = """
import socket, sys
mine = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
mine.bind((sys.argv[1], 53))
while True:
    mine.recv(4096)
"""
"""A program that takes the queries of some clients, and answers none."""
AS_SERVER = ["setpriv", "--reuid=65534", "--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"]
"""The kernel shares a port between sockets of one user only (SO_REUSEPORT, socket(7))."""


@dataclass(frozen=True)
class Pids:
    load: int
    server: int

    def inside(self, pid: int, *words: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{pid}/ns/net", *words]

    def interface(self, pid: int) -> str:
        listed = subprocess.run(
            self.inside(pid, "ip", "-o", "link"), check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        return next(name for line in listed.splitlines() if (name := line.split(": ")[1].split("@")[0]) != "lo")


def stop(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def overflow(pid: int) -> None:
    """Leave no room in the sockets of the generator, and stop it while answers are on their way."""
    handle = os.pidfd_open(pid)
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if link.readlink().name.startswith("socket:"):
            own = socket.socket(fileno=LIBC.syscall(PIDFD_GETFD, handle, int(link.name), 0))
            if own.type == socket.SOCK_DGRAM and own.family != socket.AF_UNIX:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            own.close()
    os.close(handle)
    stop(pid, 0.3)


def queue(pids: Pids, pid: int, *words: str) -> None:
    """A queue before the interface of the host of ``pid``, for a while."""
    name = pids.interface(pid)
    before = subprocess.run(
        pids.inside(pid, "tc", "qdisc", "show", "dev", name), check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    subprocess.run(pids.inside(pid, "tc", "qdisc", "replace", "dev", name, "root", *words), check=True)
    time.sleep(1)
    kind = before.split()[1] if before else "noqueue"
    restore = ["del", "dev", name, "root"] if kind == "noqueue" else ["replace", "dev", name, "root", kind]
    subprocess.run(pids.inside(pid, "tc", "qdisc", *restore), check=True)


def drop(pids: Pids, pid: int, hook: str) -> None:
    """Drop every tenth packet at the interface of the host of ``pid``, for a while."""
    name = pids.interface(pid)
    rules = f"""
add table netdev witness
add chain netdev witness drops {{ type filter hook {hook} device "{name}" priority 0; }}
add rule netdev witness drops meta protocol ip numgen inc mod 10 == 0 drop
"""
    subprocess.run(pids.inside(pid, "nft", "-f", "-"), check=True, input=rules, text=True)
    time.sleep(1)
    subprocess.run(pids.inside(pid, "nft", "delete", "table", "netdev", "witness"), check=True)


def second(pids: Pids, address: str) -> None:
    words = pids.inside(pids.server, *AS_SERVER, sys.executable, "-c", SECOND, address)
    with subprocess.Popen(words) as program:
        time.sleep(1)
        program.kill()


@dataclass(frozen=True)
class Case:
    """A place, what is done there, and what the witness has to name."""

    act: Callable[[Pids, str], None] | None
    where: str
    why: str
    settings: Sequence[str] = ()
    trap: str = ""
    """A trap that finds it as well, if the place is no queue of packets."""


SLOW = 'hosts.primary.settings."delay"="200ms"'
CASES: dict[str, Case] = {
    "generator's socket": Case(
        lambda pids, _: overflow(pids.load), "generator", "at the generator's socket", [SLOW, "options.clients=4"],
    ),
    "generator's queue": Case(
        lambda pids, _: queue(pids, pids.load, "tbf", "rate", "500kbit", "burst", "2kb", "limit", "4kb"),
        "generator", "in the queue of the generator's interface",
    ),
    "drop where the generator's host sends": Case(
        lambda pids, _: drop(pids, pids.load, "egress"), "generator", "in the queue of the generator's interface",
    ),
    "drop where the generator's host receives": Case(
        lambda pids, _: drop(pids, pids.load, "ingress"), "generator", "between the generator's interface and its socket",
    ),
    "server's socket": Case(
        lambda pids, _: stop(pids.server, 0.9), "server", "at the server's socket", ["rate_qps=50000", 'hosts.primary.settings."threads"=1'],
    ),
    "drop where the server's host receives": Case(
        lambda pids, _: drop(pids, pids.server, "ingress"), "server", "between the server's interface and its socket",
    ),
    "drop where the server's host sends": Case(
        lambda pids, _: drop(pids, pids.server, "egress"), "server", "in the queue of the server's interface",
    ),
    "server's queue": Case(
        lambda pids, _: queue(pids, pids.server, "tbf", "rate", "500kbit", "burst", "2kb", "limit", "4kb"),
        "server", "in the queue of the server's interface",
    ),
    "second process on the port": Case(second, "server", "in another program on its port"),
    "one CPU for both": Case(
        None, "", "", ["hosts.observer.cpus=[1]", "rate_qps=400000"], trap="generator-bottleneck",
    ),
}  # fmt: skip


class Interfering(Quiet):
    """Progress of a run, which interferes with each trial once."""

    def __init__(self, act: Callable[[Pids, str], None]) -> None:
        self.act, self.thread, self.failed = act, Thread(), False

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self.thread = Thread(target=self._wait, args=(str(spec.hosts["primary"].address),))
        self.thread.start()

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None:
        self.thread.join()
        if self.failed:
            raise RuntimeError("the interference failed, or the measurement was never seen")
        if trial is None:
            print(f"no result: {reason}", flush=True)

    def _wait(self, address: str) -> None:
        self.failed = True
        until = time.monotonic() + 60
        while (pids := measuring()) is None:
            if time.monotonic() > until:
                return
            time.sleep(0.05)
        time.sleep(AFTER_S)
        self.act(pids, address)
        self.failed = False


def measuring() -> Pids | None:
    """The generator that measures and the server, of the trial below this process."""
    servers = [pid for pid, words in engines() if words[:2] == ["serve", "echo"]]
    loads = measuring_loads()
    return Pids(loads[0], servers[0]) if loads and servers else None


def execute(settings: Sequence[str], repeats: int, folder: Path, progress: Any) -> Run:
    usual = ["transport=udp", f"options.duration_s={DURATION_S}", "options.warmup_s=0.5", "options.clients=64"]
    rate = [] if any(word.startswith("rate_qps") for word in settings) else ["rate_qps=3000"]
    request = preparation.Request("echo-baseline", settings=[*usual, *rate, *settings], repeats=repeats)
    directory = runner.create(preparation.prepare(request, lambda text: None), folder)
    runner.execute(Run.open(directory).manifest, directory, progress)
    return Run.open(directory)


def named(trial: Trial, case: Case) -> tuple[bool, str]:
    """Whether the place was named as that of most losses, and what was reported."""
    if case.trap:
        found = all_traps()[case.trap].after(trial)
        return found is not None and found.verdict == "found", found.summary if found else "no conclusion"
    counts = packets.counts(trial)
    if counts is None or not counts.losses:
        return False, f"no loss is reported ({trial.record.outcome} {trial.record.reason})"
    worst = max(counts.losses, key=lambda loss: loss.datagrams)
    told = "; ".join(f"{loss.datagrams:,} {loss.why}" for loss in counts.losses)
    return worst.where == case.where and case.why in worst.why, told


def lossy(folder: Path) -> bool:
    right = Counter[str]()
    for place, case in CASES.items():
        run = execute(case.settings, REPEATS, folder, Interfering(case.act) if case.act else Quiet())
        for trial in run.trials:
            good, told = named(trial, case)
            right[place] += good
            print(f"{place}: {'right' if good else 'WRONG'}: {told}", flush=True)
    print(f"lossy: {right.total()} of {REPEATS * len(CASES)} named rightly")
    return right.total() == REPEATS * len(CASES)


def clean(folder: Path) -> bool:
    marks, unaccounted, trials = 0, 0, 0
    for server in CLEAN_SERVERS:
        run = execute([f"hosts.primary.server={server}"], CLEAN_REPEATS, folder, Quiet())
        for trial in run.trials:
            conclusion, counts = all_traps()[TRAP].after(trial), packets.counts(trial)
            trials += 1
            marks += conclusion is None or conclusion.verdict != "clear"
            exact = (
                counts is not None and counts.returned + sum(loss.datagrams for loss in counts.losses) == counts.sent
            )
            unaccounted += not exact
            if conclusion is None or conclusion.verdict != "clear" or not exact:
                print(f"{server}: {conclusion}; {counts}", flush=True)
    print(f"clean: {marks} marks in {trials} trials; in {unaccounted} some datagrams are not accounted for")
    return not marks


def main() -> int:
    asking = parser(__doc__)
    add_parts(asking, PARTS)
    parts = asking.parse_args().parts
    folder = Path(tempfile.mkdtemp(prefix="dnsrig-witness-"))
    good = [PARTS[part](folder) for part in parts]
    if not all(good) and not SMOKE:
        print(f"the runs are kept in {folder}")
    else:
        shutil.rmtree(folder)
    return status(all(good))


PARTS: dict[str, Callable[[Path], bool]] = {"lossy": lossy, "clean": clean}


if __name__ == "__main__":
    raise SystemExit(main())
