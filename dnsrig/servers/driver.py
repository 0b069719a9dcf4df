"""What a driver is: the interface between a trial and one kind of server."""

from __future__ import annotations

import itertools
import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar, Literal

import jinja2

from dnsrig.confinement import NET_BIND_SERVICE
from dnsrig.errors import DnsrigError
from dnsrig.rundir import Address, HostSpec, Resolving, Role, Scalar, ServerLimit, ServerSource, TransferSpec
from dnsrig.servers import defaults
from dnsrig.servers.behaviour import AsPrimary, AsSecondary
from dnsrig.servers.builds.recipe import Recipe
from dnsrig.servers.keys import CERTIFICATE_FILE, PRIVATE_KEY_FILE, TransferKeys
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE, Anchor, AsResolver, read_anchor

Feature = Literal[
    "TSIG",
    "XoT",
    "DoT",
    "catalog zones",
    "catalog zones of schema 1",
    "IXFR",
    "NOTIFY",
    "dynamic updates",
    "several source addresses",
    "zone database",
]
CATALOG_TRANSFER = "transfer of the catalog"
DNS_PORT = 53
SOCKET_FOLDER_MOST_BYTES = 80
"""Of 108, with room for the socket's own name."""
HEAD_BYTES = 4096
"""Of a zone file: a signed one has the signature of its SOA there."""


@dataclass(frozen=True)
class Support:
    """Since which version a server has a feature as primary, as secondary and as resolver; None: not at all."""

    primary: str | None
    secondary: str | None
    resolver: str | None = None

    def since(self, role: Role) -> str | None:
        return {"primary": self.primary, "secondary": self.secondary, "resolver": self.resolver}.get(role)


NOT_AT_ALL = Support(None, None)


@dataclass(frozen=True)
class Setting:
    """A setting that decides performance, as the server names it."""

    name: str
    default: str
    """The server's own, as its manual says; a source's version may differ."""
    meaning: str


@dataclass(frozen=True)
class Zone:
    """A zone of the dataset; ``file`` is relative to the dataset's folder."""

    name: str
    file: str


@dataclass(frozen=True)
class Route:
    """Where a secondary gets zones: a primary, asked from one of the secondary's own addresses."""

    number: int
    """From 1; names what a configuration says of it."""
    primary: Address
    source: Address | None
    """None: left to the kernel, where there is only one."""


@dataclass(frozen=True)
class Endpoint:
    """Where a database listens, and whether it is spoken to over TLS there."""

    address: Address
    port: int
    tls: bool


