"""What a driver is: the interface between a trial and one kind of server."""

from __future__ import annotations

import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import jinja2

from dnsrig.confinement import NET_BIND_SERVICE
from dnsrig.rundir import Role, Scalar, ServerLimit, TransferSpec
from dnsrig.servers import defaults
from dnsrig.servers.behaviour import AsPrimary, AsSecondary
from dnsrig.servers.builds.recipe import Recipe
from dnsrig.servers.logs import LogEvent
from dnsrig.servers.placement import Placement
from dnsrig.servers.resolving import AsResolver

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
class Preparation:
    """A program of the server's that runs on its host before it starts, e.g. to fill a database."""

    command: list[str]
    stdout: str | None = None
    """File in the state folder that takes its output; by default its output joins the log."""


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
