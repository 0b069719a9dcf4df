"""What a run directory holds: the contract between measuring and reading.

::

    runs/<experiment>/<UTC time>-<4 letters>/
      manifest.json                    Manifest
      bisect.json                      what `dnsrig bisect` looks for, in a run that is a search
      trials/<variant id>/<repeat>/
        trial.json                     TrialRecord
        zones.arrow                    one row a zone, from `probe`
        log-<host>.arrow               one row a zone, as that server's log tells it
        profile-<host>.folded          where a host's CPU time went: stacks, folded (outermost frame first) with a count
        samples.arrow                  what `watch` saw
        statistics.arrow               a resolver's own counters, each second while it was measured
        queries.arrow                  one row a query of `load`, where `options.query_rows` asks for it; beside a
                                       simulated Internet what that was asked, one row a second and kind of query
        not-in-world.arrow             the names that it was asked for and does not have
        sockets.arrow                  TCP connections of hosts, one row a socket and interval, from `watch` (procedures
                                       that want it)
        link-<host>-<host>.arrow       what went over an emulated link, one row a direction and interval, from `link`
        clocks-<host>.arrow            clocks of other machines, one row an exchange with one
        generators/<load>/<host>/      of several generators, or one on another machine: the files of each one's own
                                       `load`, `warmup` and `ramp`, by its machine's clock
        servers/<host>/                configuration as used, log (packed when large); of the server under test
                                       defaults.txt, its defaults as it prints them
        instruments/                   standard error of the instruments
      notes.json                       what people said of it in `dnsrig browse`: a note, tags, whether it is a baseline
      findings.json                    Findings (derived)
      summary.parquet                  one row a trial and metric (derived)
      report.html                      (derived)

Times are CLOCK_MONOTONIC nanoseconds of the machine that measured, unless a name says otherwise. What was seen on
other machines is moved to that clock (`ClockRecord` says how well); in samples.arrow `machine@<name>` is another
machine as a whole.
Files are written whole or not at all: to a temporary name, synced, then renamed.

A run may come from somebody else. Links lead to a run, but none is followed inside it, and only regular files are
read: a link, a FIFO or a device in the place of a file is damage. A JSON document that is larger than 64 MiB or
nested deeply, a number beyond all counters, and a row file whose lengths contradict each other are damage, too.
Nothing is written into a run that belongs to another user: `dnsrig report` and `export` write to the cache or to
`--out`, and `--resume`, `import --to` and the notes of `dnsrig browse` refuse it.

Metrics are derived: `dnsrig report`, `compare`, `plan --from-run` and `export` compute them from what a trial recorded,
so that a new metric has a value in old runs as well. Earlier versions wrote `metrics` into trial.json: what stands
there counts only where it cannot be computed any more, because rows were deleted or the metric is no longer known.

trial.json has size and checksums of the files of rows, latencies and profiles. Of a file that was cut or damaged since,
nothing is derived; charts show what lies before the damage, and the trap `damaged-files` says how to measure the trial
again. findings.json lists under `failures` each metric, trap, chart, export and section that raised an exception, with
the line that did.
"""

from __future__ import annotations

import re
import shlex
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from dnsrig import files, old_names
from dnsrig.errors import DnsrigError, UsageError

SCHEMA_VERSION = 3
"""Raised by one whenever an older dnsrig would misread a newer run directory."""
DEFAULTS_FILE = "defaults.txt"
SEARCH_FILE = "bisect.json"
FULL_PACKET_BYTES = 1500
"""Of IP: the MTU of Ethernet (RFC 894)."""


NAME = r"[A-Za-z0-9._-]{1,200}"


def _is_name(text: str) -> str:
    if not re.fullmatch(NAME, text) or not text.strip("."):
        raise ValueError(f"{text[:80]!r} is no name: letters, digits, dots, dashes and underscores")
    return text


