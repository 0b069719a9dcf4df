"""A run over several equal machines: looked at, held, used, and given back.

Each round of a run is on one machine (`dnsrig.rundir.Manifest.machine_of`), so that what is compared was measured on
the same machine. What its trials need is brought there, and what they measured is brought back. Nothing is moved from
machine to machine: a lost trial is repeated where it was lost. The machines are workers of a Dask
cluster (`dnsrig.machines.dask`); what is called there is in `trial_calls`.
"""

from __future__ import annotations

import contextlib
import getpass
import platform
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dnsrig
from dnsrig import paths
from dnsrig.comparison import run_differences
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import children, needed, runner, trial_calls
from dnsrig.experiment.children import Running
from dnsrig.experiment.preparation import Where
from dnsrig.experiment.runner import Progress
from dnsrig.machines import folders, leases
from dnsrig.machines.dask import Lost, Worker
from dnsrig.machines.folders import Archive
from dnsrig.rundir import Machine, Manifest, TrialKey, TrialSpec, trial_dir
from dnsrig.servers import sources

ARRIVING = "machines/incoming"
"""Folder of a machine's cache for what is being brought to it."""
ENDING_LIMIT_S = 90.0
"""How long a trial there may take to remove what it made."""
LOOK_S = 1.0
"""Pause between two looks whether the machine is lost."""


class Spread:
    """Several machines that execute a run, as `runner.Local` does on this machine."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers, self._looked = workers, look(workers)

    def where(self) -> Where:
        return where(self._looked)

    def check(self, manifest: Manifest) -> None:
        """Refuse nothing: what a machine cannot do, its trials report."""

    def check_unchanged(self, manifest: Manifest) -> None:
        check_unchanged(manifest, self._looked)

    def execute(self, manifest: Manifest, directory: Path, progress: Progress) -> int:
        """Run every trial that is not finished, each round on its machine. Returns how many failed by our own
        fault."""
        lease = secrets.token_hex(8)
        holder = f"{getpass.getuser()}@{platform.node()}, run {manifest.run}"
        names = {machine.name for machine in manifest.machines}
        lanes = [
            MachineLane(worker, manifest, directory, lease, holder) for worker in self._workers if worker.name in names
        ]
        with held(lanes):
            return runner.execute_on(lanes, manifest, directory, progress)


Executing = runner.Local | Spread
"""What executes a run: this machine, or several."""


@contextlib.contextmanager
def held(lanes: Sequence[MachineLane]) -> Iterator[None]:
    """Hold all machines, and fetch what they finished before. Each may take its time to answer, so they are asked side
    by side."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            deque(pool.map(_begin, lanes), maxlen=0)
            yield
        finally:
            deque(pool.map(MachineLane.let_go, lanes), maxlen=0)


def _begin(one: MachineLane) -> None:
    one.hold()
    one.fetch_finished()


def look(workers: Sequence[Worker]) -> dict[str, dict[str, Any]]:
    """Look at each machine (`trial_calls.look`). Raises DnsrigError if one cannot execute trials of this dnsrig."""
    found = {worker.name: worker.at_once(trial_calls.look) for worker in workers}
    ours = {"version": dnsrig.__version__, "engine_fingerprint": sources.fingerprint(paths.engine())}
    for name, told in found.items():
        for what, own in ours.items():
            if told[what] != own:
                raise DnsrigError(
                    f"the machine {name} has a different {what.replace('_', ' ')}: {told[what]}, here {own}",
                    hint="install the same wheel of dnsrig on all machines",
                )
        if not told["root"]:
            raise DnsrigError(
                f"the worker on {name} is not root", hint="hosts are network namespaces: start it with sudo"
            )
    return found


def where(looked: Mapping[str, dict[str, Any]]) -> Where:
    """Put the machines in the order of their names. Raises UsageError if they differ in hardware or kernel."""
    found = [Machine(name=name, conditions=told["conditions"]) for name, told in sorted(looked.items())]
    for other in found[1:]:
        if different := _unlike(found[0].conditions, other.conditions):
            raise UsageError(
                f"{found[0].name} and {other.name} differ in {', '.join(different)}",
                hint="rounds are distributed over equal machines; remove the other one from the cluster",
            )
    cpus = {tuple(told["available_cpus"]) for told in looked.values()}
    if len(cpus) > 1:
        raise UsageError("the workers may use different CPUs", hint="start them without taskset, or all with the same")
    return Where([*cpus.pop()], found)


def check_unchanged(manifest: Manifest, looked: Mapping[str, dict[str, Any]]) -> None:
    """Refuse to resume if a result would mix machines, versions or datasets."""
    if not manifest.machines:
        raise UsageError("this run was begun on one machine, without --on", hint="leave --on out")
    for machine in manifest.machines:
        if machine.name not in looked:
            raise DnsrigError(f"the machine {machine.name} is missing", hint="start its worker again with that name")
        runner.check_machine(
            manifest, f"the machine {machine.name}", machine.conditions, looked[machine.name]["conditions"]
        )
    runner.check_material(manifest)


