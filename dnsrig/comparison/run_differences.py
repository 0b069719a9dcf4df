"""What two runs do not have in common, besides what is to be compared.

Specs, the machine's conditions and the facts of physical interfaces are compared as a whole, less what is listed here.
So a field that is added later is compared, too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from dnsrig.rundir import Manifest, OwnFile, Record, ServerSource, TrialSpec, Variant
from dnsrig.runs.run import Run

CHANGING = ("boot_id", "clock_synchronised", "clock_error_bound_us")
"""What changes on a machine from one boot to the next."""
BESIDE = ("calibration", "nics")
"""What is known of a machine, and changes nothing that is measured: the certificate that a run cites, and interfaces,
through which no trial goes."""
MAY_DIFFER = (
    *("schema_version", "run", "experiment", "variant", "repeat"),
    *("dataset.key", "next_dataset.key", "hosts.*.server.key", "hosts.*.address", "queries.key"),
    "machines.*",
    *(f"machine{each}{fact}" for each in (".", ".*.") for fact in (*CHANGING, *BESIDE)),
)
"""Names, where things lie, how other machines are reached, what every boot changes, and addresses, of which the family
tells. The values on the matrix's axes are what variants are matched by."""
HARDWARE = ("architecture", "cpu_model", "cpus", "memory_total_bytes", "virtualisation")
"""Conditions of a machine: where these are alike, one name is one machine."""
SAME_WITHIN = 0.01
"""Tolerance of a machine's numbers: how much memory there is, and what the kernel derives from it (tcp_mem), changes a
little with every boot."""
LONGEST_LIST = 4
"""Entries of a list that are shown; of a longer one the ends."""
NOT_SET = "not set"
HERE = "where the run was started"


@dataclass(frozen=True)
class Pair:
    """A variant of the base and the one of the new run that stands against it."""

    base: Variant
    new: Variant

    @property
    def label(self) -> str:
        return self.new.label


@dataclass(frozen=True)
class Difference:
    """What is not the same in both runs."""

    what: str
    """The path in a spec, e.g. ``links.primary-secondary.forward.delay_ms``; of the machine with ``machine.`` before
    it."""
    base: str
    new: str
    asked_for: bool = False
    """Whether it is what the comparison is about, or was declared to be of no concern: then rules judge all the
    same."""
    pairs: tuple[Pair, ...] = ()
    """Where it was found; empty: it is of the whole run."""

    def __str__(self) -> str:
        return f"{self.what}: {self.base} in the base, {self.new} in the new run"

    def concerns(self, pair: Pair) -> bool:
        return not self.pairs or pair in self.pairs


def differences(
    base: Manifest,
    new: Manifest,
    pairs: Sequence[Pair],
    may_differ: Sequence[str],
    interfaces: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
) -> list[Difference]:
    """All differences, first those of the run as a whole.

    ``may_differ``: names of what is of no concern, or their beginnings; ``interfaces``: the interfaces of hosts, of
    both runs.
    """
    found = [*_of_runs(base, new), *_of_interfaces(*interfaces), *_of_specs(base, new, pairs)]
    return [replace(d, asked_for=d.asked_for or any(_begins(d.what, name) for name in may_differ)) for d in found]


def one_server(manifest: Manifest) -> set[str]:
    """The axes whose only value is a server."""
    return {axis for axis, values in manifest.axes.items() if len(values) == 1 and str(values[0]) in manifest.servers}


def shared_machines(base: Manifest, new: Manifest) -> list[str]:
    """Names of the machines that both runs were measured on: of the same hardware."""
    theirs = {machine.name: machine.conditions for machine in new.machines}
    return [
        machine.name
        for machine in base.machines
        if (other := theirs.get(machine.name)) is not None and not unlike_hardware(machine.conditions, other)
    ]


