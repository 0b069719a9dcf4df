"""From a request to the manifest of a run: install servers, make datasets, specify the trials and draw their order."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dnsrig
from dnsrig import datasets, interruption, paths, query_files, streams
from dnsrig.datasets import transferred
from dnsrig.errors import UsageError
from dnsrig.experiment import (
    builds,
    certificates,
    model,
    own_configuration,
    own_servers,
    path,
    running_servers,
    trial_specs,
)
from dnsrig.experiment import versions as versions_of_server
from dnsrig.experiment.executors import executor
from dnsrig.lab import conditions, ledger
from dnsrig.machines import ssh_machine
from dnsrig.machines.ssh_machine import HostingMachine
from dnsrig.procedures import procedure, versions
from dnsrig.rundir import DatasetSpec, Machine, Manifest, ServerSource, StreamSpec, TrialSpec, Until
from dnsrig.servers import sources, zone_checks

NAME = r"\w[\w.+-]{0,99}"
"""Pattern of the name of an experiment."""
Note = Callable[[str], None]
"""Takes a sentence about work that is done once and takes long."""


def own_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Where:
    """The machines that execute trials: this one, or several equal ones."""

    cpus: list[int]
    """CPUs that a trial may use."""
    machines: list[Machine] = field(default_factory=list)
    """Machines that the rounds are spread over; empty: this machine."""


def here() -> Where:
    return Where(own_cpus())


@dataclass
class Request:
    """The request of a user for a run."""

    experiment: str
    scale: str = "quick"
    settings: list[str] = field(default_factory=list)
    repeats: int | None = None
    seed: int | None = None
    max_trials: int = trial_specs.MAX_TRIALS
    versions: list[str] = field(default_factory=list)
    """Servers that replace the servers under test (`versions.of_versions`); empty: the experiment's own."""
    where: Where = field(default_factory=here)
    until: Until | None = None
    """When the run has enough repeats; None: the number is fixed."""
    machines: Path | None = None
    """File that describes the machines that hosts name."""
    authorized: list[str] = field(default_factory=list)
    """Addresses of running servers that the user may load, beside the addresses that need no permission."""


@dataclass(frozen=True)
class Draft:
    """A request that was read and checked; nothing is installed or made yet."""

    document: model.Document
    points: list[model.Point]
    specs: list[TrialSpec]
    """The provisional spec of each point."""
    repeats: int
    named: set[str] = field(default_factory=set)
    """Options that the user set, and not the author of a built-in experiment."""

    @property
    def needs_root(self) -> bool:
        return needs_root(self.specs)


def draft(request: Request) -> Draft:
    """Everything that needs neither root nor network. Raises UsageError on bad input."""
    check_name(request.experiment)
    file = model.find(request.experiment)
    document = model.load(file, request.scale, request.settings)
    is_builtin = file in model.builtin().values()
    named = running_servers.named_options(document, request.settings, builtin=is_builtin)
    if request.versions:
        document = versions_of_server.of_versions(document, request.versions)
    document = builds.expand(document)
    until = request.until
    repeats = until.least if until else request.repeats or document.repeats
    trial_specs.check_size(model.count(document) * (until.most if until else repeats), request.max_trials)
    trial_specs.check_rounds(repeats, len(request.where.machines))
    points = path.under_one_kernel(model.points(document))
    specs = [trial_specs.provisional(request.experiment, point, request.where.cpus) for point in points]
    running_servers.authorize(specs, request.authorized, named)
    return Draft(document, points, specs, repeats, named)


def needs_root(specs: Iterable[TrialSpec]) -> bool:
    """Whether hosts must be made for ``specs``."""
    return any(host.network == "own" for spec in specs for host in spec.hosts.values())


def check_name(experiment: str) -> None:
    """Refuse a file name that cannot be the name of an experiment: it is a part of paths that servers read."""
    stem = Path(experiment).stem
    if not re.fullmatch(NAME, stem):
        better = re.sub(r"[^\w.+]+", "-", stem).strip("-.") or "experiment"
        raise UsageError(
            f"an experiment cannot be called {stem!r}: its name is a part of paths, and may have letters, digits, dots, dashes"
            " and underscores",
            hint=f"call the file {better}.toml",
        )


@interruption.caught()
def prepare(request: Request, note: Note, drafted: Draft | None = None) -> Manifest:
    """Install and make what a run needs, and return its manifest. ``drafted``: the draft of the request, if there is
    one already."""
    drafted = drafted or draft(request)
    seed = request.seed if request.seed is not None else secrets.randbelow(1 << 32)
    name = Path(request.experiment).stem
    hosts = [host for point in drafted.points for host in point.document.hosts.values()]
    named = {*(host.machine for host in hosts), *map(running_servers.watched, hosts)}
    names = sorted(name for name in named if name)
    if names and request.where.machines:
        raise UsageError(
            f"hosts are on the machine {names[0]}, and trials on yet other machines",
            hint="leave --on out: it distributes trials whose hosts are all on one machine",
        )
    elsewhere = ssh_machine.look(names, request.machines, note)
    made = assemble(
        name,
        request.scale,
        drafted.document,
        drafted.points,
        drafted.repeats,
        seed,
        note,
        request.where,
        elsewhere,
        request.authorized,
        drafted.named,
    )
    return made.model_copy(update={"until": request.until})


