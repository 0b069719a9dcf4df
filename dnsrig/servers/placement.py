"""The place of a server in a trial: its host, its zones, where it gets them, and its folders."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from dnsrig import datasets
from dnsrig.errors import DnsrigError
from dnsrig.rundir import Address, HostSpec, Resolving, Role, Scalar, ServerSource, TransferSpec
from dnsrig.servers.keys import CERTIFICATE_FILE, PRIVATE_KEY_FILE, TransferKeys
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE, Anchor, read_anchor

DNS_PORT = 53
PROXY_PORTS = {"udp": 8053, "tcp": 8053, "dot": 8853}
"""Ports at which a server takes the PROXY protocol (`HostOptions.proxy_protocol`), by transport."""
SOCKET_FOLDER_MOST_BYTES = 80
"""Length of the path: 108 bytes at most (unix(7)), with room for the name of the socket."""
HEAD_BYTES = 4096
"""Bytes read of a zone file: a signed zone has the signature of its SOA there."""


@dataclass(frozen=True)
class Zone:
    """A zone of the dataset; ``file`` is relative to the dataset's folder."""

    name: str
    file: str


@dataclass(frozen=True)
class Route:
    """Where a secondary gets zones: a primary, asked from one of the secondary's own addresses."""

    number: int
    """Counted from 1; part of names in the configuration."""
    primary: Address
    source: Address | None
    """None: the kernel chooses, because there is only one address."""


@dataclass(frozen=True)
class Endpoint:
    """Where a database listens, and whether clients use TLS there."""

    address: Address
    port: int
    tls: bool