def _unlike(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Name what two machines differ in that must be equal in one laboratory."""
    kernel = ["kernel"] if ours.get("kernel") != theirs.get("kernel") else []
    return kernel + run_differences.unlike_hardware(ours, theirs)


class MachineLane:
    """A machine that a run holds, as a `runner.Lane`."""

    def __init__(self, worker: Worker, manifest: Manifest, directory: Path, lease: str, holder: str) -> None:
        self.worker, self._manifest, self._directory = worker, manifest, directory
        self._lease, self._holder = lease, holder
        self._brought: set[str] = set()
        self._ended = threading.Event()
        self._renewed_s = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether the machine has not answered for as long as its lease lasts."""
        return time.monotonic() > self._renewed_s + leases.LEASE_S

    def takes(self, key: TrialKey) -> bool:
        machine = self._manifest.machine_of(key.repeat)
        return machine is not None and machine.name == self.worker.name and not self.is_lost

    def start(self, spec: TrialSpec, target: Path, events: children.Events) -> Running:
        return Away(self, spec, target, events)

    def hold(self) -> None:
        """Keep others from executing trials there. Raises DnsrigError if somebody else holds the machine."""
        if other := self.worker.at_once(leases.take, self._lease, self._holder):
            raise DnsrigError(
                f"the machine {self.worker.name} is in use by {other}", hint="wait until that run has ended"
            )
        self._renewed_s = time.monotonic()
        threading.Thread(target=self._renew, daemon=True).start()

    def let_go(self) -> None:
        """Give the machine back. Without its lease the trial there ends by itself, so no answer is waited for
        longer."""
        if self._ended.is_set():
            return
        self._ended.set()
        if not self.is_lost:
            giving = threading.Thread(target=self._give_back, daemon=True)
            giving.start()
            giving.join(leases.LEASE_S)

    def _give_back(self) -> None:
        with contextlib.suppress(Exception):  # it may be gone; the lease then ends by itself
            self.worker.at_once(leases.give_back, self._lease)

    def comes_back(self) -> bool:
        """Whether the machine answers again before its lease may be over."""
        lost_s = time.monotonic()
        while not self.is_lost and not self._ended.wait(LOOK_S):
            if self._renewed_s > lost_s:
                return True
        return False

    def wait(self, future: Future[Any]) -> Any:
        """Return what a call there returns, or raise what it raises, or `Lost`.

        If a worker is killed between the end of a call and the moment at which its result is fetched, Dask repeats the
        call at the address of the old worker, where it waits for ever. A new address therefore means that the call is
        lost.
        """
        asked_at = self.worker.address
        while True:
            try:
                return future.result(timeout=LOOK_S)
            except TimeoutError:
                if future.done():
                    raise
                if self.is_lost or self.worker.address != asked_at:
                    future.cancel()
                    raise Lost(self.worker.name) from None

    def _call(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        return self.wait(self.worker.submit(function, *arguments))

    def _renew(self) -> None:
        while not self._ended.wait(leases.RENEWAL_S):
            with contextlib.suppress(Exception):  # once it has been away for too long, `is_lost` says so
                self.worker.at_once(leases.renew, self._lease, self._holder)
                self._renewed_s = time.monotonic()

    def fetch_finished(self) -> None:
        """Fetch the trials of the run that were finished there while the run was away."""
        for packed in self._call(trial_calls.finished, self._manifest.run):
            key = TrialKey(variant=str(packed["variant"]), repeat=int(packed["repeat"]))
            if key in self._manifest.order:
                self.fetch(packed, trial_dir(self._directory, key.variant, key.repeat))

    def bring(self, spec: TrialSpec) -> None:
        """Bring those folders of the cache that a trial needs and the machine lacks."""
        wanted = {str(path.relative_to(paths.cache())) for path in needed.data(spec) if _is_cached(path)}
        for folder in self._call(folders.lacking, sorted(wanted - self._brought)):
            folders.send(self._call, paths.cache() / folder, folder, ARRIVING)
        self._brought |= wanted

    def execute(self, spec: TrialSpec, report: Callable[[dict[str, Any]], None]) -> Any:
        execution = self.worker.submit_reporting(report, trial_calls.execute, spec.model_dump_json(), self._lease)
        return self.wait(execution)

    def fetch(self, packed: dict[str, Any], target: Path) -> None:
        """Turn the archive of a trial into ``target``; the logs of a trial that failed are put beside it."""
        if packed["reason"]:
            target = target.with_name(f"{target.name}.aborted")
            folders.remove(target)
        if not (target / "trial.json").exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            archive = Archive(Path(packed["archive"]), int(packed["size_bytes"]), str(packed["sha256"]))
            with folders.fetched(self._call, archive, target.parent) as made:
                made.rename(target)
        self._call(trial_calls.forget, packed["archive"])


class Away(Running):
    """One trial on another machine."""

    def __init__(self, machine: MachineLane, spec: TrialSpec, target: Path, events: children.Events) -> None:
        super().__init__(spec, target)
        self._machine, self._events, self._reason = machine, events, ""
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def failure(self) -> str:
        return f"{self._machine.worker.name}: {self._reason}"

    def end(self) -> None:
        self._machine.let_go()
        self._thread.join(ENDING_LIMIT_S)

    def _go(self) -> None:
        try:
            try:
                self._execute()
            except Lost:
                if not self._machine.comes_back():
                    raise
                self._execute()
        except Exception as error:
            self._reason = str(error) or type(error).__name__
        finally:
            self._events.put((self, None))

    def _execute(self) -> None:
        self._machine.bring(self.spec)
        packed = self._machine.execute(self.spec, self._report)
        self._machine.fetch(packed, self.target)
        self._reason = packed["reason"]

    def _report(self, event: dict[str, Any]) -> None:
        self._events.put((self, event))


def _is_cached(path: Path) -> bool:
    return path.is_relative_to(paths.cache())
