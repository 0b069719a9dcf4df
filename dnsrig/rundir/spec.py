"""The specification of a trial: everything that `dnsrig trial` reads."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, Field

from dnsrig.rundir.base import (
    OBSERVER,
    SCHEMA_VERSION,
    Family,
    LinkKind,
    Name,
    Record,
    Role,
    Scalar,
)


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
    """Settings of a resolver; None for other servers."""
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
    """Its name (``lab/rtts.py``)."""
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
    procedure: str
    variant: Variant
    repeat: int
    link: str
    kernel: str
    family: Family = "ipv4"
    """Of the addresses over which everything goes that is measured."""
    cpus_sleep: bool = True
    """Whether idle CPUs may sleep."""
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