Name = Annotated[str, AfterValidator(_is_name)]
"""Of a variant, a host, a file: it becomes one part of a path, whoever wrote the file that it is read from."""
FORMER_PROCEDURES = {"carriers": "replication", "pull": "transfer-load"}
"""What procedures were called in earlier versions, and are called now."""
ProcedureName = Annotated[str, AfterValidator(lambda name: FORMER_PROCEDURES.get(name, name))]
Scalar = str | int | float | bool
Address = IPv4Address | IPv6Address
Family = Literal["ipv4", "ipv6"]
Outcome = Literal["done", "timeout", "server-failed", "invalid", "error"]
Verdict = Literal["found", "clear", "cannot-tell"]
Role = Literal["primary", "secondary", "resolver", "database", "world"]
"""What a server does in a trial; a resolver asks the primaries, or a world, and answers from its cache; a database
carries zones for DNS servers; a world is a simulated Internet."""
OBSERVER = "observer"
"""The host of the instruments that stand in nobody's place, `load` and `probe` among them: every trial has it, and a
link from it to each DNS server."""
LinkKind = Literal["veth", "netem", "tun", "nic"]
"""What carries packets: the kernel as it is, the kernel's network emulator, the engine's `link`, or a cable between two
machines."""


class Record(BaseModel):
    """Base of everything stored: unknown keys are an error, never dropped in silence."""

    model_config = ConfigDict(extra="forbid")


def _keyed(data: Any, path: str, without: str = "") -> Any:
    """What an earlier version stored: the key is the last part of the path that it has under the name ``path``."""
    if not isinstance(data, dict) or path not in data:
        return data
    kept = {name: value for name, value in data.items() if name not in (path, without)}
    return {"key": Path(data[path] or "").name, **kept}


class Anchor(Record):
    """One reading of both clocks; the mapping between them is known to ±``error_ns``."""

    monotonic_ns: int
    realtime_ns: int
    error_ns: int


class Phase(Record):
    name: Literal["setup", "warmup", "measure", "drain"]
    start: Anchor
    end: Anchor


class ServerSource(Record):
    """Where a server's binaries come from, resolved to exact versions: ``KIND@SOURCE``."""

    kind: str
    source: str
    version: str
    key: Name | Literal[""] = ""
    """Of what was made of it in the cache; empty for a source that lies on the machine itself."""
    packages: dict[str, str] = Field(default_factory=dict)
    fingerprint: str = ""
    """Of the program, for sources that packages do not pin down."""
    commit: str = ""
    """Full hash, of a server that was built from its repository; empty for others."""

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, data: Any) -> Any:
        """They had paths: ``root`` of what has a key now, and ``prefix``, which is the source itself."""
        return _keyed(data, "root", without="prefix")

    @property
    def prefix(self) -> str | None:
        """Folder of the user's own build."""
        return self.source if self.source.startswith("/") else None

    @property
    def name(self) -> str:
        return f"{self.kind}@{self.source}"

    @property
    def label(self) -> str:
        return f"{self.kind} {self.version} ({self.source})"


class HostOptions(BaseModel):
    """Of a host: what an experiment says of it and a trial takes as it stands."""

    machine: Name | None = Field(
        default=None,
        description="the machine that the host is on, by its name in the file that `--machines` names; by default this one",
    )
    nic: str | None = Field(
        default=None,
        pattern=r"^[\w.:@-]{1,15}$",
        description="a physical interface of its machine that becomes the host's own: its way to hosts on other machines",
    )
    profile: bool = Field(
        default=False, description="sample CPU stacks with perf while measuring; drawn as a flame graph"
    )
    congestion: str | None = Field(
        default=None,
        description="congestion control of the host's TCP connections, e.g. `cubic`; by default the kernel's",
    )
    advmss_bytes: int | None = Field(
        default=None, ge=88, le=65_495, description="largest TCP segment that the host asks for, by its routes"
    )
    mss_clamp_bytes: int | None = Field(
        default=None,
        ge=88,
        le=65_495,
        description="largest TCP segment that a SYN from or to the host may name, lowered on the way",
    )


Level = Literal["no-do", "do-unvalidated", "validating"]
"""What a resolver does about DNSSEC: it does not ask for signatures (DO, RFC 3225); it asks and does not look at them;
it validates (RFC 4035)."""


