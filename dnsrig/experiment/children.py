"""Trials as child processes: they are started, read and ended here. One queue has the events of all running trials."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dnsrig import files
from dnsrig.experiment.forks import Forked
from dnsrig.experiment.trial import set_aside
from dnsrig.lab import removal
from dnsrig.rundir import TrialRecord, TrialSpec, read_json

TEARDOWN_LIMIT_S = 60.0
"""How long a trial may take to remove what it made, after SIGTERM."""
TRIAL_COMMAND = [sys.executable, "-P", "-m", "dnsrig", "trial", "--until-eof"]
"""With `-P`, the installed dnsrig is used, and not a folder of that name in the current folder (python(1))."""
Start = Callable[[int, Path, int], subprocess.Popen[str] | Forked]
"""Starts the trial of a spec, for which there is a descriptor, in a folder. The trial inherits a lock, a descriptor."""
ERROR_LINES_MAX = 1000


class Running(ABC):
    """A trial that is being executed, on this machine or on another one."""

    def __init__(self, spec: TrialSpec, target: Path) -> None:
        self.spec, self.target = spec, target

    def result(self) -> tuple[TrialRecord | None, str]:
        """Return the record of the finished trial, or None and the reason why it has no record."""
        if (self.target / "trial.json").exists():
            return read_json(self.target / "trial.json", TrialRecord), ""
        return None, self.failure()

    @abstractmethod
    def failure(self) -> str:
        """Explain why a trial that has ended has no record."""

    @abstractmethod
    def end(self) -> None:
        """End the trial, and wait until it has removed what it made."""


Events = queue.SimpleQueue[tuple[Running, dict[str, Any] | None]]
"""Pairs of a trial and its event; None as event: the trial has ended."""


def program(spec: int, target: Path, lock: int) -> subprocess.Popen[str]:
    """Start a trial as a program. `Forks.start` does the same in less time."""
    return subprocess.Popen(
        [*TRIAL_COMMAND, f"{files.DESCRIPTORS}/{spec}", str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        pass_fds=(spec, lock),
    )


class Child(Running):
    """A trial as a child process in its own session. It ends when this process ends."""

    def __init__(self, spec: TrialSpec, target: Path, events: Events, lock: int, start: Start) -> None:
        """Start the trial. ``lock``: descriptor of the lock of the run (`dnsrig.cached`), which the trial holds until
        its end."""
        super().__init__(spec, target)
        self._errors: list[str] = []
        set_aside(target.with_name(f"{target.name}.running"))
        with _without_name(spec.model_dump_json()) as handle:
            self._process = start(handle, target, lock)
        self._errors_reader = threading.Thread(target=self._collect, daemon=True)
        self._errors_reader.start()
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()

    def failure(self) -> str:
        self._errors_reader.join(5)
        removal.clean()  # a trial that was killed has removed nothing
        return _reason(self._errors, self._process.wait())

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.send_signal(signal.SIGCONT)  # a stopped process (SIGSTOP) handles SIGTERM only when it continues
        deadline = time.monotonic() + TEARDOWN_LIMIT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                self._process.wait(1)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                continue
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            removal.clean()

    def _listen(self, events: Events) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            events.put((self, _event(line)))
        self._process.wait()
        events.put((self, None))

    def _collect(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if len(self._errors) < ERROR_LINES_MAX:
                self._errors.append(line.rstrip())


@contextlib.contextmanager
def _without_name(content: str) -> Iterator[int]:
    """The descriptor of a file in memory, which the kernel removes with the last process that has it open."""
    handle = os.memfd_create("spec.json")
    try:
        os.write(handle, content.encode())
        yield handle
    finally:
        os.close(handle)


def _event(line: str) -> dict[str, Any]:
    """The event in a line of output; the event ``noise`` for any other text."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    return event if isinstance(event, dict) and "event" in event else {"event": "noise"}


def _reason(errors: list[str], status: int) -> str:
    """Why a trial failed: its own sentence on standard error, or the signal that ended it."""
    lines = [line for line in errors if line.strip()]
    ours = [line.removeprefix("dnsrig: ") for line in lines if line.startswith("dnsrig: ")]
    killed = [f"its process was ended by {signal.Signals(-status).name}"] if status < 0 else []
    return (ours or killed or lines[-1:] or ["it ended at once"])[0]