def assemble(
    name: str,
    scale: str,
    document: model.Document,
    points: list[model.Point],
    repeats: int,
    seed: int,
    note: Note,
    where: Where | None = None,
    elsewhere: Mapping[str, HostingMachine] | None = None,
    authorized: Collection[str] = (),
    named: Collection[str] = (),
) -> Manifest:
    """The manifest of ``points`` of the experiment ``name``. Installs and makes what they need.

    ``authorized`` and ``named``: see `Request.authorized` and `Draft.named`.
    """
    transferred.allow(authorized)
    where = where or here()
    run = f"{name}/{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{''.join(secrets.choice(ledger.TAG_LETTERS) for _ in range(4))}"
    # First, because a file of queries with a fault ends the run before anything is installed.
    queries = [query_files.provide(own, note) if (own := point.document.queries) else None for point in points]
    servers = _all_installed(trial_specs.wanted_servers(points), note, own_servers.installable(points))
    made = []
    for point, asked in zip(points, queries, strict=True):
        versions_made, stream = _data(point.document, note)
        made.append(
            trial_specs.spec(run, name, point, servers, versions_made, where.cpus, stream, asked, elsewhere or {})
        )
    running_servers.authorize(made, authorized, named)
    servers = running_servers.all_identified(servers, made)
    _check_zones(made, note)
    own_configuration.try_out(made)
    specs = {spec.variant.id: spec for spec in made}
    around = conditions.snapshot()
    return Manifest(
        run=run,
        dnsrig_version=dnsrig.__version__,
        engine_fingerprint=sources.fingerprint(paths.engine()),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        experiment=name,
        title=document.title,
        question=document.question,
        sources=document.sources,
        scale=scale,
        document=document.model_dump(),
        procedure=document.procedure,
        axes=model.axes(document),
        baseline=document.baseline,
        variants=[spec.variant for spec in specs.values()],
        order=trial_specs.order(list(specs), repeats, seed),
        order_seed=seed,
        repeats=repeats,
        servers=servers,
        specs=specs,
        conditions={
            **around,
            **certificates.cited(around),
            **_provided(made, note),
            **_elsewhere(elsewhere or {}),
        },
        machines=where.machines,
    )


def _check_zones(specs: list[TrialSpec], note: Note) -> None:
    """Report which of the user's own zones servers will refuse, before anything starts."""
    primaries = {
        host.server.name: host.server
        for spec in specs
        for host in spec.hosts.values()
        if host.server is not None and host.role == "primary"
    }
    checked = {version.key: version for spec in specs for version in spec.versions if datasets.are_own(version.kind)}
    for version in checked.values():
        files = datasets.own_files(version.kind, version.parameters)
        for sentence in zone_checks.sentences(primaries, version, files):
            note(sentence)


def _elsewhere(found: Mapping[str, HostingMachine]) -> dict[str, Any]:
    """Conditions of other machines with hosts of the run."""
    return {"other_machines": {name: machine.conditions for name, machine in found.items()}} if found else {}


def installed(server: str, note: Note, which: str = "", own: sources.Own | None = None) -> ServerSource:
    """The installation of ``server``, fetched or built if it is not there. ``own``: of the experiment."""
    if (found := sources.find(server, own)) is not None:
        return found
    note(f"installing {server}{which}: {sources.how(server, own)}")
    return sources.install(server, own)


def _all_installed(names: list[str], note: Note, own: sources.Own) -> dict[str, ServerSource]:
    """Installations of all servers. A build during a trial would use its CPU."""
    return {
        name: installed(name, note, f" ({number} of {len(names)})" if len(names) > 1 else "", own)
        for number, name in enumerate(names, start=1)
    }


def _data(document: model.Document, note: Note) -> tuple[list[DatasetSpec], StreamSpec | None]:
    """The dataset in each version, and the stream. If one is made from the other, the other is made first."""
    if not trial_specs.names_dataset(document):
        return [running_servers.UNKNOWN_DATASET], _stream(document, "", note)
    _, values = trial_specs.wanted_dataset(document)
    if datasets.is_from_stream(values):
        stream = _stream(document, "", note)
        assert stream is not None
        return _datasets(document, streams.file(stream.key), note), stream
    made = _datasets(document, None, note)
    return made, _stream(document, made[0].key, note)


def _datasets(document: model.Document, stream: Path | None, note: Note) -> list[DatasetSpec]:
    """The dataset in each version that the procedure needs."""
    kind, values = trial_specs.wanted_dataset(document)
    measured_by = procedure(document.procedure)
    made = []
    for version in versions(measured_by, values, {**measured_by.OPTIONS, **document.options}):
        if not datasets.folder(datasets.key_of(kind, version, stream)).exists():
            note(f"making the dataset {datasets.described(kind, version)}, once")
        made.append(datasets.provide(kind, version, stream, note))
    return made


def _stream(document: model.Document, dataset: str, note: Note) -> StreamSpec | None:
    """The stream that is replayed; None: the procedure replays nothing."""
    if not document.stream:
        return None
    kind, values = streams.wanted(document.stream)
    if not streams.facts(streams.key_of(kind, values, dataset)):
        said = " ".join(f"{name}={value}" for name, value in document.stream.items() if name != "kind")
        note(f"making the stream {kind} {said}, once")
    return streams.provide(kind, values, dataset)


def _provided(specs: list[TrialSpec], note: Note) -> dict[str, Any]:
    """Conditions that the executors of the trials add."""
    found: dict[str, Any] = {}
    for kernel in sorted({spec.kernel for spec in specs}):
        found |= executor(kernel).provide([spec for spec in specs if spec.kernel == kernel], note)
    return found