class Resolving(BaseModel):
    """How a resolver resolves, by names that mean the same for every kind: by default they are equal."""

    level: Level = Field(
        default="do-unvalidated",
        description="what it does about DNSSEC: `no-do`, `do-unvalidated` or `validating`; not every resolver has each",
    )
    cache_mb: int = Field(default=256, ge=8, le=1 << 20, description="size of its cache in MiB")
    recursions: int = Field(
        default=4096, ge=16, le=1 << 20, description="client queries that may wait for authorities at once, a thread"
    )
    tcp_clients: int = Field(default=1000, ge=1, le=1 << 16, description="TCP and TLS connections of clients at once")
    query_timeout_ms: int = Field(
        default=10_000, ge=500, le=30_000, description="after which it gives a client's query up"
    )
    upstream: Literal["both", "ipv4", "ipv6"] = Field(
        default="both", description="the address families of the authorities that it asks: `both`, `ipv4` or `ipv6`"
    )
    qname_minimisation: bool = Field(default=True, description="whether it minimises names (RFC 9156)")
    prefetch: bool = Field(default=False, description="whether it asks again for what is about to expire")
    serve_stale: bool = Field(default=False, description="whether it answers with what has expired (RFC 8767)")
    aggressive_nsec: bool = Field(
        default=True, description="whether it denies names by validated NSEC records in its cache (RFC 8198)"
    )


class HostDuties(BaseModel):
    """Of a host: what a procedure demands of it and a trial takes as it stands."""

    role: Role | None = None
    """Of its server; None: it has none."""
    under_test: bool = False
    asks: bool = False
    """Whether an instrument on it puts queries on the server under test, in place of the observer."""
    notified: bool = False
    """Whether each of its source addresses is a secondary, played by an instrument, to which primaries send NOTIFY."""
    database: str | None = None
    """The host of the database that its server writes its zones to, reads them from, or replicates."""
    database_far: bool = False
    """Whether that database lies at another site: what passes between them then takes TLS where transfers do."""


class ResolvingSpec(Resolving, Record):
    """As `Resolving`, in a trial."""


class HostSpec(HostOptions, HostDuties, Record):
    """A host of the small network, resolved for a trial: what is said and demanded of it, and what follows from
    both."""

    address: str
    """At which it is asked, and from which it asks; it has another of the other family (``lab/addresses.py``)."""
    cpus: list[int]
    sysctls: dict[str, str] = Field(default_factory=dict)
    server: ServerSource | None = None
    settings: dict[str, Scalar] = Field(default_factory=dict)
    """Of the server."""
    resolving: ResolvingSpec | None = None
    """Of a resolver; None of other servers, and in runs of earlier versions."""
    source_addresses: list[str] = Field(default_factory=list)
    """More addresses of the host, from which its server asks for transfers in turn with ``address``."""
    nic_shared: bool = False
    """Whether other hosts have the same ``nic``: each then has a macvlan interface of it (ip-link(8))."""
    client_range: str = ""
    """A prefix all of whose addresses are the host's, one for each client that it replays; empty: it replays none."""
    server_ranges: list[str] = Field(default_factory=list)
    """Prefixes all of whose addresses are the host's, for the servers of the simulated Internet that it is."""

    @property
    def ranges(self) -> list[str]:
        """Prefixes all of whose addresses are the host's."""
        return [prefix for prefix in (self.client_range, *self.server_ranges) if prefix]


Transport = Literal["tcp", "tcp+tsig", "xot", "xot+tsig"]
Provisioning = Literal["static", "catalog"]


class TransferSpec(Record):
    """How zones get from primary to secondary."""

    transport: Transport = Field(
        default="tcp", description="tcp, tcp+tsig, xot or xot+tsig (XoT: RFC 9103; TSIG: RFC 8945)"
    )
    provisioning: Provisioning = Field(
        default="static",
        description="how a secondary knows its zones: static configuration, or a catalog zone (RFC 9432)",
    )
    ixfr: bool = Field(
        default=False, description="whether the secondary asks for IXFR (RFC 1995) and the primary has it"
    )
    notify: bool = Field(default=False, description="whether the primary sends NOTIFY (RFC 1996) of changed zones")
    updates: bool = Field(
        default=False, description="whether the primary takes dynamic updates (RFC 2136) of its zones"
    )

    @property
    def tls(self) -> bool:
        return self.transport.startswith("xot")

    @property
    def tsig(self) -> bool:
        return self.transport.endswith("tsig")


class FarSpec(Record):
    """Delays that the far ends of packets have, each address its own and always the same."""

    distribution: str
    """Its name (``lab/sites.py``)."""
    rtt_classes: list[tuple[float, float, float]]
    """(from so many milliseconds, to so many, weight) of round trips, of which each direction has half."""
    prefixes: list[str]
    """Whose addresses."""
    seed: int
    """Another one gives them other round trips. Repeats have the same."""


