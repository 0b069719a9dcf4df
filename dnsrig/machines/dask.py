"""The machines of a Dask cluster: each worker with the resource ``machine`` is one.

Tasks are pinned to their worker. Dask moves none to another worker, and executes none a second time.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
import secrets
import ssl
import traceback
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any
from urllib.parse import urlsplit

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.machines import dask_access, folders
from dnsrig.machines.dask_access import Keys, Role
from dnsrig.rundir import NAME

Report = Callable[[dict[str, Any]], None]
RESOURCE = "machine"
CONNECT_LIMIT_S = 20.0
FIRST_WORKER_LIMIT_S = 10.0
"""Somebody who starts scheduler, worker and run in one script starts the run before the worker is known."""
TOPIC = "dnsrig"
LARGE_BYTES = 2 * folders.PART_BYTES
"""Dask warns of large tasks from here on; a part of a folder is meant to be large."""
ERROR_LENGTH_MAX = 1000
SHORT_LOGS = {"distributed.admin.low-level-log-length": 10, "distributed.admin.system-monitor.log-length": 10}
"""By default, Dask keeps 1,000 messages of each connection, events of each topic, and two hours of samples."""
PROFILER_OFF = {"distributed.worker.profile.enabled": False}
"""The profiler looks at the threads of a worker a hundred times a second."""
CERTIFICATES = "`dnsrig machines certificates` makes them, and `--help` shows how they are used"
ONE_FOLDER = "all files of a cluster are made by one call of `dnsrig machines certificates`, and valid for a year"
HOW = "start one on each machine: dask worker SCHEDULER --nthreads 1 --resources machine=1 --name NAME"


class Lost(DnsrigError):
    """The machine does not answer any more."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the machine {name} does not answer", hint="look at it and its worker; then go on with --resume"
        )


class Worker:
    """A machine on which functions are called, one at a time. It is known by its name: a restart changes its
    address."""

    def __init__(self, client: Any, name: str, checked: Collection[str]) -> None:
        self.name, self._client = name, client
        self.address = ""
        """Where the worker was last seen: after a restart it has another address."""
        self._checked = {*checked}
        """Addresses of workers without open listeners."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call ``function`` on the machine, which imports it by its name. The future has what it returns or raises, or
        `Lost`."""
        executor = self._client.get_executor(
            workers=[self._address()], resources={RESOURCE: 1}, allow_other_workers=False, retries=0, pure=False
        )
        return _translated(executor.submit(tell, function, *arguments), self.name)

    def submit_reporting(self, report: Report, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Call ``function`` as `submit` does, with a function as its last argument that reports events. Some thread
        passes them to ``report``."""
        # A topic lives as long as its scheduler, so it belongs to the machine, and each call recognises its events.
        topic, call = f"{TOPIC}-{self.name}", secrets.token_hex(8)

        def pass_on(event: Any) -> None:
            own, content = event[1]
            if own == call:
                report(content)

        self._client.subscribe_topic(topic, pass_on)
        return self.submit(reporting, topic, call, function, *arguments)

    def at_once(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Call ``function``, which takes no time, beside what is running on the machine; returns its result."""
        address = self._address()
        try:
            told = self._client.run(tell, function, *arguments, workers=[address])[address]
        except OSError as error:
            raise Lost(self.name) from error
        return _heard(told)

    def _address(self) -> str:
        found = _able(self._client).get(self.name)
        if found is None:
            raise Lost(self.name)
        self.address, told = found
        if self.address not in self._checked:
            self._check(self.address, told)
        return self.address

    def _check(self, address: str, told: dict[str, Any]) -> None:
        """Look at the listeners of a worker that was started again, perhaps in another way."""
        try:
            dask_access.check(self._client, {address: told})
        except dask_access.NotKnown as error:
            if isinstance(error.__cause__, OSError):
                raise Lost(self.name) from error
            raise
        self._checked.add(address)


def reporting(topic: str, call: str, function: Callable[..., Any], /, *arguments: Any) -> Any:
    """Call ``function`` on a worker; the scheduler passes the events on that it reports."""
    from distributed import get_worker

    worker = get_worker()
    return function(*arguments, lambda event: worker.log_event(topic, (call, event)))


Told = tuple[Any, str, str]
"""What a call on a worker returned, or else the sentence and the hint of its error."""


def tell(function: Callable[..., Any], /, *arguments: Any) -> Told:
    """Call ``function`` on a worker, and return its exception as text: if an exception, or its traceback, cannot be
    unpickled on this side, Dask drops it, and the call never ends."""
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
    """Turn what `tell` returned into a result or a DnsrigError, and Dask's errors for a lost worker into `Lost`."""
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    answered: Future[Any] = Future()

    def pass_on(done: Future[Any]) -> None:
        if not answered.set_running_or_notify_cancel():
            return  # the machine counts as lost, and nobody waits for it any more
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
    """Connect to the machines of the scheduler at ``address``; ``security`` replaces the keys of Dask's
    settings."""
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
        with contextlib.suppress(TimeoutError):  # `_named` refuses a cluster without workers
            client.wait_for_workers(1, timeout=FIRST_WORKER_LIMIT_S)
        known = _identity(client)
        dask_access.check(client, known["workers"], known["address"])
        with config.set({"distributed.admin.large-graph-warning-threshold": LARGE_BYTES}):
            yield _named(client, known["workers"])
    finally:
        client.close()


def check_installed() -> None:
    if importlib.util.find_spec("distributed") is None:
        raise DnsrigError("Dask is not installed", hint="docs/how-to/install.md shows how to install the extra dask")


def check_address(address: str) -> None:
    """Refuse an address over which anybody on the way could execute code on the machines."""
    parts = urlsplit(address)
    if parts.scheme == "tls" or (parts.scheme == "tcp" and dask_access.is_loopback(parts.hostname or "")):
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
    """Return the address of each worker that is a machine, and what the scheduler knows about it, by its name."""
    found = _identity(client)["workers"]
    return {str(told["name"]): (place, told) for place, told in found.items() if RESOURCE in told.get("resources", {})}


def _identity(client: Any) -> dict[str, Any]:
    """Ask the scheduler what it knows about itself and all workers."""
    # `scheduler_info` of the client keeps the last answer, for which other threads may have asked with fewer workers.
    try:
        found: dict[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)
    except OSError as error:
        raise DnsrigError(
            "the scheduler does not answer", hint="start it again, then continue with --resume"
        ) from error
    return found
