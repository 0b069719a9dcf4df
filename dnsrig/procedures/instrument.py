"""Instruments: processes of the engine on a host. Their events are read while they run."""

from __future__ import annotations

import contextlib
import json
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
from dnsrig.lab.host import Host
from dnsrig.lab.process import Process

START_LIMIT_S = 10.0
STOP_LIMIT_S = 10.0
HINT = "hint: "
ENDLESS = ("clock", "watch")
"""Subcommands of the engine that observe a trial until its end."""


class Overdue(DnsrigError):
    """An instrument did not end in the time that it was given."""


@dataclass
class Instrument:
    """A process of the engine, and its events."""

    name: str
    process: Process
    errors: Path
    """File with its standard error, for a sentence when it fails."""
    events: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)
    summary: dict[str, Any] | None = None

    @classmethod
    def start(
        cls, name: str, host: Host, arguments: Sequence[str], errors: Path, program: Path | None = None
    ) -> Instrument:
        """Start ``dnsrig-engine ARGUMENTS`` on ``host``, or another ``program`` that writes events as it does, and wait
        for its first event.

        An instrument that does not start is an error of dnsrig, never a trial without its data.
        """
        errors.parent.mkdir(exist_ok=True)
        with errors.open("wb") as output:
            started = process.start(
                name,
                host,
                [str(program or paths.engine()), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
            )
        instrument = cls(name, started, errors)
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
            raise self._failed("did not start")

    def _failed(self, how: str) -> DnsrigError:
        """An error with the last sentence and the hint of the engine, which are the last lines of its standard
        error."""
        sentence, _, hint = last_words(self.errors, lines=2).partition(f"\n{HINT}")
        if not hint:
            sentence = last_words(self.errors)
        return DnsrigError(f"the instrument {self.name} {how}{sentence}", hint=hint)

    def take(self, event: dict[str, Any]) -> bool:
        """Handle an event. Return whether it was the summary, after which the process is stopped.

        Raises DnsrigError if the instrument ended before it was done, by itself or by a signal.
        """
        if event["event"] == "ended":
            with contextlib.suppress(subprocess.TimeoutExpired):  # its output ends a moment before it does
                self.process.popen.wait(STOP_LIMIT_S)
            raise self._failed(self.process.how_it_ended())
        if event["event"] != "summary":
            return False
        if not self.process.stopped_by_us and (event.get("interrupted") or event.get("outcome") == "interrupted"):
            raise DnsrigError(f"the instrument {self.name} was interrupted by a signal before it finished")
        self.summary = event
        self.process.stop(limit_s=STOP_LIMIT_S)
        return True

    def check(self) -> None:
        """Raise DnsrigError if it has ended without a summary, or at all if it is to run until it is stopped."""
        untaken = [event["event"] for event in list(self.events.queue)]
        if self.process.stopped_by_us or self.summary is not None or "ended" not in untaken:
            return
        if "summary" not in untaken or self.process.command[1] in ENDLESS:
            self.take({"event": "ended"})

    def say(self, **what: Any) -> None:
        """Write a line to the standard input of an instrument that is led."""
        stdin = self.process.popen.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is an event
            stdin.write(json.dumps(what) + "\n")
            stdin.flush()

    def next_event(self, limit_s: float) -> dict[str, Any]:
        """The next event. Raises DnsrigError if the instrument ends, and Overdue after ``limit_s``."""
        try:
            event = self.events.get(timeout=limit_s)
        except queue.Empty:
            raise Overdue(f"the instrument {self.name} said nothing for {limit_s:g} s") from None
        self.take(event)
        return event

    def stop(self) -> None:
        """End an instrument that runs without a limit, and take its summary. Raises DnsrigError if it is missing."""
        self.process.stopped_by_us = True
        self.process.popen.terminate()
        try:
            self.process.popen.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.stop(limit_s=0)
        while self.summary is None:
            self.next_event(STOP_LIMIT_S)


def read_events(stream: IO[str], events: queue.Queue[dict[str, Any]]) -> None:
    """Put the events of an instrument into a queue until it closes its output, then the event `ended`. Runs in a
    thread."""
    try:
        for line in stream:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "event" in event:
                events.put(event)
    except ValueError:
        pass  # another thread closed it at the end of the trial
    events.put({"event": "ended"})


def last_event(log: Path, name: str = "summary") -> dict[str, Any] | None:
    """The last event called ``name`` that the engine wrote to a file; None: the file has no such event."""
    found = None
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and event.get("event") == name:
                    found = event
    return found


LAST_BYTES = 1 << 16
"""Bytes at the end of a log that are read for its last lines."""


def last_words(log: Path, limit: int = 300, lines: int = 1) -> str:
    """The last ``lines`` of a log, for a sentence."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LAST_BYTES))
            found = file.read(LAST_BYTES).decode(errors="replace").strip().splitlines()[-lines:]
    except OSError:
        return ""
    return ": " + "\n".join(line[-limit:] for line in found) if found else ""
