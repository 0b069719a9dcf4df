"""The interface between a trial and one kind of server."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

from dnsrig.confinement import NET_BIND_SERVICE
from dnsrig.rundir import Role, Scalar, ServerLimit, TransferSpec
from dnsrig.servers import templates
from dnsrig.servers.behaviour import AsPrimary, AsSecondary
from dnsrig.servers.builds.recipe import Recipe
from dnsrig.servers.formats import numbers, printed_defaults, utc_ns, utc_ns_without_year
from dnsrig.servers.placement import DNS_PORT, Placement, Preparation, Zone
from dnsrig.servers.resolving import AsResolver

Feature = Literal[
    "TSIG",
    "XoT",
    "XoQ",
    "DoT",
    "DoH",
    "DoQ",
    "catalog zones",
    "catalog zones of schema 1",
    "IXFR",
    "NOTIFY",
    "dynamic updates",
    "several source addresses",
    "zone database",
]
CATALOG_TRANSFER = "transfer of the catalog"
GIVEN = ".given"
"""End of the name under which a trial keeps a file of the user as it was, beside the file that was made from it."""


@dataclass(frozen=True)
class Support:
    """Since which version a server has a feature in each role; None: not at all."""

    primary: str | None
    secondary: str | None
    resolver: str | None = None
    frontend: str | None = None

    def since(self, role: Role) -> str | None:
        since = {"primary": self.primary, "secondary": self.secondary, "resolver": self.resolver}
        return {**since, "frontend": self.frontend}.get(role)


NOT_AT_ALL = Support(None, None)


@dataclass(frozen=True)
class Setting:
    """A setting that decides performance, as the server names it."""

    name: str
    default: str
    """The default of the server, from its manual; the version of a source may differ."""
    meaning: str


@dataclass(frozen=True)
class ZoneCheck:
    """How a server's own checker reads zone files."""

    commands: Sequence[list[str]] = ()
    """A command for each zone, which fails if the server refuses the zone; none: there is no checker."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that the commands need: name -> content."""


@dataclass(frozen=True)
class LogEvent:
    """An event in a server's log."""

    realtime_ns: int | None
    kind: str
    """``zone-done``, or the kind of a failure."""
    zone: str
    line: str