@dataclass(frozen=True)
class Placement:
    """A server's place in a trial. Paths named ``seen_`` are as the server sees them, inside its root file system."""

    host: HostSpec
    """With a server and its role."""
    root: Path
    """The root file system that its programs are run in; /: the machine's own."""
    zones: Sequence[Zone]
    routes: Sequence[Route]
    """Of a secondary: zone n of ``zones`` takes route n, round and round; a catalog zone and its members take the
    first. Of a resolver: whom to ask about them."""
    secondaries: Sequence[Address]
    """Of a primary: whom to notify."""
    transfer: TransferSpec
    keys: TransferKeys
    catalog: Zone | None
    """The catalog zone (RFC 9432) by which a secondary learns of its zones; None where they are configured."""
    directory: Path
    """Configuration and logs: kept with the trial."""
    seen_directory: str
    state: Path
    """What the server stores: removed after the trial."""
    seen_state: str
    dataset: Path
    seen_dataset: str
    shown: Mapping[str, Path] = field(default_factory=dict)
    """Folders and files of the machine that its programs see beside ``root``: a build of its source, where there is
    one."""
    other_address: Address | None = None
    """The host's in the other family."""
    over_tls: bool = False
    """Whether it also answers queries over TLS (DoT, RFC 7858), on the port that XoT has too; of a database: whether it
    also listens for TLS."""
    database: Endpoint | None = None
    """Of a primary: where it writes its zones; of a secondary: where it reads them instead of transferring them; of a
    database: of which it is a replica."""
    changes: Changes | None = None
    """Of a primary that can (`Driver.changes_itself`)."""
    stream: Path | None = None
    """What clients will ask, in a trial that replays."""
    seen_stream: str = "/mnt/stream"
    from_hints: bool = False
    """Whether a resolver resolves from the hints in ``directory``, and validates by the trust anchor there; else it
    asks the primaries by ``routes``."""

    @property
    def source(self) -> ServerSource:
        assert self.host.server is not None
        return self.host.server

    @property
    def role(self) -> Role:
        assert self.host.role is not None
        return self.host.role

    @property
    def address(self) -> Address:
        """At which it is asked, and from which it asks."""
        return ip_address(self.host.address)

    @property
    def addresses(self) -> Sequence[Address]:
        """At which it listens: that, and the one of the other family."""
        return [self.address, *([self.other_address] if self.other_address else [])]

    @property
    def settings(self) -> Mapping[str, Scalar]:
        return self.host.settings

    @property
    def holds_sockets(self) -> bool:
        """Whether a Unix socket may lie in the state folder, as the server sees it: names of them are short
        (unix(7))."""
        return len(self.seen_state) < SOCKET_FOLDER_MOST_BYTES

    @property
    def resolving(self) -> Resolving:
        """As a resolver."""
        return self.host.resolving or Resolving()

    @property
    def anchor(self) -> Anchor | None:
        """The trust anchor, where a resolver validates."""
        if self.resolving.level != "validating" or not self.from_hints:
            return None
        return read_anchor(self.directory / ANCHOR_FILE)

    @property
    def may_change_zones(self) -> bool:
        """Whether the dataset is a copy of the server's own."""
        return self.dataset.is_relative_to(self.state.resolve())

    @property
    def suffix(self) -> str:
        """The longest name at or below which all its zones lie; the root where they share nothing."""
        labels = [zone.name.rstrip(".").split(".")[::-1] for zone in self.zones]
        shared = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*labels))
        return ".".join(level[0] for level in [*shared][::-1]) or "."

    @property
    def tree(self) -> Path:
        """Below which the files of its source lie, as the rig sees them: a build, a root file system, the prefix of the
        user's own build, or /."""
        return next(iter(self.shown.values()), Path(self.source.prefix or self.root))

    @property
    def seen_tree(self) -> str:
        """`tree` as its programs see it; no slash at the end."""
        return next(iter(self.shown), self.source.prefix or "")

    def shipped(self, names: Sequence[str], what: str, package: str) -> str:
        """The first of the paths ``names`` below `tree` that its source has.

        Raises DnsrigError where it has none: the source has no ``what``, which Debian's ``package`` has.
        """
        if (found := next((name for name in names if (self.tree / name).exists()), None)) is None:
            raise DnsrigError(
                f"{self.source.name} has no {what} ({names[0]})", hint=f"install it: Debian's package is {package}"
            )
        return found

    @property
    def answers_over_tls(self) -> bool:
        """Whether it listens for TLS at all: for queries, or as a primary for XoT. To a server that is the same."""
        return self.over_tls or (self.transfer.tls and self.role == "primary")

    @property
    def threads(self) -> int:
        return len(self.host.cpus)

    def route_of(self, number: int) -> Route:
        """The route of zone ``number`` in ``zones``."""
        return self.routes[number % len(self.routes)]

    @property
    def configured_zones(self) -> list[Zone]:
        """What the configuration names: on a primary all zones, on a secondary the catalog zone or the members."""
        if self.catalog is None:
            return list(self.zones)
        return [*self.zones, self.catalog] if self.role == "primary" else [self.catalog]

    @property
    def signed(self) -> bool:
        """Whether its zones are (RFC 4034), as the beginning of the first one's file tells."""
        return " RRSIG " in self._head()

    @property
    def hashed(self) -> bool:
        """Whether they deny names by their hashes (RFC 5155), told likewise."""
        return " NSEC3PARAM " in self._head()

    def _head(self) -> str:
        file = self.dataset / self.zones[0].file if self.zones else None
        if file is None or not file.is_file():
            return ""
        with file.open() as text:
            return text.read(HEAD_BYTES)

    @property
    def seen_hints(self) -> str:
        return f"{self.seen_directory}/{HINTS_FILE}"

    def seen_zone_file(self, zone: Zone) -> str:
        return f"{self.seen_dataset}/{zone.file}"

    @property
    def certificate(self) -> str:
        return f"{self.seen_state}/{CERTIFICATE_FILE}"

    @property
    def private_key(self) -> str:
        return f"{self.seen_state}/{PRIVATE_KEY_FILE}"