@dataclass(frozen=True)
class Placement:
    """A server's place in a trial. Paths named ``seen_`` are as the server sees them, inside its root file system."""

    host: HostSpec
    """The host, with a server and its role."""
    root: Path
    """The root file system in which its programs run; /: the root of the machine."""
    zones: Sequence[Zone]
    routes: Sequence[Route]
    """For a secondary: zone n of ``zones`` takes route n, in turn; a catalog zone and its members take the first route.
    For a resolver: the primaries to ask about the zones; for a frontend: the server behind it."""
    secondaries: Sequence[Address]
    """For a primary: addresses to notify."""
    transfer: TransferSpec
    keys: TransferKeys
    catalog: Zone | None
    """The catalog zone (RFC 9432) by which a secondary learns of its zones; None if they are configured."""
    directory: Path
    """Configuration and logs: kept with the trial."""
    seen_directory: str
    state: Path
    """What the server stores: removed after the trial."""
    seen_state: str
    dataset: Path
    seen_dataset: str
    shown: Mapping[str, Path] = field(default_factory=dict)
    """Folders and files of the machine that its programs see beside ``root``, such as a build of its source."""
    other_address: Address | None = None
    """The address of the host in the other family."""
    over_tls: bool = False
    """Whether it also answers queries over TLS (DoT, RFC 7858), on the same port as XoT; for a database: whether it
    also listens for TLS."""
    over_https: bool = False
    """Whether it also answers queries over HTTPS (DoH, RFC 8484)."""
    over_quic: bool = False
    """Whether it also answers queries over QUIC (DoQ, RFC 9250), on the port of TLS."""
    database: Endpoint | None = None
    """For a primary: the database to which it writes its zones; for a secondary: the database from which it reads them
    instead of transferring them; for a database: the original that it replicates."""
    changes: Changes | None = None
    """The changes that a primary makes, if it can (`Driver.changes_itself`)."""
    stream: Path | None = None
    """The stream of the clients' queries, in a trial that replays one."""
    seen_stream: str = "/mnt/stream"
    backend_proxied: bool = False
    """Whether a frontend announces its clients to the server behind it with the PROXY protocol."""
    from_hints: bool = False
    """Whether a resolver resolves from the hints in ``directory``, and validates by the trust anchor there. If not, it
    asks the primaries of ``routes``."""

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
        """The address at which it listens, and from which it sends queries."""
        return ip_address(self.host.address)

    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses at which it listens: its address, and the address of the other family."""
        return [self.address, *([self.other_address] if self.other_address else [])]

    @property
    def settings(self) -> Mapping[str, Scalar]:
        return self.host.settings

    @property
    def holds_sockets(self) -> bool:
        """Whether the path of the state folder, as the server sees it, is short enough for a Unix socket (unix(7))."""
        return len(self.seen_state) < SOCKET_FOLDER_MOST_BYTES

    @property
    def resolving(self) -> Resolving:
        """Settings of the server as a resolver."""
        return self.host.resolving or Resolving()

    @property
    def anchor(self) -> Anchor | None:
        """The trust anchor, if the server is a resolver that validates."""
        if self.resolving.level != "validating" or not self.from_hints:
            return None
        return read_anchor(self.directory / ANCHOR_FILE)

    @property
    def may_change_zones(self) -> bool:
        """Whether the dataset is a copy that belongs to this server."""
        return self.dataset.is_relative_to(self.state.resolve())

    @property
    def suffix(self) -> str:
        """The longest name at or below which all its zones are; the root if they share nothing."""
        labels = [zone.name.rstrip(".").split(".")[::-1] for zone in self.zones]
        shared = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*labels))
        return ".".join(level[0] for level in [*shared][::-1]) or "."

    @property
    def tree(self) -> Path:
        """The folder with the files of its source, as the rig sees it: a build, a root file system, the prefix of the
        user's own build, or /."""
        return next(iter(self.shown.values()), Path(self.source.prefix or self.root))

    @property
    def seen_tree(self) -> str:
        """The folder `tree` as its programs see it; no slash at the end."""
        return next(iter(self.shown), self.source.prefix or "")

    def shipped(self, names: Sequence[str], what: str, package: str) -> str:
        """The first of the paths ``names`` below `tree` that its source has.

        Raises DnsrigError if it has none: the source lacks ``what``, which is in Debian's ``package``.
        """
        if (found := next((name for name in names if (self.tree / name).exists()), None)) is None:
            raise DnsrigError(
                f"{self.source.name} has no {what} ({names[0]})", hint=f"install it: Debian's package is {package}"
            )
        return found

    def words(self, command: Iterable[str]) -> list[str]:
        """A command of a driver with ``{folder}`` and ``{state}``, its folders as its programs see them, and with
        ``{threads}`` filled in."""
        values = {"folder": self.seen_directory, "state": self.seen_state, "threads": self.threads}
        return [word.format(**values) for word in command]

    @property
    def answers_over_tls(self) -> bool:
        """Whether it listens for TLS: for queries, or as a primary for XoT. For a server this is the same."""
        over_tls = self.transfer.tls and not self.transfer.quic
        return self.over_tls or (over_tls and self.role == "primary")

    @property
    def answers_over_quic(self) -> bool:
        """Whether it listens for QUIC: for queries, or as a primary for XoQ."""
        return self.over_quic or (self.transfer.quic and self.role == "primary")

    @property
    def threads(self) -> int:
        return len(self.host.cpus)

    def route_of(self, number: int) -> Route:
        """The route of zone ``number`` in ``zones``."""
        return self.routes[number % len(self.routes)]

    @property
    def configured_zones(self) -> list[Zone]:
        """The zones that the configuration names: all zones on a primary, the catalog zone or the members on a
        secondary."""
        if self.catalog is None:
            return list(self.zones)
        return [*self.zones, self.catalog] if self.role == "primary" else [self.catalog]

    @property
    def signed(self) -> bool:
        """Whether zones are signed (RFC 4034): as the dataset says of your own, or else from the beginning of the file
        of the first zone."""
        return self._known("signed_zones", " RRSIG ")

    @property
    def hashed(self) -> bool:
        """Whether zones deny names by hashes (NSEC3, RFC 5155), in the same way."""
        return self._known("hashed_zones", " NSEC3PARAM ")

    def _known(self, fact: str, text: str) -> bool:
        return bool(datasets.facts(self.dataset).get(fact, text in self._head()))

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
    """Changes that a primary makes by itself, from `ZoneChanges.begin` to `ZoneChanges.end`. Each is a row of
    ``changes.arrow``."""

    of: Literal["catalog", "zones"]
    """What changes: members of the catalog leave and come back, or records of one zone after another change."""
    per_s: float
    first_member: int = 0
    """The members before this one stay in the catalog, so that they can be queried meanwhile."""
    absent: int = 1
    """Number of members that are out of the catalog at a time."""
    delay_s: float = 0.0
    """Time from the signal to the first change."""


@dataclass(frozen=True)
class Preparation:
    """A program of the server's that runs on its host before it starts, e.g. to fill a database."""

    command: list[str]
    stdout: str | None = None
    """File in the state folder that takes its output; by default its output joins the log."""
