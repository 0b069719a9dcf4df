"""A machine with a kernel, a boot id and clocks of its own: a guest of User-mode Linux, with a link to a namespace.

The link is a TAP device in that namespace, which has nothing else. `uml_guest_program.py` is what runs inside.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dnsrig import paths
from dnsrig.lab import addresses, ledger, removal, uml
from dnsrig.lab.host import inside

PROGRAM = Path(__file__).with_name("uml_guest_program.py")
OURS, ITS = (str(addresses.TRIED.ipv4[number]) for number in (1, 2))
PREFIX_LENGTH = 30
TAP = "tap0"
PORT = 5399
ANSWER_LIMIT_S = 60.0
COMPARE_LIMIT_S = 60.0


@dataclass(frozen=True)
class Clocks:
    """What the guest reads from its own clocks, and how far they are ahead of ours at least and at most: it reads them
    after we asked and before we heard."""

    boot_id: str
    monotonic_ahead_ns: tuple[int, int]
    realtime_ahead_ns: tuple[int, int]


@dataclass(frozen=True)
class Guest:
    """A guest in which `dnsrig-engine clock serve` listens."""

    machine: uml.Guest
    namespace: str
    """Of the other end of its link."""

    def clocks(self, shift_ns: int = 0) -> Clocks:
        """Its clocks, after its CLOCK_REALTIME was shifted by ``shift_ns``."""
        assert self.machine.popen.stdin is not None
        asked = time.monotonic_ns(), time.time_ns()
        print(shift_ns, file=self.machine.popen.stdin, flush=True)
        told = self.wait_for("clocks")
        heard = time.monotonic_ns(), time.time_ns()
        its = told["monotonic_ns"], told["realtime_ns"]
        monotonic, realtime = ((its[n] - heard[n], its[n] - asked[n]) for n in range(2))
        return Clocks(told["boot_id"], monotonic, realtime)

    def compare(self) -> list[dict[str, Any]]:
        """What `clock compare` tells at the other end of the link: two bursts, as its standard input has ended."""
        command = [str(paths.engine()), "clock", "compare", f"guest={ITS}:{PORT}", "--i-am-authorized", ITS]
        with inside(self.namespace):
            process = subprocess.run(
                [*command, "--until-eof", "--json"],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=COMPARE_LIMIT_S,
            )
        events = [json.loads(line) for line in process.stdout.splitlines()]
        return [event for event in events if event["event"] == "compared"]

    def wait_for(self, event: str) -> dict[str, Any]:
        deadline = time.monotonic() + ANSWER_LIMIT_S
        try:
            while (told := self.machine.events.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
                if told["event"] == event:
                    return told
        except queue.Empty:
            pass
        raise AssertionError(f"no {event!r}: {[*self.machine.errors]}, {self.machine.last_words()}")


@contextmanager
def guest(kernel: uml.Kernel) -> Iterator[Guest]:
    """One that runs; everything that was made for it is gone afterwards."""
    made = ledger.Ledger.open_new()
    job = ledger.MEMORY / f"{ledger.PREFIX}{made.tag}"
    namespace = f"{ledger.PREFIX}{made.tag}-link"
    try:
        made.add(folder=str(job), network_namespace=namespace)
        job.mkdir(mode=0o700)
        _link(namespace)
        with inside(namespace):
            machine = uml.Guest.start(
                kernel,
                job,
                [sys.executable, "-I", "-S", str(PROGRAM), f"{ITS}/{PREFIX_LENGTH}", str(paths.engine()), str(PORT)],
                writable=[],
                seen=[PROGRAM, paths.engine(), Path(sys.prefix), Path(sys.base_prefix)],
                modules=[],
                cpu=max(os.sched_getaffinity(0)),
                holding=[made.handle],
                devices=[f"vec0:transport=tap,ifname={TAP}"],
            )
        try:
            assert machine.wait_until_booted() == kernel.release
            one = Guest(machine, namespace)
            one.wait_for("listening")
            yield one
        finally:
            machine.stop()
    finally:
        assert removal.remove(made) == []


def _link(namespace: str) -> None:
    """A network namespace with nothing but loopback and our end of the link."""
    for words in (
        ["netns", "add", namespace],
        ["-n", namespace, "link", "set", "lo", "up"],
        ["-n", namespace, "tuntap", "add", TAP, "mode", "tap"],
        ["-n", namespace, "addr", "add", f"{OURS}/{PREFIX_LENGTH}", "dev", TAP],
        ["-n", namespace, "link", "set", TAP, "up"],
    ):
        subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL, timeout=30)