def unlike_hardware(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """In which of `HARDWARE` two machines differ, of which these are the conditions."""
    return [fact for fact in HARDWARE if not _nearly_alike(ours.get(fact), theirs.get(fact))]


def _begins(what: str, name: str) -> bool:
    return what == name or what.startswith(f"{name}.")


def _of_runs(base: Manifest, new: Manifest) -> Iterator[Difference]:
    """A name changes nothing: what an experiment or a scale means is in the specs."""
    for name in ("experiment", "scale"):
        if (ours := getattr(base, name)) != (theirs := getattr(new, name)):
            yield Difference(name, ours, theirs, asked_for=True)
    yield from _unlike("dnsrig_version", base.dnsrig_version, new.dnsrig_version)
    yield from _of_machines(base, new)


def _of_machines(base: Manifest, new: Manifest) -> Iterator[Difference]:
    ours, theirs = ({m.name: m.conditions for m in run.machines} for run in (base, new))
    if ours.keys() != theirs.keys():
        yield Difference("machines", ", ".join(ours) or HERE, ", ".join(theirs) or HERE)
    for name in (name for name in ours if name in theirs):
        yield from _unlike(f"machine.{name}", ours[name], theirs[name], alike=_nearly_alike)
    if not shared_machines(base, new):
        yield from _unlike("machine", base.measured_under, new.measured_under, alike=_nearly_alike)


def _of_interfaces(base: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    """Interfaces of hosts that have one in both runs: whether they have is in the specs."""
    for host in (host for host in base if host in new):
        yield from _unlike(f"nics.{host}", base[host], new[host])


def _of_specs(base: Manifest, new: Manifest, pairs: Sequence[Pair]) -> Iterator[Difference]:
    """Each with the pairs of which it holds."""
    found: dict[Difference, list[Pair]] = {}
    for pair in pairs:
        one, other = base.specs[pair.base.id], new.specs[pair.new.id]
        for difference in of_two_specs(one, other, held_against=_servers_of(base) | _servers_of(new)):
            found.setdefault(difference, []).append(pair)
    for difference, where in found.items():
        yield replace(difference, pairs=tuple(where))


def of_two_specs(
    one: TrialSpec, other: TrialSpec, *, held_against: frozenset[str] = frozenset()
) -> Iterator[Difference]:
    """How two trials differ in what they were asked to do. ``held_against``: servers that are compared, as
    `KIND@SOURCE`."""
    compared = [f"hosts.{name}.server" for name in one.hosts if _is_compared(name, (one, other), held_against)]
    for difference in _unlike("", one, other):
        yield replace(difference, asked_for=any(_begins(difference.what, server) for server in compared))


def _is_compared(host: str, specs: Iterable[TrialSpec], held_against: frozenset[str]) -> bool:
    """Whether the servers on ``host`` are what the comparison is about."""
    hosts = [spec.hosts[host] for spec in specs if host in spec.hosts]
    return any(h.under_test or (h.server is not None and h.server.name in held_against) for h in hosts)


def _servers_of(manifest: Manifest) -> frozenset[str]:
    """Servers that are alone on an axis, each compared with whatever server the other run has there."""
    return frozenset(str(manifest.axes[axis][0]) for axis in one_server(manifest))


def _unlike(what: str, base: Any, new: Any, alike: Callable[[Any, Any], bool] = operator.eq) -> Iterator[Difference]:
    """Nothing where both are alike; of two with parts of their own only the parts that are not."""
    if base == new or any(fnmatchcase(what, name) for name in MAY_DIFFER):
        return
    ours, theirs = _parts(base), _parts(new)
    if isinstance(base, OwnFile) or isinstance(new, OwnFile):
        ours = theirs = None
    servers = isinstance(base, ServerSource) and isinstance(new, ServerSource) and base.label != new.label
    if ours is not None and theirs is not None and not servers:
        for name in dict.fromkeys([*ours, *theirs]):
            yield from _unlike(f"{what}.{name}".lstrip("."), ours.get(name), theirs.get(name), alike)
    elif not alike(base, new):
        shown = _shown(base), _shown(new)
        yield Difference(what, *(shown if shown[0] != shown[1] else (repr(base), repr(new))))


def _parts(value: Any) -> dict[str, Any] | None:
    """What has parts, by their names; records in a list go by theirs, or by their places. None of anything else."""
    if isinstance(value, Record):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items()}
    if isinstance(value, list | tuple) and value and all(isinstance(item, Record) for item in value):
        return {str(getattr(item, "name", place)): item for place, item in enumerate(value, start=1)}
    return None


def _shown(value: Any) -> str:
    if value is None:
        return NOT_SET
    if isinstance(value, ServerSource):
        return value.label
    if isinstance(value, OwnFile):
        return f"{value.name} ({value.sha256[:12]})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if (parts := _parts(value)) is not None:
        return (
            ", ".join(f"{name} {_shown(item)}" for name, item in parts.items() if item not in (None, {}, [], False))
            or "none"
        )
    if isinstance(value, list | tuple):
        texts = [_shown(item) for item in value]
        if len(texts) > LONGEST_LIST:
            texts = [texts[0], "…", texts[-1], f"({len(texts):,} in all)"]
        return ", ".join(texts) or "none"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _nearly_alike(one: Any, other: Any) -> bool:
    """Whether two facts of machines are the same, or numbers that lie within ``SAME_WITHIN`` of each other."""
    if one == other:
        return True
    ours, theirs = _numbers(one), _numbers(other)
    return (
        bool(ours)
        and len(ours) == len(theirs)
        and all(abs(x - y) <= SAME_WITHIN * max(abs(x), abs(y)) for x, y in zip(ours, theirs, strict=True))
    )


def _numbers(value: Any) -> list[float]:
    """``value`` as the numbers that it is made of; empty where it is anything else."""
    words = str(value).split()
    return (
        [float(word) for word in words] if words and all(word.isascii() and word.isdecimal() for word in words) else []
    )


InterfaceFacts = dict[str, Any]


def interfaces_of_hosts(run: Run) -> dict[str, InterfaceFacts]:
    """Host -> the facts of its interface, by the first trial that has them."""
    found: dict[str, InterfaceFacts] = {}
    for trial in run.trials:
        for host, facts in trial.record.read_back.get("nics", {}).items():
            found.setdefault(host, facts)
    return found


def comparable_interface(facts: InterfaceFacts) -> InterfaceFacts:
    """What the next boot leaves as it is: interrupts have other numbers then, and stay on their CPUs. A name is in the
    spec."""
    kept = {name: value for name, value in facts.items() if name != "name"}
    return {**kept, "irqs": sorted(facts["irqs"].values())} if "irqs" in facts else kept
