"""Machines for tests: two processes each, with a cache of their own, in which trials only pretend to measure."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from dnsrig.experiment import children
from dnsrig.machines import leases
from dnsrig.machines.dask import Report, Worker

PRETEND = Path(__file__).with_name("pretend_trial.py")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["dnsrig.experiment.trial_calls"])


class Processes(Worker):
    """A `Worker` of two processes: one for what is called in order, another for what is called beside it."""

    address = "tls://127.0.0.1:1"

    def __init__(self, name: str, cache: Path, lease_s: float = 30.0) -> None:
        self.name, self.cache, self.is_gone = name, cache, False
        # The process that forks began with an earlier test, whose environment it still has.
        environment = {**os.environ, "DNSRIG_CACHE": str(cache)}
        self._pools = [ProcessPoolExecutor(1, FORKS, _become, (environment, lease_s)) for _ in range(2)]

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        return self._pools[0].submit(function, *arguments)

    def submit_reporting(self, report: Report, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        how = {name: value for name, value in os.environ.items() if name.startswith("PRETEND_")}
        return self.submit(execute, how, function, *arguments)

    def at_once(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        return self._pools[1].submit(function, *arguments).result(timeout=60)

    def kill(self) -> None:
        """As if the machine were gone."""
        self.is_gone = True
        for pool in self._pools:
            for process in list(pool._processes.values()):
                process.kill()

    def end(self) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)


def execute(how: dict[str, str], function: Callable[..., Any], /, *arguments: Any) -> Any:
    os.environ.update(how)
    return function(*arguments, lambda event: None)


def _become(environment: dict[str, str], lease_s: float) -> None:
    """A machine with this environment, which is left alone but for it."""
    os.environ.clear()
    os.environ.update(environment)
    children.TRIAL_COMMAND = [sys.executable, str(PRETEND)]
    leases.LEASE_S = lease_s
