"""A process on another machine, with what `subprocess.Popen` has of one here."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any

LOST = 255
"""Its status where its machine does not answer any more; ssh has the same (ssh(1))."""
_END = object()


class Lines:
    """Its standard output, read line by line by one thread."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, line: str) -> None:
        self._lines.put(line)

    def end(self) -> None:
        self._lines.put(_END)

    def __iter__(self) -> Iterator[str]:
        while (line := self._lines.get()) is not _END:
            yield line

    def close(self) -> None:
        """Whoever waits for a line waits no longer."""
        self.end()


class Input:
    """Its standard input."""

    def __init__(self, write: Callable[[str], Any], close: Callable[[], Any]) -> None:
        self._write, self._close, self._is_closed = write, close, False

    def write(self, text: str) -> int:
        self._write(text)
        return len(text)

    def flush(self) -> None:
        """Whatever is written is on its way."""

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            with contextlib.suppress(Exception):  # it ends with the connection as well
                self._close()


class RemotePopen:
    """``send``: sends it a signal; ``go_first``: as `Process.go_first`."""

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
        # Like that of a child, they stay open when whoever started it closes theirs.
        kept = {"stdout": stdout, "stderr": stdout if stderr == subprocess.STDOUT else stderr}
        self._files = {
            name: os.dup(file.fileno()) for name, file in kept.items() if file is not None and not isinstance(file, int)
        }

    def take(self, stream: str, line: str) -> None:
        """A line that it wrote."""
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
            self.stdout.end()

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
