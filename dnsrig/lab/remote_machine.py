"""Another machine that has hosts of a trial, and a program on it, as the lab sees them.

The lab does not know how the machine is reached: `dnsrig.machines` implements `RemoteMachine`.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ParamSpec, Protocol, TypeVar

from dnsrig.confinement import Confinement

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
LOST = 255
"""Exit status of a program whose machine does not answer any more; ssh has the same (ssh(1))."""
_END = object()


@dataclass(frozen=True)
class Program:
    """What is started on a host of another machine; the fields are the arguments of `process.start`."""

    command: list[str]
    confined: Confinement | None = None
    workdir: str | None = None
    environment: dict[str, str] | None = None
    stamp_file: Path | None = None


class RemoteMachine(Protocol):
    """Another machine that has hosts of a trial."""

    name: str

    def call(
        self, function: Callable[Arguments, Result], /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Call ``function`` on that machine, which imports it by its name. Arguments and result travel as JSON and
        arrive as the types that the function is annotated with.

        Raises DnsrigError if the function does, or if the machine does not answer.
        """

    def start(
        self, host: str, program: Program, *, reads: bool, stdout: IO[Any] | int | None, stderr: IO[Any] | int | None
    ) -> RemotePopen:
        """Start a program on a host of that machine; its paths are paths of this machine. ``reads``: whether it gets a
        standard input; ``stdout`` and ``stderr`` as for `subprocess.Popen`."""

    def make_folder(self, folder: Path) -> None:
        """Make the folder there that corresponds to ``folder`` of the trial."""

    def bring_folder(self, folder: Path) -> None:
        """Bring a folder that may be anywhere on this machine: its paths are known there from then on."""

    def fetch(self, folder: Path) -> None:
        """Bring the content that ``folder`` of the trial has there here, over what is here."""


class Lines:
    """Standard output of a remote program, read line by line by one thread."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, line: str) -> None:
        self._lines.put(line)

    def __iter__(self) -> Iterator[str]:
        while (line := self._lines.get()) is not _END:
            yield line

    def close(self) -> None:
        """End the lines: whoever waits for one waits no longer."""
        self._lines.put(_END)


class Input:
    """Standard input of a remote program."""

    def __init__(self, write: Callable[[str], Any], close: Callable[[], Any]) -> None:
        self._write, self._close, self._is_closed = write, close, False

    def write(self, text: str) -> int:
        self._write(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: what is written is on its way."""

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            with contextlib.suppress(Exception):  # it ends with the connection as well
                self._close()


class RemotePopen:
    """A program on another machine, with the methods that `subprocess.Popen` has for a program of this machine.

    ``send`` sends it a signal; ``go_first`` is the same as `Process.go_first`.
    """

    def __init__(
        self,
        send: Callable[[int], Any],
        go_first: Callable[[], bool],
        *,
        stdin: Input | None,
        stdout: IO[Any] | int | None,
        stderr: IO[Any] | int | None,
    ) -> None:
        self.pid = 0
        self.stdin = stdin
        self.stdout = Lines() if stdout == subprocess.PIPE else None
        self.returncode: int | None = None
        self.go_first = go_first
        self._send, self._ended = send, threading.Event()
        # As the files of a child process, they stay open when whoever started it closes its own.
        kept = {"stdout": stdout, "stderr": stdout if stderr == subprocess.STDOUT else stderr}
        self._files = {
            name: os.dup(file.fileno()) for name, file in kept.items() if file is not None and not isinstance(file, int)
        }

    def take(self, stream: str, line: str) -> None:
        """Take a line that the program wrote."""
        if stream == "stdout" and self.stdout is not None:
            self.stdout.put(line)
        elif (file := self._files.get(stream)) is not None:
            with contextlib.suppress(OSError):  # the disk may be full
                os.write(file, line.encode())

    def end(self, status: int) -> None:
        self.returncode = status
        while self._files:
            os.close(self._files.popitem()[1])
        self._ended.set()
        if self.stdout is not None:
            self.stdout.close()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("a program on another machine", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(Exception):  # a machine that is gone has ended it
                self._send(int(number))

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