class PathSpec(Record):
    """One direction of an emulated path."""

    rate_mbit: float | None = None
    """None: as fast as the machine."""
    delay_ms: float = 0.0
    """One way."""
    jitter_ms: float = 0.0
    """Uniform: each packet takes ``delay_ms`` ± this."""
    ordered: bool = True
    """Whether jitter keeps packets in order: none overtakes the one ahead of it, which raises the typical delay."""
    loss_percent: float = 0.0
    """Of packets, each independent of the others."""
    loss_over_time: list[tuple[float, float]] = Field(default_factory=list)
    """(seconds since the link began, loss in percent from then on); replaces ``loss_percent``."""
    limit_packets: int = 1000
    """When so many wait, the next is dropped."""
    mtu_bytes: int | None = None
    """Of the path where it is less than the interfaces': larger packets are dropped."""
    icmp: bool = True
    """Whether the sender of a packet that is too large is told so (RFC 1191, RFC 8201)."""
    far: FarSpec | None = None
    """What far ends add to the delay; None: all packets are delayed alike."""

    @property
    def longest_ms(self) -> float:
        """The longest delay that a packet may have, one way."""
        own_ms = max((high_ms / 2 for _, high_ms, _ in self.far.rtt_classes), default=0.0) if self.far else 0.0
        return self.delay_ms + self.jitter_ms + own_ms

    def loss_percent_at(self, after_s: float) -> float:
        """The loss in force ``after_s`` since the link began."""
        steps = [percent for since_s, percent in self.loss_over_time if since_s <= after_s]
        return steps[-1] if steps else self.loss_percent if not self.loss_over_time else 0.0


class LinkSpec(Record):
    """What joins two hosts."""

    ends: tuple[Name, Name]
    kind: LinkKind = "veth"
    mtu_bytes: int = 1500
    """Of the interfaces."""
    forward: PathSpec | None = None
    """From the first of ``ends`` to the second, which is where zones go; None: plain."""
    reverse: PathSpec | None = None
    seed: int = 1
    """Of loss and jitter; a repeat's number is added, so that the same repeat of all variants meets the same."""

    @property
    def emulated(self) -> bool:
        return self.forward is not None or self.reverse is not None

    @property
    def name(self) -> str:
        """As in the names of its files: ``primary-secondary``."""
        return "-".join(self.ends)


class DatasetSpec(Record):
    """A dataset as it lies in the cache, by its ``key`` there."""

    kind: str
    key: Name | Literal[""]
    """Empty: it is not made yet."""
    zones: int
    records: int
    serial: int
    parameters: dict[str, Scalar] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, data: Any) -> Any:
        """They had the ``path`` of what has a key now."""
        return _keyed(data, "path")


ClockBasis = Literal["due", "sending"]
"""When the clock of a latency starts: when a query was due, or when it was sent."""


DNSRIG_LOAD = "dnsrig load"
"""Name of our own load generator among the tools of imported results."""


class ImportedSpec(Record):
    """Of results that another tool measured."""

    basis: ClockBasis
    """The first that is told where two runs differ in it."""
    tool: str
    version: str = ""
    """As it tells; empty: it does not."""
    resolution_ns: int | None = None
    """Of a single latency; None: it tells none."""


class ImportedRecord(Record):
    """Of the file that a trial was read from."""

    file: str
    """Its name: untrusted text."""
    sha256: str
    command: str = ""
    """Of the tool, as it tells: untrusted text."""
    missing: list[str] = Field(default_factory=list)
    """What it does not tell, a sentence each."""


class StreamSpec(Record):
    """What clients ask, as it lies in the cache, by its ``key`` there."""

    kind: str
    key: Name | Literal[""]
    """Empty: it is not made yet, and what it holds is not known."""
    queries: int = 0
    clients: int = 0
    span_s: float = 0.0
    """From its first query to its last."""
    transports: dict[str, int] = Field(default_factory=dict)
    """Queries by transport, as they were captured."""
    parameters: dict[str, Scalar] = Field(default_factory=dict)


class Variant(Record):
    """One point of the matrix."""

    id: Name
    parameters: dict[str, Scalar]
    """Axis label -> value, in the order of the matrix."""

    @property
    def label(self) -> str:
        return " ".join(f"{k}={v}" for k, v in self.parameters.items()) or "only"


class MachineSpec(Record):
    """Another machine, on which hosts of a trial are, and how ssh gets there."""

    ssh: str
    python: str = "python3"
    cache: str = ""
    config: str = ""
    """File of ssh's configuration; empty: the user's own."""
    boot_id: str = ""
    """Of the run's beginning: a machine that was restarted since is refused."""


