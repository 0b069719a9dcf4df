"""The specification of a trial: everything that `dnsrig trial` reads."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from dnsrig.rundir.base import (
    OBSERVER,
    SCHEMA_VERSION,
    Family,
    Name,
    Record,
    Role,
    Scalar,
    Settings,
)

DescribedRole = Literal["authoritative", "secondary", "resolver", "forwarder"]
ANSWERS = "answers"


class ServerDescription(Settings):
    """A server that an experiment describes, by keys of the experiment."""

    command: list[str] = Field(
        min_length=1,
        max_length=100,
        description="its command, in the foreground: program and arguments. A word that begins with `./` names a file beside "
        "the experiment. `{config}` is the path of its configuration, `{{ NAME }}` the variable NAME of templates",
    )
    roles: list[DescribedRole] = Field(
        min_length=1,
        description="what it can be: `authoritative` (it serves zone files), `secondary` (it transfers zones), `resolver`, "
        "`forwarder` (it asks the primary of the trial for everything)",
    )
    config: str = Field(
        default="",
        description="template of its configuration: a file beside the experiment, or the text itself, if it has several lines",
    )
    packages: list[str] = Field(
        default_factory=list,
        max_length=20,
        description='Debian\'s packages of the server, for `hosts.HOST.server = "NAME@forky"`; the first one has its version',
    )
    ready: str = Field(
        default=ANSWERS,
        max_length=200,
        description="when it is ready: `answers`, or also a regular expression for a line of its log that must come before",
    )
    reload: list[str] = Field(
        default_factory=list,
        max_length=100,
        description='command that makes it load changed zone files, or a signal alone: `["SIGHUP"]`; by default it cannot',
    )
    stop: str = Field(default="SIGTERM", description="the signal that ends it in order")
    version: str | list[str] = Field(
        default="", description="its version, or the command that prints it; a package of Debian has one already"
    )
    features: list[str] = Field(
        default_factory=list,
        description="what its configuration takes from the template's variables, e.g. `TSIG`, `XoT`, `DoT`, `IXFR`, `NOTIFY`, "
        "`catalog zones`; experiments that need others are refused",
    )


class DescribedServer(Record):
    """A server that an experiment describes, as a trial has it."""

    description: ServerDescription
    program: str = ""
    """Path of the program of its command on this machine; empty: the command has only a name."""
    template: str = ""
    """Text of the template of its configuration."""
    files: dict[str, str] = Field(default_factory=dict)
    """Word of the command that names a file -> the file on this machine."""
    hashes: dict[str, str] = Field(default_factory=dict)
    """Word of the command that names a file -> hash of its content."""


class ServerSource(Record):
    """Source of a server's binaries, resolved to exact versions: ``KIND@SOURCE``."""

    kind: str
    source: str
    version: str
    key: Name | Literal[""] = ""
    """Key of the installation in the cache; empty for a source on the machine itself."""
    packages: dict[str, str] = Field(default_factory=dict)
    fingerprint: str = ""
    """Fingerprint of the program, for sources whose packages do not identify it."""
    commit: str = ""
    """Full hash of the commit, if the server was built from its repository."""
    described: DescribedServer | None = None
    """The description, if the experiment describes the server; None: it has a driver."""

    @property
    def prefix(self) -> str | None:
        """Folder of the user's own build, or its program."""
        return self.source if self.source.startswith("/") and not self.key else None

    @property
    def name(self) -> str:
        return f"{self.kind}@{self.source}"

    @property
    def label(self) -> str:
        return f"{self.kind} {self.version} ({self.source})"


