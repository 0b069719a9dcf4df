"""A run over several machines: looked at, taken, used, given back."""

from __future__ import annotations

import contextlib
import getpass
import platform
import secrets
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dnsrig
from dnsrig import paths
from dnsrig.comparison import run_differences
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import runner
from dnsrig.experiment.preparation import Where
from dnsrig.experiment.runner import Progress
from dnsrig.machines import trial_calls
from dnsrig.machines.lane import MachineLane
from dnsrig.machines.place import Place
from dnsrig.rundir import Machine, Manifest
from dnsrig.servers import sources


class Spread:
    """Several machines, as `runner.Executing` says."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places, self._looked = places, look(places)

    def where(self) -> Where:
        return where(self._looked)

    def check(self, manifest: Manifest) -> None:
        """What a machine cannot do, its trials say."""

    def check_unchanged(self, manifest: Manifest) -> None:
        check_unchanged(manifest, self._looked)

    def execute(self, manifest: Manifest, directory: Path, progress: Progress) -> int:
        """Each round on its machine."""
        lease = secrets.token_hex(8)
        holder = f"{getpass.getuser()}@{platform.node()}, run {manifest.run}"
        names = {machine.name for machine in manifest.machines}
        lanes = [
            MachineLane(place, manifest, directory, lease, holder) for place in self._places if place.name in names
        ]
        with held(lanes):
            return runner.execute_on(lanes, manifest, directory, progress)


@contextlib.contextmanager
def held(lanes: Sequence[MachineLane]) -> Iterator[None]:
    """All of them, with what they finished before. Each may take its time to answer, so they are asked side by side."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            deque(pool.map(_begin, lanes), maxlen=0)
            yield
        finally:
            deque(pool.map(MachineLane.let_go, lanes), maxlen=0)


def _begin(one: MachineLane) -> None:
    one.hold()
    one.fetch_finished()


def look(places: Sequence[Place]) -> dict[str, dict[str, Any]]:
    """By the name of each what `trial_calls.look` tells. Raises where they cannot execute trials of this dnsrig."""
    found = {place.name: place.at_once(trial_calls.look) for place in places}
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
    """The machines in the order of their names. Raises where they differ in hardware or kernel."""
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
    """Refuse to resume where a result would mix machines, versions or datasets."""
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
    """In what two machines differ that are to be one laboratory."""
    kernel = ["kernel"] if ours.get("kernel") != theirs.get("kernel") else []
    return kernel + run_differences.unlike_hardware(ours, theirs)
