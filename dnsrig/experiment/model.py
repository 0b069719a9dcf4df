"""What an experiment's TOML file means.

A document names a procedure, the servers on its hosts, a dataset and a matrix: axes over which it varies. An axis is
either a path into the document with a list of values, or a name with a table of named overlays::

    [matrix]
    "hosts.secondary.server" = ["bind@forky", "knot@forky"]     # label: server
    "dataset.zones" = [100, 300]                                # label: zones

    [matrix.ports]
    default = {}
    wide.hosts.secondary.sysctls."net.ipv4.ip_local_port_range" = "1024 65535"

``[scale.quick]``, ``[scale.standard]``, ``[scale.published]`` and ``--set`` are overlays of the whole document.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from dnsrig import datasets, foreign, paths, query_files
from dnsrig.errors import UsageError
from dnsrig.query_files import QueriesDocument
from dnsrig.rundir import NAME, Family, HostOptions, Resolving, Scalar, ServerDescription, TransferSpec

SCALES = ("quick", "standard", "published")
Raw = dict[str, Any]


class Part(BaseModel):
    """A part of a document: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class HostDocument(HostOptions, Part):
    """An experiment's settings of a host."""

    server: str | None = Field(
        None,
        description="KIND@SOURCE, e.g. `bind@forky` or `bind@git:v9.18.10`; a range such as `bind@git:v9.18.0..v9.18.13` is "
        "an axis; `running@ADDRESS:PORT` is a server that runs already; absent for a host of instruments",
    )
    build_options: str = Field(
        "",
        description="for a server that is built from its repository (`KIND@git:REF`): options for its `configure`, `+PACKAGE` "
        "for a Debian package that they need, `suite=SUITE` for the toolchain; can be an axis",
    )
    settings: dict[str, Scalar | dict[str, Scalar]] = Field(
        default_factory=dict,
        description="settings of the server, by its own names; a table with the name of a kind of server applies only to that kind",
    )
    config: str = Field(
        "",
        description="file that replaces the configuration of the server, relative to the experiment file: a template, "
        "as `dnsrig servers template` prints one, or a plain file; can be an axis; empty: dnsrig's own",
    )
    include: str = Field(
        "",
        description="file that the configuration of the server includes, relative to the experiment file; also a template",
    )
    resolving: Resolving | None = Field(
        None,
        description="for a resolver: its DNSSEC level, cache, limits; by names that are the same for all resolvers",
    )
    watch: str = Field(
        "",
        pattern=rf"^(|ssh:{NAME})$",
        description="for a server that runs already: `ssh:MACHINE` samples the machine that it runs on, by its name in the file "
        "that `--machines` names",
    )
    sysctls: dict[str, str | int] = Field(
        default_factory=dict, description="`net.*` sysctls that a network namespace has separately"
    )
    cpus: list[int] | None = Field(
        None,
        description="CPUs for all programs on the host; by default the server under test has the last one, other servers one "
        "each while there are enough, and everything else the first",
    )
    source_addresses: int = Field(
        0,
        ge=0,
        le=200,
        description="number of additional addresses of the host, from which its server requests zones in turn",
    )


class DirectionDocument(Part):
    """An experiment's settings of one direction of an emulated path. By default the site's values, or none."""

    rate_mbit: float | None = Field(
        None, ge=0.001, le=100_000, description="rate in Mbit/s; default: the rate of the machine"
    )
    delay_ms: float | None = Field(None, ge=0, le=10_000, description="delay in one direction, in ms")
    jitter_ms: float | None = Field(
        None, ge=0, le=10_000, description="each packet has the delay ± this, in ms, uniformly distributed"
    )
    ordered: bool | None = Field(
        None, description="whether jitter keeps packets in order, which raises the typical delay; by default it does"
    )
    loss_percent: float | None = Field(
        None, ge=0, le=100, description="share of lost packets in percent, each independent of the others"
    )
    loss_over_time: list[list[float]] | None = Field(
        None,
        max_length=1000,
        description="instead of loss_percent: [[seconds since the link started, loss in percent from then on], …]",
    )
    limit_packets: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="number of packets that may wait; by default 1000, more if rate and delay need it",
    )
    mtu_bytes: int | None = Field(
        None, ge=68, le=65_535, description="MTU of the path, if it is smaller than the MTU of the interfaces"
    )
    icmp: bool | None = Field(
        None, description="whether the sender of a packet above the path's MTU gets an ICMP error; default: yes"
    )


