"""Commands of `dnsrig` for tests, each in a process that is forked from one that has imported everything.

`Starter` starts this module as a program, which reads one command a line, as JSON, and answers with how the command
ended. Unlike `dnsrig.cli._fork_server`, it has a limit of time for each, and the environment of the test.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dnsrig.cli import _fork_server

ENDING_LIMIT_S = 20.0


@dataclass(frozen=True)
class Ended:
    status: int
    """Exit status; negative: the signal that ended the command."""
    cpu_s: float
    """CPU time of the process and of its children."""


class Starter:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, arguments: Sequence[str], *, errors: Path, limit_s: float) -> Ended:
        """Execute `dnsrig` with ``arguments`` in the environment of now. What it writes to standard error is in
        ``errors``; when ``limit_s`` is over, it is ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        asked = {
            "arguments": [*arguments],
            "environment": dict(os.environ),
            "folder": str(Path.cwd()),
            "errors": str(errors),
            "limit_s": limit_s,
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(2 * ENDING_LIMIT_S)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    _fork_server.load()
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if not pid:
            _fork_server.execute(asked["arguments"], partial(prepare, asked))
        answers.write(json.dumps(vars(wait(pid, asked["limit_s"]))) + "\n")
        answers.flush()


def prepare(asked: dict[str, Any]) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(asked["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])


def wait(pid: int, limit_s: float) -> Ended:
    ended = os.pidfd_open(pid)
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if select.select([ended], [], [], limit_s)[0]:
                break
            os.kill(pid, number)
            limit_s = ENDING_LIMIT_S
    finally:
        os.close(ended)
    _, status, usage = os.wait4(pid, 0)
    return Ended(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)


if __name__ == "__main__":
    main()