class TrialSpec(Record):
    """All that `dnsrig trial` reads."""

    schema_version: int = SCHEMA_VERSION
    run: str
    experiment: str
    procedure: ProcedureName
    variant: Variant
    repeat: int
    link: str
    kernel: str
    family: Family = "ipv4"
    """Of the addresses over which everything goes that is measured."""
    cpus_sleep: bool = True
    """Whether CPUs that have nothing to do may sleep, as they did in runs of earlier versions."""
    hosts: dict[Name, HostSpec]
    machines: dict[Name, MachineSpec] = Field(default_factory=dict)
    """Those that hosts are on, beside this one."""
    links: list[LinkSpec]
    dataset: DatasetSpec
    next_dataset: DatasetSpec | None = None
    """The same zones in their next version, for procedures that change them."""
    stream: StreamSpec | None = None
    """What is replayed, for procedures that do."""
    limit_s: float
    storage: Literal["disk", "memory"] = "disk"
    """Where servers store: on the file system of the run directory, or on a tmpfs."""
    transfer: TransferSpec = Field(default_factory=TransferSpec)
    options: dict[str, Scalar] = Field(default_factory=dict)
    main_metric: str = "transfer_time_s"
    """The metric that answers the procedure's question."""
    imported: ImportedSpec | None = None
    """Of results of another tool; None: they were measured here."""

    @property
    def subject(self) -> str:
        """The host whose server is under test."""
        return next((name for name, host in self.hosts.items() if host.under_test), "secondary")

    @property
    def server(self) -> ServerSource | None:
        """The server under test."""
        host = self.hosts.get(self.subject)
        return None if host is None else host.server

    @property
    def generators(self) -> list[str]:
        """The hosts whose instruments put queries on the server under test, each its share of one schedule."""
        return [name for name, host in self.hosts.items() if host.asks] or [OBSERVER]

    @property
    def instrument_hosts(self) -> list[str]:
        """The hosts of instruments: the observer, and those that ask in its place."""
        return list(dict.fromkeys([*(name for name in self.hosts if name == OBSERVER), *self.generators]))

    def whole_machine(self, host: str) -> str:
        """The host of samples.arrow that stands for the whole machine that ``host`` is on."""
        machine = self.hosts[host].machine
        return "machine" if machine is None else f"machine@{machine}"

    def interface(self, host: str, other: str) -> str:
        """The source of samples.arrow that is the interface of ``host`` towards ``other``: it is called as that, or is
        the one of its own that it has for all hosts on other machines."""
        by_nic = any(link.kind == "nic" and set(link.ends) == {host, other} for link in self.links)
        return f"link:{self.hosts[host].nic if by_nic else other}"

    @property
    def over_tls(self) -> bool:
        """Whether the server under test is asked over TLS (DoT, RFC 7858): a replay asks as clients did, those of DoH
        and DoQ over DoT."""
        classes = str(self.options.get("classes", ""))
        asked = {self.options.get("transport"), *re.findall(r"transport\s*=\s*([\w-]+)", classes)}
        captured = self.stream.transports if self.stream is not None and "as-captured" in asked else {}
        return "dot" in asked or not {"dot", "doh", "doq"}.isdisjoint(captured)

    @property
    def primaries(self) -> list[str]:
        """The hosts that the subject has its zones or its answers from."""
        return [name for name, host in self.hosts.items() if host.role == "primary" and name != self.subject]

    @property
    def world(self) -> str | None:
        """The host that is a simulated Internet; None without one."""
        return next((name for name, host in self.hosts.items() if host.role == "world"), None)


class ServerLimit(Record):
    """A limit that a server sets itself, as in force in this trial, for traps to hold what was measured against."""

    setting: str
    value: Scalar
    default: bool
    effect: Literal["rate", "silent-start", "timer"] = "rate"
    """``silent-start``: it answers nothing before all zones are there; ``timer``: it waits for one."""
    zones_per_s: float | None = None
    """What a ``rate`` allows when nothing else binds."""
    timer_s: float | None = None
    remedy: str


class Privileges(Record):
    """What a server may do, as the kernel states it of the server's first process (proc_pid_status(5))."""

    user: int
    capabilities: list[str]
    """The effective ones."""
    no_new_privileges: bool
    own_pid_namespace: bool
    """Whether it sees only the processes of its host."""


