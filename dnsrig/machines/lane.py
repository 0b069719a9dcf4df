"""Trials of a run on another machine: what they need is brought there, what they measured is brought back."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from dnsrig import paths
from dnsrig.errors import DnsrigError
from dnsrig.experiment import children, needed
from dnsrig.experiment.children import Running
from dnsrig.machines import folders, leases, trial_calls
from dnsrig.machines.folders import Archive
from dnsrig.machines.place import Lost, Place
from dnsrig.rundir import Manifest, TrialKey, TrialRecord, TrialSpec, read_json, trial_dir

ENDING_LIMIT_S = 90.0
"""How long a trial there may take to remove what it made."""
LOOK_S = 1.0
"""How often it is looked whether the machine is lost."""


class MachineLane:
    """A machine that a run holds, as a lane of it."""

    def __init__(self, place: Place, manifest: Manifest, directory: Path, lease: str, holder: str) -> None:
        self.place, self._manifest, self._directory = place, manifest, directory
        self._lease, self._holder = lease, holder
        self._brought: set[str] = set()
        self._ended = threading.Event()
        self._renewed_s = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether it has not answered for so long that its lease may be over."""
        return time.monotonic() > self._renewed_s + leases.LEASE_S

    def takes(self, key: TrialKey) -> bool:
        machine = self._manifest.machine_of(key.repeat)
        return machine is not None and machine.name == self.place.name and not self.is_lost

    def start(self, spec: TrialSpec, target: Path, events: children.Events) -> Running:
        return Away(self, spec, target, events)

    def hold(self) -> None:
        """Nobody else executes trials there from now on. Raises DnsrigError where somebody else has it."""
        if other := self.place.at_once(leases.take, self._lease, self._holder):
            raise DnsrigError(
                f"the machine {self.place.name} is in use by {other}", hint="wait until that run has ended"
            )
        self._renewed_s = time.monotonic()
        threading.Thread(target=self._renew, daemon=True).start()

    def let_go(self) -> None:
        """Without its lease the trial there ends by itself, so nobody waits for an answer for longer."""
        if self._ended.is_set():
            return
        self._ended.set()
        if not self.is_lost:
            giving = threading.Thread(target=self._give_back, daemon=True)
            giving.start()
            giving.join(leases.LEASE_S)

    def _give_back(self) -> None:
        with contextlib.suppress(Exception):  # it may be gone; the lease then ends by itself
            self.place.at_once(leases.give_back, self._lease)

    def comes_back(self) -> bool:
        """Whether it answers again, before its lease may be over."""
        lost_s = time.monotonic()
        while not self.is_lost and not self._ended.wait(LOOK_S):
            if self._renewed_s > lost_s:
                return True
        return False

    def wait(self, future: Future[Any]) -> Any:
        """What a call there returns or raises; `Lost` where the machine is."""
        while True:
            try:
                return future.result(timeout=LOOK_S)
            except TimeoutError:
                if future.done():
                    raise
                if self.is_lost:
                    future.cancel()
                    raise Lost(self.place.name) from None

    def _call(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        return self.wait(self.place.submit(function, *arguments))

    def _renew(self) -> None:
        while not self._ended.wait(leases.RENEWAL_S):
            with contextlib.suppress(Exception):  # once it has been away for too long, `is_lost` says so
                self.place.at_once(leases.renew, self._lease, self._holder)
                self._renewed_s = time.monotonic()

    def fetch_finished(self) -> None:
        """What trials of the run measured there while nobody could take it."""
        for told in self._call(trial_calls.finished, self._manifest.run):
            key = TrialKey(variant=str(told["variant"]), repeat=int(told["repeat"]))
            if key in self._manifest.order:
                self.fetch(told, trial_dir(self._directory, key.variant, key.repeat))

    def bring(self, spec: TrialSpec) -> None:
        """Whatever folder of the cache it lacks."""
        folders = sorted({str(path.relative_to(paths.cache())) for path in needed.data(spec) if _is_cached(path)})
        wanted = [folder for folder in folders if folder not in self._brought]
        for folder in self._call(trial_calls.lacking, wanted):
            self._send(folder)
        self._brought |= set(wanted)

    def execute(self, spec: TrialSpec, report: Callable[[dict[str, Any]], None]) -> Any:
        return self.wait(self.place.execute(spec.model_dump_json(), self._lease, report))

    def fetch(self, told: dict[str, Any], target: Path) -> None:
        """The archive of a trial becomes ``target``; of one that failed, its logs are put beside it."""
        if told["reason"]:
            target = target.with_name(f"{target.name}.aborted")
            folders.remove(target)
        if not (target / "trial.json").exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".arriving-") as folder:
                path, made = Path(folder, "archive"), Path(folder, "made")
                for offset in range(0, int(told["size_bytes"]), folders.PART_BYTES):
                    folders.add(path, offset, self._call(trial_calls.part, told["archive"], offset))
                folders.unpack(Archive(path, int(told["size_bytes"]), str(told["sha256"])), made)
                made.rename(target)
        self._call(trial_calls.forget, told["archive"])

    def _send(self, folder: str) -> None:
        with tempfile.TemporaryDirectory() as place:
            packed = folders.pack(paths.cache() / folder, Path(place, "archive"))
            name = hashlib.sha256(folder.encode()).hexdigest()
            for offset, data in folders.parts(packed):
                self._call(trial_calls.receive, name, offset, data)
            self._call(trial_calls.install, name, packed.size_bytes, packed.sha256, folder)


class Away:
    """One trial on another machine."""

    def __init__(self, machine: MachineLane, spec: TrialSpec, target: Path, events: children.Events) -> None:
        self.spec, self.target = spec, target
        self._machine, self._events, self._reason = machine, events, ""
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def result(self) -> tuple[TrialRecord | None, str]:
        if (self.target / "trial.json").exists():
            return read_json(self.target / "trial.json", TrialRecord), ""
        return None, f"{self._machine.place.name}: {self._reason}"

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
        told = self._machine.execute(self.spec, self._report)
        self._machine.fetch(told, self.target)
        self._reason = told["reason"]

    def _report(self, event: dict[str, Any]) -> None:
        self._events.put((self, event))


def _is_cached(path: Path) -> bool:
    return path.is_relative_to(paths.cache())
