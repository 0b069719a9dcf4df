"""The process from which trials are forked, one at a time: `python -m dnsrig.cli._fork_server DESCRIPTOR`.

`dnsrig.experiment.forks` starts it, and sends it requests by the descriptor of a socket.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from dnsrig import discovery, files
from dnsrig.cli import _app
from dnsrig.experiment.forks import REQUEST_BYTES_MAX

MODULES = ("experiment.executors", "experiment.trial")
PACKAGES = ("checks", "metrics", "procedures", "servers")


def main(requests: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, the kernel forgets how a trial ended
    load()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would print a traceback; a trial sets its own
    while True:
        request, handles, *_ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 6)
        if not request:
            return
        answers, *given = handles
        with socket.socket(fileno=answers) as to_runner, contextlib.suppress(BrokenPipeError):
            pid = os.fork()
            if not pid:
                requests.close()
                to_runner.close()
                wanted = json.loads(request)
                trial = ["trial", "--until-eof", f"{files.DESCRIPTORS}/{given[3]}", wanted["target"]]
                execute(trial, partial(prepare, given[:3], wanted["cpus"]))
            for handle in given:
                os.close(handle)
            process = os.pidfd_open(pid)
            socket.send_fds(to_runner, [b"forked"], [process])
            os.close(process)
            _, status = os.waitpid(pid, 0)
            to_runner.send(str(os.waitstatus_to_exitcode(status)).encode())


def load() -> None:
    """Import what a trial imports. A fork has only the thread that forks, so no thread of Python may run afterwards.
    The threads that polars starts when it is imported wait, and its allocator is made for forks."""
    for module in MODULES:
        importlib.import_module(f"dnsrig.{module}")
    for package in PACKAGES:
        discovery.modules(f"dnsrig.{package}")
    _app.command_line()
    assert threading.active_count() == 1
    gc.freeze()


def prepare(standard: Sequence[int], cpus: Sequence[int]) -> None:
    """``standard``: descriptors of standard input, output and errors."""
    for number, handle in enumerate(standard):
        os.dup2(handle, number)
        os.close(handle)
    os.setsid()
    os.sched_setaffinity(0, cpus)


def execute(arguments: Sequence[str], prepare: Callable[[], None]) -> NoReturn:
    """Call ``prepare``, execute a command of `dnsrig` in this process, and end the process."""
    status = 1
    try:
        prepare()
        sys.argv = ["dnsrig", *arguments]
        _app.main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(status)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