class ServerRecord(Record):
    """What is known of a server that ran in a trial."""

    server: ServerSource
    role: str
    host: str
    command: list[str]
    pid: int
    exec_ns: int
    """Taken immediately before execve."""
    settings: dict[str, Scalar]
    """As asked for by the experiment."""
    threads: int | None
    """Counted while it served, from /proc."""
    privileges: Privileges | None = None
    """None: not known, as in trials of earlier versions, where servers were root."""
    limits: list[ServerLimit] = Field(default_factory=list)
    log_clock_resolution_ns: int
    exit_status: int | None = None
    """None when it was still running and was stopped by the rig as intended."""


class LogDrilldown(Record):
    """Per-zone completions as the secondary's log tells them: for the drill-down, never for the result."""

    zones: int
    """Distinct zones with a completion line."""
    first_realtime_ns: int | None
    last_realtime_ns: int | None
    resolution_ns: int
    failures: dict[str, int] = Field(default_factory=dict)
    """Failure lines by kind, e.g. ``no free port``."""
    first_failure_realtime_ns: dict[str, int] = Field(default_factory=dict)
    examples: dict[str, str] = Field(default_factory=dict)
    """One line as logged, by kind: untrusted text."""
    unread: str = ""
    """Why the log could not be read to its end; what is above is then of the lines before."""


class ProfileRecord(Record):
    """Of a host whose CPU stacks were to be sampled."""

    samples: int = 0
    """All in ``profile-<host>.folded``; 0 with a reason where it could not be done."""
    rate_per_s: float = 0.0
    reason: str = ""


class ProcessCounts(Record):
    """What the kernel counted of a host's processes from just before `measure` to just after."""

    voluntary_switches: int
    """How often a thread left its CPU to wait."""
    involuntary_switches: int
    """How often it lost it to another one."""
    minor_faults: int
    """Of pages that were in memory."""
    major_faults: int
    """Of pages that were read from a disk."""


class FileRecord(Record):
    """A file of a trial as it was when the trial ended: what is read later is held against it."""

    bytes: int
    chunk_bytes: int = Field(1 << 16, ge=1)
    crc32: str
    """Of each ``chunk_bytes``, eight hexadecimal digits a piece."""


class Check(Record):
    """A manipulation check: one thing that had to be so, on the hosts of a trial while it measured, for its variant to
    be what its name says."""

    name: str
    title: str
    verdict: Literal["passed", "failed", "cannot-tell"]
    asked: Scalar | None = None
    seen: Scalar | None = None
    """None: nothing tells."""
    unit: str = ""
    least: float | None = None
    most: float | None = None
    """Within which ``seen`` must be; without both it must be what was ``asked``."""
    reason: str = ""
    """A sentence, for every verdict but ``passed``."""
    series: list[str] = Field(default_factory=list)
    """Which rows or samples show it."""


class ClockRecord(Record):
    """The clock of another machine (CLOCK_MONOTONIC), as exchanges with it told: theirs = ours + ``offset_ns`` +
    ``drift_ppb`` × (ours - ``at_ns``)."""

    at_ns: int
    offset_ns: int
    drift_ppb: float
    error_ns: int
    """Within which that held at each comparison."""
    realtime_offset_ns: int
    """Their wall time less ours."""
    realtime_error_ns: int
    comparisons: int


class MachineRecord(Record):
    """Another machine that hosts of a trial were on."""

    conditions: dict[str, Any]
    """What may differ from one trial to the next."""
    clock: ClockRecord | None = None
    """By which its times were moved to this machine's in the trial's rows."""


