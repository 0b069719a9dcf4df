"""The machines of a Dask cluster: each worker with the resource ``machine`` is one.

Tasks are pinned to their worker: nothing is moved, and nothing is executed a second time behind our back.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
import ssl
import traceback
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any
from urllib.parse import urlsplit

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.machines import folders, listeners, trial_calls
from dnsrig.machines.place import Lost
from dnsrig.machines.tls import Keys, Role
from dnsrig.rundir import NAME

RESOURCE = "machine"
CONNECT_LIMIT_S = 20.0
TOPIC = "dnsrig"
LARGE_BYTES = 2 * folders.PART_BYTES
"""What we send at once is meant to be so large."""
ERROR_LENGTH_MAX = 1000
SHORT_LOGS = {"distributed.admin.low-level-log-length": 10, "distributed.admin.system-monitor.log-length": 10}
"""Dask keeps its last 1,000 messages of each connection, events of each topic, and two hours of samples."""
PROFILER_OFF = {"distributed.worker.profile.enabled": False}
"""It looks at the threads of a worker a hundred times a second."""
CERTIFICATES = "`dnsrig machines certificates` makes them, and `--help` shows how they are used"
ONE_FOLDER = "all files of a cluster are made by one call of `dnsrig machines certificates`, and valid for a year"
HOW = "start one on each machine: dask worker SCHEDULER --nthreads 1 --resources machine=1 --name NAME"


class Worker:
    """A machine, as `Place` says. It is known by its name: after a restart it has another address."""

    def __init__(self, client: Any, name: str, checked: Collection[str]) -> None:
        self._client, self._name = client, name
        self._checked = {*checked}
        """Addresses of workers without open listeners."""

    @property
    def name(self) -> str:
        return self._name

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        executor = self._client.get_executor(
            workers=[self._address()], resources={RESOURCE: 1}, allow_other_workers=False, retries=0, pure=False
        )
        return _translated(executor.submit(tell, function, *arguments), self._name)

    def execute(self, spec_json: str, lease: str, report: Callable[[dict[str, Any]], None]) -> Future[Any]:
        # A topic lives as long as its scheduler, so it is the machine's and not the run's.
        topic = f"{TOPIC}-{self._name}"

        def pass_on(event: Any) -> None:
            whose, told = event[1]
            if whose == lease:
                report(told)

        self._client.subscribe_topic(topic, pass_on)
        return self.submit(execute, spec_json, lease, topic)

    def at_once(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        address = self._address()
        try:
            told = self._client.run(tell, function, *arguments, workers=[address])[address]
        except OSError as error:
            raise Lost(self._name) from error
        return _heard(told)

    def _address(self) -> str:
        found = _able(self._client).get(self._name)
        if found is None:
            raise Lost(self._name)
        address, told = found
        if address not in self._checked:
            self._check(address, told)
        return address

    def _check(self, address: str, told: dict[str, Any]) -> None:
        """Look at the listeners of a worker that was started again, perhaps in another way."""
        try:
            listeners.check(self._client, {address: told})
        except listeners.NotKnown as error:
            if isinstance(error.__cause__, OSError):
                raise Lost(self._name) from error
            raise
        self._checked.add(address)


def execute(spec_json: str, lease: str, topic: str) -> dict[str, Any]:
    """`trial_calls.execute` on a worker, which tells what happens by way of the scheduler."""
    from distributed import get_worker

    worker = get_worker()
    return trial_calls.execute(spec_json, lease, lambda event: worker.log_event(topic, (lease, event)))


Told = tuple[Any, str, str]
"""What a call on a worker returned, or else the sentence and the hint of its error."""


def tell(function: Callable[..., Any], /, *arguments: Any) -> Told:
    """Call ``function`` on a worker. An exception stays there: where one, or its traceback, cannot be unpickled on this
    side, Dask drops it, and whoever waits for it waits for ever."""
    try:
        return function(*arguments), "", ""
    except DnsrigError as error:
        return None, error.message, error.hint
    except Exception as error:
        traceback.print_exc()
        return None, f"{type(error).__name__}: {error}"[:ERROR_LENGTH_MAX], "its worker's log tells where"


def _heard(told: Told) -> Any:
    value, message, hint = told
    if message:
        raise DnsrigError(message, hint=hint)
    return value


def _translated(asked: Future[Any], name: str) -> Future[Any]:
    """The same, but that Dask's words for a worker that is gone become ours, and what it told becomes an answer."""
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    answered: Future[Any] = Future()

    def pass_on(done: Future[Any]) -> None:
        if not answered.set_running_or_notify_cancel():
            return  # who waited for a machine that is lost does not wait any more
        try:
            answered.set_result(_heard(done.result()))
        except (KilledWorker, CommClosedError, FutureCancelledError, CancelledError):
            answered.set_exception(Lost(name))
        except Exception as error:
            answered.set_exception(error)

    asked.add_done_callback(pass_on)
    return answered


