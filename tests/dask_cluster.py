"""A Dask cluster of processes on this machine: a scheduler, and workers that each have a cache of their own."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

ALONE = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "10",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__LOG_LENGTH": "10",
}
"""What docs/how-to/machines.md says a cluster needs."""
START_LIMIT_S = 120
VICTIMS = ("runner", "worker", "scheduler", "network")


class Cluster:
    def __init__(self, folder: Path, names: Sequence[str], preload: Path | None = None, *, nanny: bool = True) -> None:
        self._folder, self._names, self._preload, self._nanny = folder, names, preload, nanny
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.start()

    def start(self) -> None:
        self.scheduler = self._start_scheduler()
        self.workers = {name: self._start_worker(name) for name in self._names}
        for name in self._names:
            self._wait(name)

    def cache(self, name: str) -> Path:
        return self._folder / f"cache-{name}"

    def worker(self, name: str) -> psutil.Process:
        """The process that executes, which its nanny would start again."""
        nanny = psutil.Process(self.workers[name].pid)
        return next(child for child in nanny.children() if "spawn_main" in " ".join(child.cmdline()))

    def every_process(self, name: str) -> list[psutil.Process]:
        nanny = psutil.Process(self.workers[name].pid)
        return [nanny, *nanny.children(recursive=True)]

    @property
    def on(self) -> str:
        return self.address

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
        host, port = self.address.removeprefix("tcp://").split(":")
        return self._start("scheduler", "scheduler", "--host", host, "--port", port)

    def _start_worker(self, name: str) -> subprocess.Popen[bytes]:
        words = [self.address, "--nthreads", "1", "--resources", "machine=1", "--name", name]
        words += ["--local-directory", str(self._folder / f"work-{name}")]
        words += ["--preload", str(self._preload)] if self._preload else []
        words += [] if self._nanny else ["--no-nanny"]
        return self._start("worker", name, *words, cache=self.cache(name))

    def _start(self, what: str, name: str, *words: str, cache: Path | None = None) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **ALONE, **({"DNSRIG_CACHE": str(cache)} if cache else {})}
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *words],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

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