class TrialRecord(Record):
    """trial.json: how a trial went."""

    schema_version: int = SCHEMA_VERSION
    spec: TrialSpec
    outcome: Outcome
    reason: str = ""
    """One sentence for every outcome but ``done``."""
    phases: list[Phase]
    anchors: list[Anchor] = Field(default_factory=list)
    """Readings of both clocks during the trial, for the trap of clock steps."""
    servers: dict[Name, ServerRecord]
    instruments: dict[str, dict[str, Any]]
    """The final summary event of each instrument, e.g. ``probe``, ``watch``."""
    logs: dict[str, LogDrilldown] = Field(default_factory=dict)
    profiles: dict[str, ProfileRecord] = Field(default_factory=dict)
    """By host, where `HostSpec.profile` asked for it."""
    counts: dict[Name, ProcessCounts] = Field(default_factory=dict)
    """By host, of those with a server; empty in runs of earlier versions, and where nothing was measured."""
    checks: list[Check] = Field(default_factory=list)
    """The manipulation checks that its procedure declares; empty in runs of earlier versions, and where nothing was
    measured."""
    link_checks: list[dict[str, Any]] = Field(default_factory=list)
    """The links as measured before the start."""
    conditions: dict[str, Any] = Field(default_factory=dict)
    """The machine around this trial: what may differ from one trial to the next."""
    machines: dict[Name, MachineRecord] = Field(default_factory=dict)
    """Those that hosts were on, beside this one."""
    imported: ImportedRecord | None = None
    """Of results of another tool."""
    files: dict[Name, FileRecord] = Field(default_factory=dict)
    """The files of rows, latencies and profiles by name; empty in runs of earlier versions, whose files are read as
    they are."""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    """Of earlier versions, which computed them when the trial ended. Now they are derived
    (`dnsrig.analysis.read.Trial.value`), and what stands here counts only where that yields nothing any more."""

    @model_validator(mode="before")
    @classmethod
    def _old_names(cls, data: Any) -> Any:
        return old_names.record(data)

    @field_validator("outcome", mode="before")
    @classmethod
    def _of_earlier_versions(cls, value: object) -> object:
        """Up to schema version 2 `timeout` was called ``limit``."""
        return "timeout" if value == "limit" else value

    def phase(self, name: str) -> Phase | None:
        return next((p for p in self.phases if p.name == name), None)

    def link_summary(self, link: LinkSpec) -> dict[str, Any]:
        """What an emulated link said of itself at its end, among ``instruments``: as `link` where it is the only one.
        Empty where it said nothing."""
        return self.instruments.get(f"link-{link.name}") or self.instruments.get("link", {})


class TrialKey(Record):
    variant: Name
    repeat: int


class Extension(Record):
    """Repeats that were added to a run after it was made."""

    first_repeat: int
    order_seed: int
    """Of the order of the trials from that repeat on, up to the next extension."""


class Machine(Record):
    """One of several equal machines that a run is spread over."""

    name: Name
    conditions: dict[str, Any]
    """What the lab's snapshot says of it."""


class Manifest(Record):
    """manifest.json: what was asked for, in which order, by what, on what machine."""

    schema_version: int = SCHEMA_VERSION
    run: str
    dnsrig_version: str
    engine_fingerprint: str = ""
    created: str
    """UTC, ISO 8601."""
    experiment: str
    title: str
    question: str
    sources: list[str]
    scale: str
    document: dict[str, Any]
    """The experiment's TOML with scale and --set applied."""
    procedure: ProcedureName
    axes: dict[str, list[Scalar]]
    """Axis label -> values, in the order of the matrix."""
    baseline: dict[str, Scalar] = Field(default_factory=dict)
    """Axis label -> value of the baseline, for the axes that have one."""
    variants: list[Variant]
    order: list[TrialKey]
    order_seed: int
    """Of the repeats that it was made with."""
    repeats: int
    extensions: list[Extension] = Field(default_factory=list)
    servers: dict[str, ServerSource]
    specs: dict[str, TrialSpec]
    """Variant id -> spec with ``repeat`` 0: the trial's spec but for its number."""
    conditions: dict[str, Any]
    """Of the machine that the run was started on."""
    machines: list[Machine] = Field(default_factory=list)
    """What it is spread over, a round (all trials of one repeat) on one of them; empty: all of it ran where it was
    started."""

    @model_validator(mode="after")
    def _refers_to_what_it_has(self) -> Manifest:
        """Every reader looks up axes in variants, and variants and specs by the ids of trials."""
        variants = {variant.id: variant for variant in self.variants}
        for variant in self.variants:
            if lost := next((axis for axis in self.axes if axis not in variant.parameters), None):
                raise ValueError(f"variant {variant.id} has no value of the axis {lost!r}")
        if lost := next(
            (name for name in (*variants, *(k.variant for k in self.order)) if name not in self.specs), None
        ):
            raise ValueError(f"variant {lost} has no spec")
        if lost := next((key.variant for key in self.order if key.variant not in variants), None):
            raise ValueError(f"a trial is of the variant {lost}, which there is not")
        return self

    @property
    def is_imported(self) -> bool:
        """Whether other tools measured it."""
        return any(spec.imported is not None for spec in self.specs.values())

    def machine_of(self, repeat: int) -> Machine | None:
        """Where the trials of ``repeat``, counted from 1, run: also those that are repeated because they were lost."""
        return self.machines[(repeat - 1) % len(self.machines)] if self.machines else None

    @property
    def measured_under(self) -> dict[str, Any]:
        """The conditions that its trials ran under: of several machines those that are the same on all."""
        first, *others = [machine.conditions for machine in self.machines] or [self.conditions]
        return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