def settings(role: Role, keys: Keys) -> dict[str, Any]:
    """The settings of Dask with which a process has ``role`` in a cluster that measures, as a file of Dask has them."""
    own = {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": keys.authority,
        f"distributed.comm.tls.{role}.cert": keys.certificate,
        f"distributed.comm.tls.{role}.key": keys.private_key,
    }
    nested = dict[str, Any]()
    for name, value in {**own, **SHORT_LOGS, **PROFILER_OFF}.items():
        *parents, last = name.split(".")
        functools.reduce(lambda inner, parent: inner.setdefault(parent, {}), parents, nested)[last] = value
    return nested


@contextlib.contextmanager
def workers(address: str, security: Any = None) -> Iterator[list[Worker]]:
    """Those of the scheduler at ``address``, by name; ``security``: keys for it other than those of Dask's settings."""
    check_installed()
    check_address(address)
    check_certificate(address, security)
    from dask import config
    from distributed import Client

    try:
        with config.set(SHORT_LOGS):
            client = Client(address, timeout=CONNECT_LIMIT_S, set_as_default=False, security=security)
    except (OSError, TimeoutError) as error:
        if isinstance(error.__cause__, ssl.SSLError):
            raise DnsrigError(f"{address}: {error.__cause__}", hint=ONE_FOLDER) from error
        raise DnsrigError(f"no scheduler answers at {address}", hint="start one: dask scheduler") from error
    try:
        known = _identity(client)
        listeners.check(client, known["workers"], known["address"])
        with config.set({"distributed.admin.large-graph-warning-threshold": LARGE_BYTES}):
            yield _named(client, known["workers"])
    finally:
        client.close()


def check_installed() -> None:
    if importlib.util.find_spec("distributed") is None:
        raise DnsrigError("Dask is not installed", hint="docs/how-to/install.md shows how to install the extra dask")


def check_address(address: str) -> None:
    """Refuse what would let anybody on the way execute code on the machines."""
    parts = urlsplit(address)
    if parts.scheme == "tls" or (parts.scheme == "tcp" and listeners.is_loopback(parts.hostname or "")):
        return
    if parts.scheme != "tcp":
        raise UsageError(f"{address!r} is not the address of a scheduler", hint="e.g. tls://scheduler.example:8786")
    raise UsageError(
        f"{address}: any program that reaches this scheduler can execute commands on its machines",
        hint=f"give scheduler and workers certificates, and use tls://: {CERTIFICATES}",
    )


def check_certificate(address: str, security: Any) -> None:
    """Refuse to connect with TLS if Dask's settings name no certificate: Dask would raise a TypeError."""
    from distributed import Security

    own = (security or Security()).get_tls_config_for_role("client")
    if urlsplit(address).scheme == "tls" and not (own["ca_file"] and own["cert"]):
        raise UsageError(f"{address}: there is no certificate to connect with", hint=f"set DASK_CONFIG: {CERTIFICATES}")


def _named(client: Any, checked: Collection[str]) -> list[Worker]:
    able = _able(client)
    if not able:
        raise UsageError(f"the cluster has no worker with the resource {RESOURCE!r}", hint=HOW)
    for name, (_, told) in able.items():
        if not re.fullmatch(NAME, name):
            raise UsageError(f"the worker's name {name} cannot be the name of a machine", hint=HOW)
        if told["nthreads"] != 1:
            raise UsageError(
                f"the worker {name} has {told['nthreads']} threads: trials would measure each other", hint=HOW
            )
    return [Worker(client, name, checked) for name in sorted(able)]


def _able(client: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """Of each worker that is a machine, by its name: its address, and what the scheduler tells of it."""
    found = _identity(client)["workers"]
    return {str(told["name"]): (place, told) for place, told in found.items() if RESOURCE in told.get("resources", {})}


def _identity(client: Any) -> dict[str, Any]:
    """What the scheduler knows about itself and all workers."""
    # Its own `scheduler_info` keeps what it was told last, which other threads ask for fewer workers.
    try:
        found: dict[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)
    except OSError as error:
        raise DnsrigError(
            "the scheduler does not answer", hint="start it again, then continue with --resume"
        ) from error
    return found
