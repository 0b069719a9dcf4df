"""A Dask cluster of processes on this machine: a scheduler, and workers that each have a cache of their own."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from dnsrig.cli.machines import certificates

PAGE = Path(__file__).parents[1] / "docs/how-to/machines.md"
SCHEDULER, WORKER, *_ = re.findall(
    r"^\$ env \S+ (?:\S+ )?dask ((?:scheduler|worker) .*) &$", PAGE.read_text(), re.MULTILINE
)
"""The words with which the page starts them, for the port 8786 and the worker rack-1."""
START_LIMIT_S = 120
VICTIMS = ("runner", "worker", "scheduler", "network")


class Cluster:
    def __init__(self, folder: Path, names: Sequence[str], preload: Path | None = None, *, nanny: bool = True) -> None:
        self._folder, self._names, self._preload, self._nanny = folder, names, preload, nanny
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        self._certificates = folder / "certificates"
        certificates(self._certificates)
        self.start()

    def start(self) -> None:
        self.scheduler = self._start_scheduler()
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        for name in self._names:
            self.add(name)
        for name in self._names:
            self._wait(name)

    def add(self, name: str) -> None:
        """Start a worker, and do not wait for it."""
        self.workers[name] = self._start_worker(name)

    def cache(self, name: str) -> Path:
        return self._folder / f"cache-{name}"

    def worker(self, name: str) -> psutil.Process:
        """The process that executes, which its nanny would start again."""
        nanny = psutil.Process(self.workers[name].pid)
        return next(child for child in nanny.children() if "spawn_main" in " ".join(child.cmdline()))

    def every_process(self, name: str) -> list[psutil.Process]:
        nanny = psutil.Process(self.workers[name].pid)
        return [nanny, *nanny.children(recursive=True)]

    def listeners(self) -> set[str]:
        """Where the processes of the cluster listen on addresses other than 127.0.0.1."""
        processes = [psutil.Process(self.scheduler.pid)]
        processes += [process for name in self._names for process in self.every_process(name)]
        found = {one.laddr for process in processes for one in process.net_connections("tcp") if one.status == "LISTEN"}
        return {f"[{at.ip}]:{at.port}" for at in found if at.ip != "127.0.0.1"}

    @property
    def on(self) -> str:
        return f"tls://127.0.0.1:{self._port}"

    def environment(self, role: str) -> dict[str, str]:
        """The environment in which a process has a role of the cluster; a command that uses it is a ``client``."""
        return {**os.environ, "DASK_CONFIG": str(self._certificates / f"{role}.json")}

    def lose(self, victim: str, runner: subprocess.Popen[str], chance: random.Random) -> Callable[[], None]:
        """What brings it back is returned."""
        if victim == "runner":
            runner.kill()
        elif victim == "worker":
            self.worker(chance.choice(self._names)).kill()
        elif victim == "scheduler":
            self.scheduler.kill()
            return self._start_again
        else:
            silent = self.every_process(chance.choice(self._names))
            for process in silent:
                process.suspend()
            return lambda: _resume(silent)
        return lambda: None

    def _start_again(self) -> None:
        self.end()
        self.start()

    def end(self) -> None:
        for process in (*self.workers.values(), self.scheduler):
            with contextlib.suppress(psutil.NoSuchProcess):
                for one in reversed(
                    [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
                ):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        one.send_signal(signal.SIGKILL)
            process.wait(30)

    def _start_scheduler(self) -> subprocess.Popen[bytes]:
        environment = {**self.environment("scheduler"), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
        return self._start("scheduler", SCHEDULER, environment)

    def _start_worker(self, name: str) -> subprocess.Popen[bytes]:
        words = WORKER.replace("rack-1", name).replace("work-1", shlex.quote(str(self._folder / f"work-{name}")))
        words += f" --preload {shlex.quote(str(self._preload))}" if self._preload else ""
        words += "" if self._nanny else " --no-nanny"
        return self._start(name, words, {**self.environment("worker"), "DNSRIG_CACHE": str(self.cache(name))})

    def _start(self, name: str, words: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        what, *others = shlex.split(words.replace("8786", self._port))
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", f"distributed.cli.dask_{what}", *others],
                env=environment, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def _wait(self, name: str) -> None:
        """Until the worker is known to the scheduler."""
        log, deadline = self._folder / "scheduler.log", time.monotonic() + START_LIMIT_S
        while f"name: {name}\n" not in log.read_text(errors="replace"):
            assert time.monotonic() < deadline, "".join(p.read_text() for p in (log, log.with_name(f"{name}.log")))
            time.sleep(0.05)


def _resume(silent: list[psutil.Process]) -> None:
    for process in silent:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()