@dataclass(frozen=True)
class Changes:
    """What a primary changes by itself, from `ZoneChanges.begin` to `ZoneChanges.end`; a row for each goes to
    ``changes.arrow``."""

    of: Literal["catalog", "zones"]
    """Members of the catalog leave and come back, or records of one zone after another change."""
    per_s: float
    first_member: int = 0
    """The members before this one stay in the catalog, so that they can be asked for meanwhile."""
    absent: int = 1
    """So many members are out of the catalog at a time."""
    delay_s: float = 0.0
    """They begin so long after they are told to."""


@dataclass(frozen=True)
class Preparation:
    """A program of the server's that runs on its host before it starts, e.g. to fill a database."""

    command: list[str]
    stdout: str | None = None
    """File in the state folder that takes its output; by default its output joins the log."""


@dataclass(frozen=True)
class LogEvent:
    """A line of a server's log that means something."""

    realtime_ns: int | None
    kind: str
    """``zone-done``, or the kind of a failure."""
    zone: str
    line: str


class Driver(ABC):
    """One kind of server."""

    kind: ClassVar[str]
    title: ClassVar[str]
    executable: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    """Debian's, for the sources that are suites; none: there is no such source."""
    recipe: ClassVar[Recipe | None] = None
    """How it is built from its repository; None: there is no such source."""
    version_package: ClassVar[str] = ""
    """Matches the name of the package whose version is the server's, where that is not the first of ``packages``."""
    capabilities: ClassVar[tuple[str, ...]] = (NET_BIND_SERVICE,)
    """What its user may do beside what everybody may (capabilities(7)): listen on port 53, and what the unit of its
    distribution leaves it and it makes use of."""
    writes_kept: ClassVar[bool] = False
    """Whether it writes what is kept with the trial, in `Placement.directory`; only a part of dnsrig may."""
    roles: ClassVar[tuple[Role, ...]] = ("primary", "secondary")
    only_source: ClassVar[str] = ""
    """The one source that there is of it, where Debian's suites and builds of the user's own make no sense."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    """Asks it to end at once and in order."""
    answers: ClassVar[bool] = True
    """Whether it answers queries."""
    finishes: ClassVar[bool] = False
    """Whether it ends by itself when it has all zones, and says so in its log."""
    answers_zones: ClassVar[bool] = True
    """Whether it has zones, so that it is ready when it answers them; else it is ready when it answers anything."""
    changes_itself: ClassVar[bool] = False
    """Whether, as a primary, it changes its zones by itself, as its settings or `Placement.changes` say; it has no
    files that could change. SIGUSR1 begins the latter, SIGUSR2 ends them."""
    version_arguments: ClassVar[tuple[str, ...]]
    version_pattern: ClassVar[str]
    """Matches the output of ``executable version_arguments``; group 1 is the version."""
    settings: ClassVar[tuple[Setting, ...]]
    databases: ClassVar[tuple[str, ...]] = ()
    """Kinds of databases that can carry its zones."""
    waits_for_database: ClassVar[bool] = False
    """Whether it may be started before its database is there."""
    features: ClassVar[Mapping[Feature, Support]] = {}
    """What is not among them it does not have; read by `support`."""
    never_together: ClassVar[Mapping[Role, frozenset[Feature]]] = {}
    """Features that the server has, but not both at once in that role."""
    as_secondary: ClassVar[AsSecondary | None] = None
    as_primary: ClassVar[AsPrimary | None] = None
    """How it transfers zones; None: not known, and models leave it out."""
    as_resolver: ClassVar[AsResolver | None] = None
    """How it resolves; None: it does not, or nothing of it can be set."""
    remedies: ClassVar[Mapping[str, str]] = {}
    """Id of a trap -> what helps against it with this server: a few words, beside those of the trap's own remedy."""
    log_clock_resolution_ns: ClassVar[int]
    done_pattern: ClassVar[str] = r"(?!)(?P<zone>)"
    """A line of the log that says a zone is there, transferred or from a database, with group ``zone``; by default no
    line says so."""
    failure_patterns: ClassVar[Mapping[str, str]] = {}
    """Kind of failure -> pattern."""
    zone_pattern: ClassVar[str] = r"(?!)(?P<zone>)"
    """A line of its configuration that names a zone, with group ``zone``; by default no line does."""
    settings_command: ClassVar[tuple[str, ...]] = ()
    """Shows the settings in force, a line each, beside the running server; ``{directory}`` and ``{state}`` are its
    folders as it sees them. By default nothing shows them."""
    defaults_command: ClassVar[tuple[str, ...]] = ()
    """Prints the defaults of all settings, whatever the configuration is; by default nothing prints them."""
    work_patterns: ClassVar[Mapping[str, str]] = {}
    """Kind of work beside answering that all its zones or its configuration take part in -> pattern of the line that
    begins it."""

    @abstractmethod
    def configure(self, placement: Placement) -> None:
        """Write the configuration, and whatever else must exist before the start."""

    def preparations(self, placement: Placement) -> list[Preparation]:
        """What to run, in this order, after `configure` and before the start."""
        return []

    @abstractmethod
    def command(self, placement: Placement) -> list[str]:
        """The foreground command."""

    def load_changes(self, placement: Placement) -> list[Preparation]:
        """What to run so that a primary takes changed zone files into use; nothing: SIGHUP says it."""
        return []

    def support(self, feature: Feature) -> Support:
        """Since when it has ``feature``, by role."""
        return self.features.get(feature, NOT_AT_ALL)

    def lacks(self, role: Role, features: Iterable[Feature], version: str) -> tuple[Feature, str | None] | None:
        """The first of ``features`` that ``version`` does not have in ``role``, and since when there is one.

        A version without digits is not known yet and lacks only what no version has.
        """
        for feature in features:
            since = self.support(feature).since(role)
            if since is None or (numbers(version) and numbers(version) < numbers(since)):
                return feature, since
        return None

    def conflict(self, role: Role, features: Iterable[Feature]) -> list[Feature]:
        """Those of ``features`` that exclude each other in ``role``."""
        clash = self.never_together.get(role, frozenset())
        return sorted(clash) if clash and clash <= set(features) else []

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        """Limits that the server sets itself in ``role``, as in force with ``settings``."""
        return []

    def configured(self, placement: Placement) -> set[str] | None:
        """The zones that the server was told of, without those that it learned from a catalog; None: nothing says
        it."""
        line = re.compile(self.zone_pattern, re.MULTILINE)
        texts = [path.read_text() for path in placement.directory.glob("*.conf")]
        return {match["zone"] for text in texts for match in line.finditer(text)} or None

    def read_defaults(self, text: str) -> dict[str, str]:
        """What ``defaults_command`` printed, as setting -> value; empty where a version does not print them."""
        return defaults.of_lines(text)

    def workdir(self, placement: Placement) -> str:
        return placement.seen_state

    @abstractmethod
    def log_time_ns(self, line: str) -> int | None:
        """Realtime ns of a line of the log, which is written in UTC; None where it bears no time."""

    def read_log(self, path: Path) -> Iterator[LogEvent]:
        """The events of a log, in its order. Never fails on what a server wrote."""
        done = re.compile(self.done_pattern)
        failures = {kind: re.compile(pattern) for kind, pattern in self.failure_patterns.items()}
        with path.open(encoding="utf-8", errors="replace") as log:
            for line in log:
                if match := done.search(line):
                    zone = match["zone"].rstrip(".").lower()
                    yield LogEvent(self.log_time_ns(line), "zone-done", zone, line.strip())
                    continue
                for kind, pattern in failures.items():
                    if pattern.search(line):
                        yield LogEvent(self.log_time_ns(line), kind, "", line.strip())
                        break

    def read_work(self, path: Path, catalog: str) -> Iterator[LogEvent]:
        """What a log tells of work beside answering: the kinds of ``work_patterns``, and each transfer of the zone
        ``catalog``."""
        done = re.compile(self.done_pattern)
        patterns = {kind: re.compile(pattern) for kind, pattern in self.work_patterns.items()}
        with path.open(encoding="utf-8", errors="replace") as log:
            for line in log:
                kinds = (kind for kind, pattern in patterns.items() if pattern.search(line))
                match = done.search(line)
                if match and catalog and match["zone"].rstrip(".").lower() == catalog:
                    yield LogEvent(self.log_time_ns(line), CATALOG_TRANSFER, catalog, line.strip())
                elif (kind := next(kinds, None)) is not None:
                    yield LogEvent(self.log_time_ns(line), kind, "", line.strip())


