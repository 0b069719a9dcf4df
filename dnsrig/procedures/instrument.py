"""Instruments: the engine's processes on a host, whose events we read while they run."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from dnsrig import paths
from dnsrig.errors import DnsrigError
from dnsrig.lab import process
from dnsrig.lab.network import Host
from dnsrig.lab.process import Process

START_LIMIT_S = 10.0
STOP_LIMIT_S = 10.0


class Overdue(DnsrigError):
    """An instrument did not end in the time that it was given."""


@dataclass
class Instrument:
    """An engine process whose events we read."""

    name: str
    process: Process
    errors: Path
    """Its standard error, for a sentence when it fails."""
    events: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)
    summary: dict[str, Any] | None = None
    real_time: bool = False
    """Whether it goes before everything else on its CPUs (SCHED_FIFO), as read back."""

    @classmethod
    def start(
        cls, name: str, host: Host, arguments: Sequence[str], errors: Path, *, real_time: bool = False
    ) -> Instrument:
        """Start ``dnsrig-engine ARGUMENTS`` on ``host`` and wait for its first event.

        ``real_time`` is for an instrument that must be on time though others want its CPU: measured beside compilers, it
        takes the lag at the 99th percentile from 5 ms to less than 0.5 ms, where a nice value of -20 does nothing. Where the
        machine does not allow it, the instrument runs as any other program.

        An instrument that does not start is an error of ours, never a trial without its data.
        """
        errors.parent.mkdir(exist_ok=True)
        with errors.open("wb") as output:
            started = process.start(
                name,
                host,
                [str(paths.engine()), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
            )
        instrument = cls(name, started, errors, real_time=real_time and _made_real_time(started.pid, 1))
        assert started.popen.stdout is not None
        threading.Thread(target=read_events, args=(started.popen.stdout, instrument.events), daemon=True).start()
        try:
            instrument._await_start()
        except BaseException:
            started.stop(limit_s=STOP_LIMIT_S)
            raise
        return instrument

    def _await_start(self) -> None:
        try:
            first = self.events.get(timeout=START_LIMIT_S)
        except queue.Empty:
            raise DnsrigError(f"the instrument {self.name} did not start in {START_LIMIT_S:g} s") from None
        if first["event"] == "ended":
            raise DnsrigError(f"the instrument {self.name} did not start{last_words(self.errors)}")

    def go_first(self) -> None:
        """Go before instruments that were started with ``real_time``: for one that needs little, and that in time."""
        self.real_time = _made_real_time(self.process.pid, 2)

    def take(self, event: dict[str, Any]) -> bool:
        """Take in an event; whether it was the summary, after which the process is stopped. Its early end raises."""
        if event["event"] == "ended":
            raise DnsrigError(f"the instrument {self.name} {self.process.how_it_ended()}{last_words(self.errors)}")
        if event["event"] != "summary":
            return False
        self._keep(event)
        self.process.stop(limit_s=STOP_LIMIT_S)
        return True

    def _keep(self, summary: dict[str, Any]) -> None:
        if self.real_time:
            summary["real_time"] = True
        self.summary = summary

    def stop(self) -> None:
        """End an instrument that runs until told, and take its summary if it says one."""
        self.process.popen.terminate()
        try:
            self.process.popen.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.stop(limit_s=0)
        while self.summary is None:
            try:
                event = self.events.get(timeout=STOP_LIMIT_S)
            except queue.Empty:
                return
            if event["event"] == "summary":
                self._keep(event)
            if event["event"] == "ended":
                return


def _made_real_time(pid: int, priority: int) -> bool:
    """Real-time priority for all threads, and those made later, which inherit it (sched(7)); the kernel keeps 5 % for others."""
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(priority))
        return os.sched_getscheduler(pid) == os.SCHED_FIFO
    return False


def read_events(stream: IO[str], events: queue.Queue[dict[str, Any]]) -> None:
    """Runs in a thread until the instrument closes its output; then says `ended`."""
    try:
        for line in stream:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "event" in event:
                events.put(event)
    except ValueError:
        pass  # closed under us while the trial ends
    events.put({"event": "ended"})


def last_words(log: Path, limit: int = 300) -> str:
    """The last line of a log, for a sentence."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f": {lines[-1][-limit:]}" if lines else ""