class PathDocument(DirectionDocument):
    """An experiment's emulated path, under ``[path]``: in the direction of the zones, and by default also back."""

    site: str | None = Field(None, description="a named site, whose values are the defaults of the other keys")
    rtts: str | None = Field(
        None,
        description="a distribution of round trips: each address of a simulated Internet, or of clients, beyond the path "
        "has its own round trip, which is added to the delay",
    )
    rtts_seed: int = Field(1, ge=0, le=1 << 31, description="seed of these round trips")
    interface_mtu_bytes: int = Field(1500, ge=68, le=65_535, description="MTU of the interfaces at both ends")
    seed: int = Field(1, ge=0, le=1 << 31, description="seed of loss and jitter; the number of the repeat is added")
    reverse: DirectionDocument = Field(
        default_factory=lambda: DirectionDocument.model_validate({}),
        description="settings that differ in the direction back, e.g. `reverse.loss_percent`",
    )


class Document(Part):
    """An experiment, with scale and --set applied."""

    title: str = Field(description="title of the report, a few words")
    question: str = Field(description="the question that the result answers")
    audience: Literal["server developers", "registries and hosters", "resolver operators", "the rig itself", ""] = (
        Field("", description="the readers who ask this question; lists of experiments are grouped by it")
    )
    sources: list[str] = Field(default_factory=list, description="sources of the question")
    procedure: str = Field(description="the kind of measurement")
    main_metric: str = Field(
        "", description="the metric that answers the question; empty: the main metric of the procedure"
    )
    repeats: int = Field(10, ge=1, le=1000, description="number of trials of each variant")
    limit_s: float = Field(
        gt=0, le=86_400, description="seconds after which an unfinished trial ends; this is a result, too"
    )
    link: str = Field(
        "auto",
        description="what emulates the path: the kernel's `netem`, the engine's `tun`, or nothing (`veth`); by default veth without a "
        "[path], netem if the kernel has it, otherwise tun",
    )
    kernel: str = Field(
        "auto",
        description="the kernel that a trial runs under: this machine's, or a stock one in User-mode Linux; by default this "
        "machine's, unless it lacks a congestion control that the experiment sets",
    )
    family: Family = Field(
        "ipv4",
        description="the address family for queries, zone transfers and NOTIFY; hosts have addresses of both families",
    )
    cpus_sleep: bool = Field(
        False,
        description="whether idle CPUs may sleep. Otherwise they poll, because a virtual CPU that sleeps may need milliseconds "
        "to wake",
    )
    path: PathDocument | None = Field(None, description="an emulated path between the procedure's far hosts")
    storage: Literal["disk", "memory"] = Field(
        "disk",
        description="where servers store what they receive: the disk with the run directory, or memory (tmpfs), which "
        '`kernel = "uml"` always takes',
    )
    hosts: dict[str, HostDocument] = Field(default_factory=dict, description="host -> server, settings, sysctls, CPUs")
    servers: dict[str, ServerDescription] = Field(
        default_factory=dict, description="name -> command, configuration and abilities of a server without a driver"
    )
    dataset: dict[str, Scalar] = Field(
        default_factory=dict,
        description="`kind` and its parameters; may be absent if the server under test runs already. Paths begin at the "
        "experiment's folder, and in `--set` at the current folder",
    )
    stream: dict[str, Scalar] = Field(
        default_factory=dict, description="the replayed stream: `kind` and its parameters; absent without a replay"
    )
    queries: QueriesDocument | None = Field(
        None, description="queries of your own, and their EDNS; absent: queries for names of the dataset"
    )
    transfer: TransferSpec = Field(
        default_factory=TransferSpec,
        description="transport, provisioning, IXFR, NOTIFY",
    )
    options: dict[str, Scalar] = Field(default_factory=dict, description="options of the procedure")
    debug: Literal["", "symbols"] = Field(
        "",
        description="for servers that are built from their repositories: `symbols` keeps frame pointers and names, for profiles",
    )
    _folder: Path = PrivateAttr(default=Path())
    matrix: dict[str, list[Scalar] | dict[str, Raw]] = Field(default_factory=dict, description="the axes")
    exclude: list[dict[str, Scalar | list[Scalar]]] = Field(
        default_factory=list, description="variants to leave out: axis label -> value or values"
    )
    baseline: dict[str, Scalar] = Field(
        default_factory=dict, description="axis label -> value with which the others are compared"
    )

    @property
    def folder(self) -> Path:
        """The folder of the experiment's file: files that it names are beside it."""
        return self._folder

    def of_folder(self, folder: Path) -> Document:
        self._folder = folder
        return self