class Finding(Record):
    """What a trap concluded about one subject."""

    trap: str
    verdict: Verdict
    variant: str | None = None
    """None: the whole run."""
    repeat: int | None = None
    """None: all repeats of the variant."""
    summary: str
    """One sentence with the numbers in it; of `clear` empty, or what another trap has to say."""
    evidence: dict[str, Scalar | None] = Field(default_factory=dict)
    """Name (unit last) -> number."""
    series: list[str] = Field(default_factory=list)
    """Which series of samples.arrow show it, as ``host/source/metric``."""
    metrics: list[str] = Field(default_factory=list)
    """Which metrics it concerns: it is shown beside them."""
    remedy: str = ""
    source: str = ""


class Failure(Record):
    """A part of dnsrig, or of a package that extends it, that raised an exception: the rest went on without it."""

    part: Literal["metric", "trap", "chart", "export", "section"]
    name: str
    error: str
    """The exception, and the line that raised it."""
    trials: list[TrialKey] = Field(default_factory=list)
    """Those in which it did; empty where it looks at the whole run."""


class Findings(Record):
    schema_version: int = SCHEMA_VERSION
    findings: list[Finding]
    failures: list[Failure] = Field(default_factory=list)


Model = TypeVar("Model", bound=BaseModel)


def write_json(path: Path, record: BaseModel) -> None:
    """Write ``record`` to ``path``: whole or not at all."""
    files.write(path, f"{record.model_dump_json(indent=2)}\n".encode())


class NewerSchema(DnsrigError):
    """A newer dnsrig wrote it: this one would misread it."""


def read_json(
    path: Path,
    model: type[Model],
    *,
    version: tuple[str, int] = ("schema_version", SCHEMA_VERSION),
    where_from: str = "is this a run directory of dnsrig?",
    inside: Path | None = None,
) -> Model:
    """Read ``path`` as ``model``; a newer version or a damaged file is one clear sentence.

    ``version``: the key that has it, and the newest that is known; ``where_from``: a hint where there is no such file;
    ``inside``: the folder below which no link is followed, by default the one that has the file.
    """
    try:
        data = files.document(path, inside)
    except FileNotFoundError as error:
        raise DnsrigError(f"{path} does not exist", hint=where_from) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise DnsrigError(f"{path} cannot be read: {why}") from error
    key, newest = version
    found = data.get(key) if isinstance(data, dict) else None
    if isinstance(found, int) and found > newest:
        raise NewerSchema(
            f"{path} was written by a newer dnsrig ({key.removesuffix('_version')} {found}; this one reads up to {newest})",
            hint="update dnsrig to read it",
        )
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DnsrigError(f"{path} is not what dnsrig writes: {where}: {first['msg']}") from error


def trial_dir(run_dir: Path, variant: str, repeat: int) -> Path:
    return run_dir / "trials" / variant / f"{repeat:02d}"


def check_ours(run_dir: Path) -> None:
    """Refuse to write into a run that is somebody else's, or of which a folder of trials is a link."""
    if owner := files.other_owner(run_dir):
        raise UsageError(
            f"{run_dir} belongs to {owner}: dnsrig writes nothing into it",
            hint=f"copy it first: cp -r {shlex.quote(str(run_dir))} COPY",
        )
    trials = run_dir / "trials"
    for folder in (trials, *trials.glob("*"), *trials.glob("*/*")):
        if folder.is_symlink() or (folder.is_dir() and files.other_owner(folder)):
            raise UsageError(
                f"{folder} is a link, or belongs to another user: dnsrig writes nothing into it",
                hint="put a folder of your own there",
            )


def resume_command(run_dir: Path) -> str:
    """What a person types to go on with the run."""
    return f"dnsrig {'bisect' if (run_dir / SEARCH_FILE).exists() else 'run'} --resume {run_dir}"