def wanted_features(
    transfer: TransferSpec,
    *,
    several_sources: bool,
    role: Role = "secondary",
    over_tls: bool = False,
    catalog_schema: int = 2,
    through_database: bool = False,
) -> list[Feature]:
    """What a server in ``role`` must be able to do for ``transfer``, and to be asked over TLS if ``over_tls``.

    With ``through_database`` its zones pass through a database, and nothing is transferred.
    """
    if role == "resolver":
        return ["DoT"] if over_tls else []
    if through_database:
        return ["zone database", "DoT"] if over_tls else ["zone database"]
    follows_catalog = transfer.provisioning == "catalog"
    wanted: dict[Feature, bool] = {
        "TSIG": transfer.tsig,
        "XoT": transfer.tls,
        "DoT": over_tls,
        "catalog zones": follows_catalog and catalog_schema != 1,
        "catalog zones of schema 1": follows_catalog and catalog_schema == 1,
        "IXFR": transfer.ixfr,
        "NOTIFY": transfer.notify,
        # A secondary takes no updates: it sees their outcome as any other change.
        "dynamic updates": transfer.updates and role == "primary",
        "several source addresses": several_sources,
    }
    return [feature for feature, is_wanted in wanted.items() if is_wanted]


def numbers(version: str) -> tuple[int, ...]:
    """``9.20.30-1~bpo`` -> (9, 20, 30): what versions are compared by."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def template(text: str) -> jinja2.Template:
    """A configuration template; an undefined name is an error, never an empty string."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(text)