class Driver:
    """One kind of server."""

    kind: ClassVar[str]
    title: ClassVar[str]
    executable: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    """Debian's packages of the server, for sources that are suites; empty: the server is in no suite."""
    recipe: ClassVar[Recipe | None] = None
    """How it is built from its repository; None: dnsrig cannot build it."""
    version_package: ClassVar[str] = ""
    """Pattern of the package that has the server's version, if this is not the first of ``packages``."""
    capabilities: ClassVar[tuple[str, ...]] = (NET_BIND_SERVICE,)
    """Capabilities of its user (capabilities(7)): to listen on port 53, and those that the unit of its distribution
    grants and that it uses."""
    writes_kept: ClassVar[bool] = False
    """Whether it writes into `Placement.directory`, which is kept with the trial; only a part of dnsrig may."""
    roles: ClassVar[tuple[Role, ...]] = ("primary", "secondary")
    only_source: ClassVar[str] = ""
    """Its only source, if Debian's suites and the user's own builds make no sense; empty: any source."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    """The signal after which it stops at once and in order."""
    reload_signal: ClassVar[signal.Signals] = signal.SIGHUP
    """The signal after which a primary loads changed zone files, if `load_changes` has no programs for this."""
    ready_pattern: ClassVar[str] = ""
    """Pattern of a line of its log before which it is not ready, whatever it answers; empty: there is no such line."""
    answers: ClassVar[bool] = True
    """Whether it answers queries."""
    reflects: ClassVar[bool] = False
    """Whether it answers each query with the query itself, so that its figures are the floor of the instrument."""
    fault_settings: ClassVar[frozenset[str]] = frozenset()
    """Settings that make it misbehave on purpose."""
    finishes: ClassVar[bool] = False
    """Whether it ends by itself when it has all zones, and reports this in its log."""
    answers_zones: ClassVar[bool] = True
    """Whether it has zones, so that it is ready when it answers for them. If not, it is ready at its first answer."""
    changes_itself: ClassVar[bool] = False
    """Whether, as a primary, it changes its zones by itself, by its settings or `Placement.changes`; it has no zone
    files. SIGUSR1 starts the changes of `Placement.changes`, SIGUSR2 stops them."""
    version_arguments: ClassVar[tuple[str, ...]]
    version_pattern: ClassVar[str]
    """Pattern of the output of ``executable version_arguments``; group 1 is the version."""
    stated_version: ClassVar[str | None] = None
    """Its version outside of suites, if no program prints it."""
    settings: ClassVar[tuple[Setting, ...]]
    databases: ClassVar[tuple[str, ...]] = ()
    """Kinds of databases that can carry its zones."""
    waits_for_database: ClassVar[bool] = False
    """Whether it may be started before its database is there."""
    features: ClassVar[Mapping[Feature, Support]] = {}
    """Its features; it lacks every other feature. Read by `support`."""
    proxied: ClassVar[frozenset[str]] = frozenset()
    """Transports over which it takes the PROXY protocol, on ports of their own."""
    why_not_proxied: ClassVar[str] = "its driver cannot set it up"
    """The reason why it does not take the protocol over the other transports."""
    never_together: ClassVar[Mapping[Role, frozenset[Feature]]] = {}
    """Features that the server has, but not all at once in that role."""
    as_secondary: ClassVar[AsSecondary | None] = None
    as_primary: ClassVar[AsPrimary | None] = None
    """How it transfers zones; None: unknown, so models leave it out."""
    as_resolver: ClassVar[AsResolver | None] = None
    """How it resolves; None: it does not resolve, or nothing can be set."""
    remedies: ClassVar[Mapping[str, str]] = {}
    """Id of a trap -> what helps against it with this server: a few words, added to the remedy of the trap."""
    log_clock_resolution_ns: ClassVar[int]
    log_time: ClassVar[tuple[re.Pattern[str], str] | None] = None
    """Pattern of the time in a line of its log, with group ``time`` (whole seconds) and perhaps ``ms``, and the format
    of ``time`` for strptime(3), in which the year may be missing. By default its lines have no time."""
    done_pattern: ClassVar[str] = r"(?!)(?P<zone>)"
    """Pattern of a line of the log that reports that a zone has arrived, by transfer or from a database, with group
    ``zone``; by default there is no such line."""
    failure_patterns: ClassVar[Mapping[str, str]] = {}
    """Kind of failure -> pattern."""
    zone_pattern: ClassVar[str] = r"(?!)(?P<zone>)"
    """Pattern of a line of its configuration that names a zone, with group ``zone``; by default there is no such
    line."""
    settings_command: ClassVar[tuple[str, ...]] = ()
    """Command that prints the settings in force, a line each, while the server runs; ``{folder}`` and ``{state}`` are
    its folders as it sees them. By default there is no such command."""
    defaults_command: ClassVar[tuple[str, ...]] = ()
    """Command that prints the defaults of all settings, whatever the configuration is; by default there is no such
    command."""
    work_patterns: ClassVar[Mapping[str, str]] = {}
    """Kind of work beside answering that concerns all zones or the configuration -> pattern of the line at its
    start."""

    arguments: ClassVar[tuple[str, ...]] = ()
    """Arguments of the foreground command; `Placement.words` lists the placeholders."""
    configuration_file: ClassVar[str] = ""
    """Name of its configuration in `Placement.directory`; empty: its whole configuration is on the command line."""
    templates: ClassVar[Mapping[Role, str]] = {}
    """Role -> file with the template of its configuration, in the folder of its module."""
    check_command: ClassVar[tuple[str, ...]] = ()
    """Command with which the server checks its configuration, without starting, with the same placeholders. By
    default there is no such command."""
    address_arguments: ClassVar[tuple[str, ...] | None] = None
    """Words that set one ``{address}`` on the command line, over a configuration; None: the configuration sets it."""
    port_arguments: ClassVar[tuple[str, ...]] = ()
    """Words that set the ``{port}`` there."""
    listen_pattern: ClassVar[str] = r"(?!)"
    """Pattern of a line of its configuration that sets where it listens."""
    listen_line: ClassVar[str] = ""
    """Such a line, as a template."""
    listens_everywhere: ClassVar[bool] = False
    """Whether it listens at all addresses without such a line."""
    template_variables: ClassVar[Mapping[str, str]] = {}
    """Meaning of each variable of `variables`; ``settings`` is among them."""

    def configure(self, placement: Placement) -> None:
        """Write the configuration, and whatever else must exist before the start."""
        if not self.configuration_file:
            return
        known, host, folder = self.known(placement), placement.host, placement.directory
        text = templates.configuration(self.template(placement.role), known, host.config)
        (folder / self.configuration_file).write_text(text)
        if host.config is not None:
            (folder / f"{self.configuration_file}{GIVEN}").write_text(host.config.text)
        if host.include is not None:
            (folder / f"{self.include_name}{GIVEN}").write_text(host.include.text)
            (folder / templates.INCLUDE_FOLDER).mkdir()
            snippet = templates.configuration("", known, host.include)
            (folder / templates.INCLUDE_FOLDER / self.include_name).write_text(snippet)

    def template(self, role: Role) -> str:
        """The template of its configuration in ``role``. Raises KeyError if it has none."""
        return Path(sys.modules[type(self).__module__].__file__ or "").with_name(self.templates[role]).read_text()

    def variables(self, placement: Placement) -> dict[str, Any]:
        """The variables of its template that other servers' templates do not have, and ``settings``."""
        return {"settings": dict(placement.settings)}

    def known(self, placement: Placement) -> dict[str, Any]:
        """All variables of its template."""
        return {**templates.variables(placement, self.include_name), **self.variables(placement)}

    @property
    def include_name(self) -> str:
        """Name of the user's snippet in `templates.INCLUDE_FOLDER`."""
        return f"own{Path(self.configuration_file).suffix}"

    def preparations(self, placement: Placement) -> list[Preparation]:
        """Programs to run, in this order, after `configure` and before the start."""
        return []

    def command(self, placement: Placement) -> list[str]:
        """The foreground command."""
        return [self.executable, *placement.words(self.arguments)]

    def listen_arguments(self, placement: Placement) -> list[str]:
        """Words after its command that set where it listens, for a configuration of the user that does not."""
        if self.address_arguments is None or not templates.without_addresses(placement.host.config):
            return []
        words = [word.format(address=at) for at in placement.addresses for word in self.address_arguments]
        return [*words, *(word.format(port=DNS_PORT) for word in self.port_arguments)]

    def load_changes(self, placement: Placement) -> list[Preparation]:
        """Programs to run so that a primary loads changed zone files; empty: it loads them at `reload_signal`."""
        return []

    def support(self, feature: Feature) -> Support:
        """The versions since which it has ``feature``, by role."""
        return self.features.get(feature, NOT_AT_ALL)

    def lacks(self, role: Role, features: Iterable[Feature], version: str) -> tuple[Feature, str | None] | None:
        """The first of ``features`` that ``version`` lacks in ``role``, and the version since which the server has it.

        A version without digits is not known yet, and lacks only what every version lacks.
        """
        for feature in features:
            since = self.support(feature).since(role)
            if since is None or (numbers(version) and numbers(version) < numbers(since)):
                return feature, since
        return None

    def conflict(self, role: Role, features: Iterable[Feature]) -> list[Feature]:
        """The features among ``features`` that exclude each other in ``role``."""
        clash = self.never_together.get(role, frozenset())
        return sorted(clash) if clash and clash <= set(features) else []

    def limits(self, role: Role, settings: Mapping[str, Scalar]) -> list[ServerLimit]:
        """Limits that the server sets for itself in ``role`` with ``settings``."""
        return []

    def zone_check(self, zones: Sequence[Zone], dataset: str, folder: str) -> ZoneCheck:
        """How the server's own checker reads ``zones`` below ``dataset``. ``folder`` has the files of the check. Both
        are paths as its programs see them."""
        return ZoneCheck()

    def configured(self, placement: Placement) -> set[str] | None:
        """The zones in the configuration of the server, without those from a catalog; None: unknown."""
        line = re.compile(self.zone_pattern, re.MULTILINE)
        texts = [path.read_text() for path in placement.directory.glob("*.conf")]
        return {match["zone"] for text in texts for match in line.finditer(text)} or None

    def read_defaults(self, text: str) -> dict[str, str]:
        """The output of ``defaults_command`` as setting -> value; empty if a version does not print them."""
        return printed_defaults(text)

    def workdir(self, placement: Placement) -> str:
        return placement.seen_state

    def log_time_ns(self, line: str) -> int | None:
        """Realtime ns of a line of the log, which is written in UTC; None if the line has no time."""
        if self.log_time is None:
            return None
        pattern, date_format = self.log_time
        if "%Y" in date_format:
            return utc_ns(line, pattern, date_format)
        return utc_ns_without_year(line, pattern, date_format, near=datetime.now(UTC))

    def read_log(self, path: Path) -> Iterator[LogEvent]:
        """The events of a log, in its order. Never fails, whatever the server wrote."""
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
        """Work beside answering, from a log: the kinds of ``work_patterns``, and each transfer of the zone
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
    over_https: bool = False,
    over_quic: bool = False,
    catalog_schema: int = 2,
    through_database: bool = False,
) -> list[Feature]:
    """Features that a server needs in ``role`` for ``transfer``, and for queries over TLS if ``over_tls``, over
    HTTPS if ``over_https``, over QUIC if ``over_quic``.

    With ``through_database`` its zones pass through a database, and nothing is transferred.
    """
    queried: dict[Feature, bool] = {"DoT": over_tls, "DoH": over_https, "DoQ": over_quic}
    over = [feature for feature, is_wanted in queried.items() if is_wanted]
    if role in ("resolver", "frontend"):
        return over
    if through_database:
        return ["zone database", *over]
    follows_catalog = transfer.provisioning == "catalog"
    wanted: dict[Feature, bool] = {
        "TSIG": transfer.tsig,
        "XoT": transfer.tls and not transfer.quic,
        "XoQ": transfer.quic,
        **queried,
        "catalog zones": follows_catalog and catalog_schema != 1,
        "catalog zones of schema 1": follows_catalog and catalog_schema == 1,
        "IXFR": transfer.ixfr,
        "NOTIFY": transfer.notify,
        # A secondary takes no updates: for it, their outcome is a change like any other.
        "dynamic updates": transfer.updates and role == "primary",
        "several source addresses": several_sources,
    }
    return [feature for feature, is_wanted in wanted.items() if is_wanted]


def connection_limit(
    settings: Mapping[str, Scalar], name: str, own: int, *, default: bool, each_thread: bool = False
) -> ServerLimit:
    """The number of TCP connections of clients that the server has at a time, as set by ``settings``, or else
    ``own``."""
    value = settings.get(name, own)
    return ServerLimit(
        setting=name,
        value=value,
        default=default,
        effect="connections",
        connections=value if isinstance(value, int) else None,
        each_thread=each_thread,
        remedy=f'raise it, e.g. settings = {{ "{name}" = 100000 }}, and the files that the server may open',
    )


def timer(settings: Mapping[str, Scalar], name: str, default_s: float, remedy: str) -> ServerLimit:
    """A time in seconds that the server waits, as set by ``settings``."""
    value = settings.get(name, default_s)
    timer_s = float(value) if isinstance(value, int | float) else None
    return ServerLimit(
        setting=name, value=value, default=name not in settings, effect="timer", timer_s=timer_s, remedy=remedy
    )