class HostOptions(BaseModel):
    """Settings of a host that a trial takes from the experiment unchanged."""

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
    proxy_protocol: bool = Field(
        default=False,
        description="whether its server also listens where each client must announce itself with the PROXY protocol, version 2: "
        "ports 8053 for UDP and TCP, 8853 for TLS",
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
"""DNSSEC level of a resolver: it does not ask for signatures (DO, RFC 3225); it asks for them and ignores them; it
validates (RFC 4035)."""


class Resolving(Settings):
    """Settings of a resolver, by names and with defaults that are the same for every kind of resolver."""

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
    """Tasks of a host that a trial takes from the procedure unchanged."""

    role: Role | None = None
    """Role of its server; None: it has no server."""
    under_test: bool = False
    asks: bool = False
    """Whether an instrument on it sends queries to the server under test, in place of the observer."""
    notified: bool = False
    """Whether each of its source addresses is a secondary, played by an instrument, to which primaries send NOTIFY."""
    database: str | None = None
    """Host of the database to which its server writes its zones, from which it reads them, or which it replicates."""
    database_far: bool = False
    """Whether that database is at another site. The connection then uses TLS if transfers do."""


class OwnFile(Record):
    """A file of the user that a trial has with it."""

    name: str
    """Its name in the experiment."""
    sha256: str
    text: str


class HostSpec(HostOptions, HostDuties, Record):
    """A host of a trial: the settings of the experiment, the tasks from the procedure, and what follows from both."""

    address: str
    """Address at which it is asked, and from which it asks. It has another one of the other family
    (``lab/addresses.py``)."""
    cpus: list[int]
    sysctls: dict[str, str] = Field(default_factory=dict)
    server: ServerSource | None = None
    settings: dict[str, Scalar] = Field(default_factory=dict)
    """Settings of the server."""
    config: OwnFile | None = None
    """Template of the server's configuration; None: dnsrig's own."""
    include: OwnFile | None = None
    """Snippet that its configuration includes, as a template."""
    resolving: Resolving | None = None
    """Settings of a resolver; None for other servers."""
    source_addresses: list[str] = Field(default_factory=list)
    """More addresses of the host. Its server requests transfers from them and from ``address`` in turn."""
    network: Literal["own", "machine"] = "own"
    """``machine``: its programs use the network of the machine, because the server under test runs already."""
    ports: dict[str, int] = Field(default_factory=dict)
    """Ports of a server that runs already, by transport (`udp`, `tcp`, `dot`, `doh`, `doq`); empty: the usual ports."""
    authorized: bool = False
    """Whether the user stated to be allowed to load the server at ``address`` (`--i-am-authorized`)."""
    nic_shared: bool = False
    """Whether other hosts have the same ``nic``: each then has a macvlan interface of it (ip-link(8))."""
    client_range: str = ""
    """Prefix of the addresses of the clients that the host replays; empty: it replays no clients."""
    server_ranges: list[str] = Field(default_factory=list)
    """Prefixes of the addresses of the servers, if the host is a simulated Internet."""

    @property
    def ranges(self) -> list[str]:
        """Prefixes that belong to the host with all their addresses."""
        return [prefix for prefix in (self.client_range, *self.server_ranges) if prefix]


Transport = Literal["tcp", "tcp+tsig", "xot", "xot+tsig", "xoq", "xoq+tsig"]
Provisioning = Literal["static", "catalog"]


class TransferSpec(Settings):
    """Settings of zone transfers from primary to secondary."""

    transport: Transport = Field(
        default="tcp",
        description="tcp, xot (XoT: RFC 9103) or xoq (XoQ, over QUIC: RFC 9250), each also with +tsig (TSIG: RFC 8945)",
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
        """Whether transfers are encrypted, by TLS over TCP or by the TLS 1.3 in QUIC."""
        return not self.transport.startswith("tcp")

    @property
    def quic(self) -> bool:
        return self.transport.startswith("xoq")

    @property
    def carrier(self) -> str:
        """The transport without the signature: `tcp`, `xot` or `xoq`."""
        return self.transport.removesuffix("+tsig")

    @property
    def tsig(self) -> bool:
        return self.transport.endswith("tsig")


class FarSpec(Record):
    """Delays of the far ends of packets: each address has its own, which never changes."""

    distribution: str
    """Name of the distribution (``lab/sites.py``)."""
    rtt_classes: list[tuple[float, float, float]]
    """Classes of round trips: (lower end in ms, upper end in ms, weight). Each direction has half of a round trip."""
    prefixes: list[str]
    """Prefixes of the far addresses."""
    seed: int
    """Seed of the round trips; the same in all repeats."""


class PathSpec(Record):
    """One direction of an emulated path."""

    rate_mbit: float | None = None
    """None: the rate of the machine."""
    delay_ms: float = 0.0
    """Delay in one direction."""
    jitter_ms: float = 0.0
    """Uniform: each packet has the delay ``delay_ms`` ± this."""
    ordered: bool = True
    """Whether jitter keeps packets in order, which raises the typical delay."""
    loss_percent: float = 0.0
    """Share of packets that are lost, each independent of the others."""
    loss_over_time: list[tuple[float, float]] = Field(default_factory=list)
    """(seconds since the link began, loss in percent from then on); replaces ``loss_percent``."""
    limit_packets: int = 1000
    """Length of the queue; when it is full, the next packet is dropped."""
    mtu_bytes: int | None = None
    """MTU of the path, if it is smaller than the MTU of the interfaces: larger packets are dropped."""
    icmp: bool = True
    """Whether the sender of a packet that is too large gets an ICMP error (RFC 1191, RFC 8201)."""
    far: FarSpec | None = None
    """Delays that far ends add; None: all packets have the same delay."""

    @property
    def longest_ms(self) -> float:
        """The longest delay that a packet may have, in one direction."""
        own_ms = max((high_ms / 2 for _, high_ms, _ in self.far.rtt_classes), default=0.0) if self.far else 0.0
        return self.delay_ms + self.jitter_ms + own_ms

    def loss_percent_at(self, after_s: float) -> float:
        """The loss at ``after_s`` seconds since the link began."""
        steps = [percent for since_s, percent in self.loss_over_time if since_s <= after_s]
        return steps[-1] if steps else self.loss_percent if not self.loss_over_time else 0.0


class LinkSpec(Record):
    """A link between two hosts."""

    ends: tuple[Name, Name]
    kind: Name = "veth"
    """Carrier of packets, by its name in ``lab/links``: a plain veth pair, the kernel's network emulator, the engine's
    `link`, or a cable between two machines."""
    header_bytes: int = 14
    """Link-layer header that the counters of the interfaces include with each packet."""
    writes_rows: bool = False
    """Whether the link records its traffic in ``link-<host>-<host>.arrow``; otherwise the counters of the interfaces
    show it."""
    mtu_bytes: int = 1500
    """MTU of the interfaces."""
    forward: PathSpec | None = None
    """The direction of the zones, from the first of ``ends`` to the second; None: not emulated."""
    reverse: PathSpec | None = None
    seed: int = 1
    """Seed of loss and jitter. The number of the repeat is added, so that a repeat has the same losses in all
    variants."""

    @property
    def emulated(self) -> bool:
        return self.forward is not None or self.reverse is not None

    @property
    def name(self) -> str:
        """Name of the link, as in the names of its files: ``primary-secondary``."""
        return "-".join(self.ends)


class DatasetSpec(Record):
    """A dataset in the cache."""

    kind: str
    key: Name | Literal[""]
    """Key in the cache; empty: the dataset is not made yet."""
    zones: int
    records: int
    serial: int
    """The oldest serial of its zones."""
    parameters: dict[str, Scalar] = Field(default_factory=dict)
    signed_zones: int = 0
    """Number of the user's own zones with records of DNSSEC or a digest, which dnsrig cannot make anew."""
    serials_differ: bool = False
    """Whether its zones have different serials."""


ClockBasis = Literal["due", "sending"]
"""Start of a latency: when a query was due, or when it was sent."""
DNSRIG_LOAD = "dnsrig load"
"""Name of our own load generator among the tools of imported results."""


class ImportedSpec(Record):
    """Tool that measured imported results."""

    basis: ClockBasis
    """Start of the latencies. It comes first, because it is the most important difference between two runs."""
    tool: str
    version: str = ""
    """Version that the tool reports; empty: it reports none."""
    resolution_ns: int | None = None
    """Resolution of a single latency; None: not known."""


class StreamSpec(Record):
    """A stream of clients' queries in the cache."""

    kind: str
    key: Name | Literal[""]
    """Key in the cache; empty: the stream is not made yet, and its content is not known."""
    queries: int = 0
    clients: int = 0
    span_s: float = 0.0
    """Time from its first query to its last."""
    transports: dict[str, int] = Field(default_factory=dict)
    """Queries by transport, as they were captured."""
    parameters: dict[str, Scalar] = Field(default_factory=dict)


class QueriesSpec(Record):
    """Queries of the user's own, in the cache, or EDNS of queries for the dataset."""

    key: Name | Literal[""] = ""
    """Key in the cache; empty: the file was not read yet."""
    name: str = ""
    """Name of the file; empty: the queries ask for names of the dataset."""
    sha256: str = ""
    """Hash of the file."""
    format: str = ""
    """Format of the file: ``text``, ``binary`` or ``capture``."""
    queries: int = 0
    types: dict[str, int] = Field(default_factory=dict)
    """Number of queries by type."""
    skipped: int = 0
    """Number of lines that could not be read and were left out."""
    parameters: dict[str, Scalar] = Field(default_factory=dict)
    """The other keys of ``[queries]``; a list of subnets by its hash."""

    @property
    def complete(self) -> bool:
        """Whether the file has complete queries, each with flags and EDNS of its own."""
        return self.format not in ("", "text")


class Variant(Record):
    """One point of the matrix."""

    id: Name
    parameters: dict[str, Scalar]
    """Axis label -> value, in the order of the matrix."""

    @property
    def label(self) -> str:
        return " ".join(f"{k}={v}" for k, v in self.parameters.items()) or "only"


class MachineSpec(Record):
    """Another machine with hosts of a trial, and how ssh reaches it."""

    ssh: str
    python: str = "python3"
    cache: str = ""
    config: str = ""
    """File with ssh's configuration; empty: the user's own."""
    boot_id: str = ""
    """Boot id at the beginning of the run: a machine that was restarted since is refused."""


class TrialSpec(Record):
    """Everything that `dnsrig trial` reads."""

    schema_version: int = SCHEMA_VERSION
    run: str
    experiment: str
    procedure: str
    variant: Variant
    repeat: int
    link: str
    kernel: str
    family: Family = "ipv4"
    """Address family of all traffic that is measured."""
    cpus_sleep: bool = True
    """Whether idle CPUs may sleep."""
    hosts: dict[Name, HostSpec]
    machines: dict[Name, MachineSpec] = Field(default_factory=dict)
    """Other machines with hosts of the trial, by name."""
    links: list[LinkSpec]
    dataset: DatasetSpec
    next_dataset: DatasetSpec | None = None
    further_datasets: list[DatasetSpec] = Field(default_factory=list)
    """Versions after the next one."""
    """The same zones in their next version, for procedures that change them."""
    stream: StreamSpec | None = None
    """The stream that is replayed, for procedures that replay."""
    queries: QueriesSpec | None = None
    """Queries of the user's own, or EDNS of queries for the dataset; None: queries for the dataset alone."""
    limit_s: float
    storage: Literal["disk", "memory"] = "disk"
    """Storage of servers: the file system of the run directory, or a tmpfs."""
    transfer: TransferSpec = Field(default_factory=TransferSpec)
    options: dict[str, Scalar] = Field(default_factory=dict)
    main_metric: str = "transfer_time_s"
    """The metric that answers the procedure's question."""
    imported: ImportedSpec | None = None
    """Tool that measured imported results; None: dnsrig measured them."""

    @property
    def subject(self) -> str:
        """The host whose server is under test."""
        return next((name for name, host in self.hosts.items() if host.under_test), "secondary")

    @property
    def runs_already(self) -> bool:
        """Whether the server under test runs already, so that nothing is started for it."""
        host = self.hosts.get(self.subject)
        return host is not None and host.network == "machine"

    @property
    def transport(self) -> str:
        """Transport of the queries or transfers: `udp`, `tcp`, `dot`, `doh` or `doq`. A stream as it was captured
        counts as `udp`."""
        asked = str(self.options.get("transport", ""))
        if asked:
            return "udp" if asked == "as-captured" else asked
        return {"tcp": "tcp", "xot": "dot", "xoq": "doq"}[self.transfer.carrier]

    @property
    def server(self) -> ServerSource | None:
        """The server under test."""
        host = self.hosts.get(self.subject)
        return None if host is None else host.server

    @property
    def generators(self) -> list[str]:
        """Hosts whose instruments send queries to the server under test, each its share of one schedule."""
        return [name for name, host in self.hosts.items() if host.asks] or [OBSERVER]

    @property
    def instrument_hosts(self) -> list[str]:
        """Hosts of instruments: the observer, and the generators."""
        return list(dict.fromkeys([*(name for name in self.hosts if name == OBSERVER), *self.generators]))

    def whole_machine(self, host: str) -> str:
        """Name in samples.arrow of the whole machine that ``host`` is on."""
        machine = self.hosts[host].machine
        return "machine" if machine is None else f"machine@{machine}"

    def interface(self, host: str, other: str) -> str:
        """Source in samples.arrow of the interface of ``host`` towards ``other``.

        It is named after ``other``, or after the physical interface that it has for hosts on other machines.
        """
        here, there = self.hosts.get(host), self.hosts.get(other)
        if here is not None and there is not None and here.machine != there.machine:
            return f"link:{here.nic}"
        return f"link:{other}"

    @property
    def versions(self) -> list[DatasetSpec]:
        """All versions of the zones, the first one first."""
        return [self.dataset, *([self.next_dataset] if self.next_dataset else []), *self.further_datasets]

    @property
    def primaries(self) -> list[str]:
        """Hosts from which the server under test gets its zones or its answers."""
        return [name for name, host in self.hosts.items() if host.role == "primary" and name != self.subject]

    @property
    def world(self) -> str | None:
        """Host that is a simulated Internet; None: there is none."""
        return next((name for name, host in self.hosts.items() if host.role == "world"), None)
