"""Trials that are forked from a process that has imported everything, so that each of them begins at once.

Python needs about 2 s of CPU time to import what a trial needs, as long as a trial of `dnsrig bench` measures. `Forks`
starts `dnsrig.cli._fork_server` as a program. That forks one trial at a time, when it is asked to, and says how the
trial ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

from dnsrig.errors import DnsrigError

COMMAND = [sys.executable, "-P", "-m", "dnsrig.cli._fork_server"]
"""Its argument is the descriptor from which it reads requests."""
REQUEST_BYTES_MAX = 1 << 16
ANSWER_LIMIT_S = 60.0
"""How long the first answer may take: the imports come before it."""
ATTEMPTS = 2
"""Somebody may end the process between two trials; then another one is started."""


class Forked:
    """A trial that was forked: what `subprocess.Popen` is for a program."""

    def __init__(self, process: int, answers: socket.socket, stdin: int, stdout: int, stderr: int) -> None:
        """``process``: its descriptor (pidfd_open(2)); ``answers``: from there comes how it ended."""
        self.stdin = os.fdopen(stdin, "w")
        self.stdout, self.stderr = (os.fdopen(handle, errors="replace") for handle in (stdout, stderr))
        self.returncode: int | None = None
        self._process, self._answers, self._reading = process, answers, threading.Lock()
        weakref.finalize(self, os.close, process)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; negative: the signal that ended it. Raises subprocess.TimeoutExpired."""
        if self.returncode is None and not select.select([self._process], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("trial", timeout or 0)
        with self._reading:
            if self.returncode is None:
                self.returncode = self._status()
        return self.returncode

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _status(self) -> int:
        with self._answers, contextlib.suppress(OSError):
            if answer := self._answers.recv(REQUEST_BYTES_MAX):
                return int(answer)
        return 1  # somebody ended the process that forked it


class Forks:
    """The process from which trials are forked, one after the other."""

    def __init__(self) -> None:
        self._popen: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def start(self, spec: int, target: Path, lock: int, cpu: int | None = None) -> Forked:
        """Start a trial, in its own session.

        ``spec``, ``lock``: descriptors that it gets; ``cpu``: the only CPU that it may use; None: all of this thread.
        """
        cpus = os.sched_getaffinity(0) if cpu is None else {cpu}
        request = json.dumps({"target": str(target), "cpus": sorted(cpus)}).encode()
        for _ in range(ATTEMPTS):
            requests = self._requests or self._begin()
            if trial := _fork(requests, request, spec, lock):
                return trial
            self._end()
        raise DnsrigError(
            "no trial can be started: the process that does it ends at once",
            hint="what it printed is above; `free -h` shows whether memory is short",
        )

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._popen = subprocess.Popen(
                [*COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        self._requests = ours
        return ours

    def _end(self) -> None:
        if self._popen is not None and self._requests is not None:
            self._requests.close()
            self._popen.kill()
            self._popen.wait()
        self._popen = self._requests = None


def _fork(requests: socket.socket, request: bytes, spec: int, lock: int) -> Forked | None:
    """Start a trial; None: the process from which it would be forked does not answer."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    (stdin, to), (from_stdout, stdout), (from_stderr, stderr) = os.pipe(), os.pipe(), os.pipe()
    ours.settimeout(ANSWER_LIMIT_S)
    process: Sequence[int] = ()
    with theirs, contextlib.suppress(OSError):
        socket.send_fds(requests, [request], [theirs.fileno(), stdin, stdout, stderr, spec, lock])
    with contextlib.suppress(OSError):
        _, process, *_ = socket.recv_fds(ours, REQUEST_BYTES_MAX, 1)
    for handle in (stdin, stdout, stderr):
        os.close(handle)
    if process:
        return Forked(process[0], ours, to, from_stdout, from_stderr)
    for handle in (to, from_stdout, from_stderr):
        os.close(handle)
    ours.close()
    return None