@dataclass(frozen=True)
class Point:
    """One point of the matrix: its parameters by axis label, and the document that results."""

    parameters: dict[str, Scalar]
    document: Document


def builtin() -> dict[str, Path]:
    """The built-in experiments by name."""
    return {path.stem: path for path in sorted(paths.builtin_experiments().glob("*.toml"))}


def by_audience() -> dict[str, dict[str, Raw]]:
    """Audience -> name -> contents of the built-in experiments, in the order in which `audience` lists its values."""
    contents = {name: tomllib.loads(path.read_text()) for name, path in builtin().items()}
    audiences = get_args(Document.model_fields["audience"].annotation)
    groups = {
        audience: {n: raw for n, raw in contents.items() if raw.get("audience", "") == audience}
        for audience in audiences
    }
    return {audience: group for audience, group in groups.items() if group}


def find(name: str) -> Path:
    """A built-in experiment's name, or the path of a TOML file."""
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"there is no file {path}", hint="`dnsrig list experiments` shows the built-in ones")
        return path
    known = builtin()
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}; or give the path of a TOML file"
        raise UsageError(f"there is no experiment {name!r}", hint=hint)
    return known[name]


def load(path: Path, scale: str, settings: list[str]) -> Document:
    """Read a TOML file, apply the overlay of ``scale`` and each ``PATH=VALUE`` of ``settings``.

    Paths of the dataset begin at the folder of the file, and in ``settings`` at the current folder.
    """
    if scale not in SCALES:
        raise UsageError(f"there is no scale {scale!r}", hint=f"scales are {', '.join(SCALES)}")
    try:
        raw = foreign.toml(foreign.text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    except foreign.Refused as error:
        raise UsageError(f"{path} is not an experiment: {error}") from error
    scales = raw.pop("scale", {})
    if not isinstance(scales, dict) or not all(isinstance(overlay, dict) for overlay in scales.values()):
        raise UsageError(f"{path}: a scale must be a table", hint="write [scale.quick] and its keys below it")
    unknown = set(scales) - set(SCALES)
    if unknown:
        raise UsageError(f"{path}: unknown scale {sorted(unknown)[0]!r}", hint=f"scales are {', '.join(SCALES)}")
    raw = _anchored(merged(raw, scales.get(scale, {})), path.parent)
    raw = of_file = query_files.anchored(raw, path.parent)
    for setting in settings:
        raw = with_setting(raw, setting)
    if isinstance(of_dataset := raw.get("dataset"), dict):
        raw = {**raw, "dataset": datasets.includes_below(of_dataset.get("kind"), path.parent) | of_dataset}
    document = validate(raw, str(path)).of_folder(path.parent)
    if settings and not any(setting.startswith("baseline") for setting in settings):
        with contextlib.suppress(ValidationError):  # a setting may complete the file
            _check_baseline(Document.model_validate(of_file))
        document.baseline = _measured(document)
    return document


def _anchored(raw: Raw, folder: Path) -> Raw:
    """``raw`` with ``folder`` before the paths of its dataset, also in the matrix."""
    found = dict(raw)
    for key, value in raw.items():
        if key == "dataset" and isinstance(value, dict):
            found[key] = {name: datasets.anchored(name, each, folder) for name, each in value.items()}
        elif isinstance(value, dict):
            found[key] = _anchored(value, folder)
        elif isinstance(value, list) and "dataset" in key and axis_path(key)[0] == "dataset":
            found[key] = [datasets.anchored(axis_path(key)[-1], each, folder) for each in value]
    return found


def _measured(document: Document) -> dict[str, Scalar]:
    """The baseline of a file without the values that the user's settings took out of the matrix."""
    known = axes(document)
    return {label: value for label, value in document.baseline.items() if value in known.get(label, ())}


def validate(raw: Raw, where: str) -> Document:
    try:
        return Document.model_validate(raw)
    except ValidationError as error:
        raise _explained(error, where) from error


def points(document: Document) -> list[Point]:
    """All points of the matrix except the excluded ones, in order, each with its own document."""
    _check_baseline(document)
    _check_exclude(document)
    raw = document.model_dump(exclude={"matrix", "exclude"})
    axes = [_choices(label, path, values) for (path, values), label in zip(document.matrix.items(), labels(document))]
    found = []
    for combination in itertools.product(*axes):
        parameters = {label: value for label, value, _ in combination}
        if any(_matches(parameters, unwanted) for unwanted in document.exclude):
            continue
        here = raw
        for _, _, overlay in combination:
            here = merged(here, overlay)
        where = "the variant " + " ".join(f"{k}={v}" for k, v in parameters.items())
        found.append(Point(parameters, validate(here, where).of_folder(document.folder)))
    if not found:
        raise UsageError("every point of the matrix is excluded", hint="look at `exclude`, or widen an axis with --set")
    return found


def _matches(parameters: Mapping[str, Scalar], unwanted: Mapping[str, Scalar | list[Scalar]]) -> bool:
    return all(parameters.get(k) in (v if isinstance(v, list) else [v]) for k, v in unwanted.items())


def _check_exclude(document: Document) -> None:
    known = axes(document)
    for label in {label for unwanted in document.exclude for label in unwanted}:
        if label not in known:
            raise UsageError(f"exclude: {label} is not an axis", hint=f"axes are {', '.join(known) or 'none'}")


def count(document: Document) -> int:
    """Largest number of points of the matrix, without creating them."""
    for name, values in document.matrix.items():
        if not values or len(set(values)) != len(values):
            raise UsageError(f"axis {name} has no values, or one of them twice", hint="give each value once")
    return math.prod(len(values) for values in document.matrix.values())


def _check_baseline(document: Document) -> None:
    known = axes(document)
    for label, value in document.baseline.items():
        if label not in known:
            raise UsageError(f"baseline.{label} is not an axis", hint=f"axes are {', '.join(known) or 'none'}")
        if value not in known[label]:
            raise UsageError(
                f"the baseline {label} = {value} is not measured",
                hint=f"choose one of {known[label]}, or remove it: --set baseline={{}}",
            )


def axes(document: Document) -> dict[str, list[Scalar]]:
    """Axis label -> values."""
    return {label: list(values) for label, values in zip(labels(document), document.matrix.values())}


def labels(document: Document) -> list[str]:
    """Short names of the axes: the shortest end of the path that is unique."""
    parts = [axis_path(name) if isinstance(values, list) else (name,) for name, values in document.matrix.items()]

    def short(part: tuple[str, ...]) -> str:
        for length in range(1, len(part) + 1):
            if sum(other[-length:] == part[-length:] for other in parts) == 1:
                return "-".join(part[-length:])
        return "-".join(part)

    return [short(part) for part in parts]


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Raw:
    """``overlay`` over ``base``, table by table; neither is changed. What only one of them has is shared with it."""
    result = dict(base)
    for key, value in overlay.items():
        both_tables = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both_tables else value
    return result


def _choices(label: str, name: str, values: list[Scalar] | dict[str, Raw]) -> Iterator[tuple[str, Scalar, Raw]]:
    if isinstance(values, dict):
        yield from ((label, value, overlay) for value, overlay in values.items())
    else:
        yield from ((label, value, _nested(axis_path(name), value)) for value in values)


def axis_path(text: str) -> tuple[str, ...]:
    """A dotted path with TOML's rules, so that a part with dots in it can be quoted."""
    try:
        table: Any = foreign.toml(f"{text} = 0")
    except (tomllib.TOMLDecodeError, foreign.Refused) as error:
        raise UsageError(
            f"{text[:100]!r} is not a path into an experiment", hint='e.g. hosts.secondary.settings."serial-query-rate"'
        ) from error
    found = []
    while isinstance(table, dict):
        key = next(iter(table))
        found.append(key)
        table = table[key]
    return tuple(found)


def _nested(path: tuple[str, ...], value: Any) -> Raw:
    for part in reversed(path):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def with_setting(raw: Raw, setting: str) -> Raw:
    """``PATH=VALUE`` applied; a path or label of an axis sets the values of that axis."""
    name, equals, text = setting.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set {setting!r} is not PATH=VALUE", hint="e.g. --set dataset.zones=500")
    path, value = axis_path(name.strip()), _value(text.strip())
    matrix = raw.get("matrix", {})
    value = _anchored_setting(path, value, matrix)
    for axis, values in matrix.items() if isinstance(matrix, dict) else ():
        whole = axis_path(axis) if isinstance(values, list) else (axis,)
        if path in (whole, whole[-1:]):
            chosen = value if isinstance(value, list) else [value]
            narrowed = _overlays(values, chosen) if isinstance(values, dict) else chosen
            if len(narrowed) != len(chosen):
                raise UsageError(f"axis {axis} has no {text}", hint=f"it has: {', '.join(values)}")
            return {**raw, "matrix": {**raw["matrix"], axis: narrowed}}
    if len(path) == 1 and value == {}:
        return {**raw, path[0]: {}}  # an empty table empties it, where merging would change nothing
    return merged(raw, _nested(path, value))


def _anchored_setting(path: tuple[str, ...], value: Any, matrix: Any) -> Any:
    """The value of a setting with the current folder before paths of the dataset. For an axis, a list has a value for
    each variant."""
    axes = [axis_path(axis) for axis, values in matrix.items() if isinstance(values, list)] if matrix else []
    of = next((axis for axis in axes if path in (axis, axis[-1:])), None)
    if (of or path)[:-1] != ("dataset",):
        return _anchored({path[-1]: value}, Path())[path[-1]] if path == ("dataset",) else value
    name = path[-1]
    if of is not None and isinstance(value, list):
        return [datasets.anchored(name, each, Path()) for each in value]
    return datasets.anchored(name, value, Path())


def _overlays(known: Mapping[str, Raw], chosen: list[Any]) -> Raw:
    """The ``chosen`` overlays of ``known``. If overlays have the name of the server that they set on a host, any other
    server can be chosen, too."""
    hosts = {
        host
        for name, overlay in known.items()
        for host, said in (overlay.get("hosts") or {}).items()
        if isinstance(said, Mapping) and said.get("server") == name
    }
    found = {str(name): known[str(name)] for name in chosen if str(name) in known}
    if len(hosts) == 1:
        others = [str(name) for name in chosen if str(name) not in known and "@" in str(name)]
        found |= {name: _nested(("hosts", *hosts, "server"), name) for name in others}
    return {str(name): found[str(name)] for name in chosen if str(name) in found}


def _value(text: str) -> Any:
    try:
        return foreign.toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except foreign.Refused as error:
        raise UsageError(f"--set {text[:100]!r}: {error}") from error


UNITS = {"_s": "seconds", "_ms": "milliseconds", "_bytes": "bytes", "_mbit": "Mbit/s"}


def _explained(error: ValidationError, where: str) -> UsageError:
    """The first problem as one sentence, with the nearest key that exists."""
    first = error.errors()[0]
    location = [str(part) for part in first["loc"] if not str(part).startswith(("list[", "dict["))]
    path = ".".join(location)
    if first["type"] == "extra_forbidden":
        known = _part(location).model_fields
        close = difflib.get_close_matches(location[-1], known, 1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
        return UsageError(f"{where}: unknown key {path}", hint=hint)
    if first["type"] == "missing":
        return UsageError(f"{where}: the key {path} is missing", hint=_described(location))
    unit = next((name for suffix, name in UNITS.items() if location[-1].endswith(suffix)), "")
    hint = f'write a number of {unit} without a unit: 60, not "60 s"' if unit else _described(location)
    return UsageError(f"{where}: {path} = {first['input']!r}: {first['msg'].lower()}", hint=hint)


def _described(location: list[str]) -> str:
    field = _part(location).model_fields.get(location[-1])
    return field.description or "" if field else ""


def _part(location: list[str]) -> type[BaseModel]:
    """The part of a document that has the key at ``location``."""
    if location[0] == "servers" and len(location) > 2:
        return ServerDescription
    if location[0] == "hosts" and "resolving" in location[2:-1]:
        return Resolving
    if location[0] == "hosts" and len(location) > 2:
        return HostDocument
    if location[0] == "path" and len(location) > 1:
        return DirectionDocument if location[1] == "reverse" and len(location) > 2 else PathDocument
    if location[0] == "queries" and len(location) > 1:
        return QueriesDocument
    return TransferSpec if location[0] == "transfer" and len(location) > 1 else Document