def utc_ns(line: str, pattern: re.Pattern[str], date_format: str, *, year: int | None = None) -> int | None:
    """Realtime ns of the timestamp that ``pattern`` finds in ``line`` (group ``time``; optional ``ms``).

    ``year`` is for logs that leave it out.
    """
    match = pattern.search(line)
    if match is None:
        return None
    groups = match.groupdict()
    text, layout = groups["time"], date_format
    if year is not None:
        text, layout = f"{year} {text}", f"%Y {layout}"
    try:
        when = datetime.strptime(text, layout).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(when.timestamp()) * 1_000_000_000 + int(groups.get("ms") or 0) * 1_000_000


def utc_ns_without_year(line: str, pattern: re.Pattern[str], date_format: str, *, near: datetime) -> int | None:
    """As `utc_ns`, of a log that leaves out the year: that in which the time lies nearest to ``near``."""
    years = (near.year - 1, near.year, near.year + 1)
    times = [ns for year in years if (ns := utc_ns(line, pattern, date_format, year=year)) is not None]
    return min(times, key=lambda ns: abs(ns - int(near.timestamp()) * 1_000_000_000), default=None)


def timer(settings: Mapping[str, Scalar], name: str, default_s: float, remedy: str) -> ServerLimit:
    """A setting in seconds that the server waits for, as in force with ``settings``."""
    value = settings.get(name, default_s)
    timer_s = float(value) if isinstance(value, int | float) else None
    return ServerLimit(
        setting=name, value=value, default=name not in settings, effect="timer", timer_s=timer_s, remedy=remedy
    )


def yes_no(value: Scalar) -> str:
    """A setting's value as most servers write it."""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
