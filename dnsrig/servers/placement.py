"""The placement of a server in a trial, with everything that a driver needs for its configuration."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from dnsrig.errors import DnsrigError
from dnsrig.rundir import Address, HostSpec, Resolving, Role, Scalar, ServerSource, TransferSpec
from dnsrig.servers.keys import CERTIFICATE_FILE, PRIVATE_KEY_FILE, TransferKeys
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE, Anchor, read_anchor

SOCKET_FOLDER_MOST_BYTES = 80
"""Longest path of a folder for Unix sockets. The limit of a path is 108 bytes, which includes the socket's name."""
HEAD_BYTES = 4096
"""Beginning of a zone file: a signed zone has the signature of its SOA there."""


@dataclass(frozen=True)
class Zone:
    """A zone of the dataset; ``file`` is relative to the dataset's folder."""

    name: str
    file: str


@dataclass(frozen=True)
class Route:
    """Route of a secondary to a primary, from one of its own addresses."""

    number: int
    """Number from 1, which a configuration uses as a name."""
    primary: Address
    source: Address | None
    """None: the kernel chooses, because there is only one."""


@dataclass(frozen=True)
class Endpoint:
    """Address and port of a database, and whether the connection uses TLS."""

    address: Address
    port: int
    tls: bool


@dataclass(frozen=True)
class Changes:
    """Changes that a primary makes by itself, from `ZoneChanges.begin` to `ZoneChanges.end`. Each has a row in
    ``changes.arrow``."""

    of: Literal["catalog", "zones"]
    """Members of the catalog leave and come back, or records of one zone after another change."""
    per_s: float
    first_member: int = 0
    """First member that changes. The members before it stay in the catalog, so that they can be queried meanwhile."""
    absent: int = 1
    """Number of members that are out of the catalog at a time."""
    delay_s: float = 0.0
    """Delay between the command and the first change."""


@dataclass(frozen=True)
class Placement:
    """The place of a server in a trial. Paths with the prefix ``seen_`` are inside its root file system."""

    host: HostSpec
    """Host with a server and a role."""
    root: Path
    """Root file system of its programs; /: the machine's own."""
    zones: Sequence[Zone]
    routes: Sequence[Route]
    """Routes of a secondary: zone n of ``zones`` has route n modulo their number; a catalog zone and its members have
    the first. For a resolver: the servers to ask about the zones."""
    secondaries: Sequence[Address]
    """Addresses that a primary notifies."""
    transfer: TransferSpec
    keys: TransferKeys
    catalog: Zone | None
    """Catalog zone (RFC 9432) from which a secondary gets its zones; None: they are configured."""
    directory: Path
    """Folder of configuration and logs, which is kept with the trial."""
    seen_directory: str
    state: Path
    """Folder of the files that the server stores, which is removed after the trial."""
    seen_state: str
    dataset: Path
    seen_dataset: str
    shown: Mapping[str, Path] = field(default_factory=dict)
    """Folders and files of the machine that its programs see beside ``root``, such as a build of its source."""
    other_address: Address | None = None
    """Address of the host in the other family."""
    over_tls: bool = False
    """Whether it also answers queries over TLS (DoT, RFC 7858), on the port of XoT; for a database: whether it also
    listens for TLS."""
    database: Endpoint | None = None
    """Database to which a primary writes its zones, from which a secondary reads them instead of transferring them, or
    of which a database is a replica."""
    changes: Changes | None = None
    """Changes that a primary makes by itself, if it can (`Driver.changes_itself`)."""
    stream: Path | None = None
    """File of the stream, in a trial that replays one."""
    seen_stream: str = "/mnt/stream"
    from_hints: bool = False
    """Whether a resolver uses the hints and the trust anchor in ``directory``; otherwise it asks the primaries in
    ``routes``."""

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
        """Address at which it is asked, and from which it asks."""
        return ip_address(self.host.address)

    @property
    def addresses(self) -> Sequence[Address]:
        """Addresses at which it listens, of both families."""
        return [self.address, *([self.other_address] if self.other_address else [])]

    @property
    def settings(self) -> Mapping[str, Scalar]:
        return self.host.settings

    @property
    def holds_sockets(self) -> bool:
        """Whether the path of the state folder is short enough for a Unix socket (unix(7))."""
        return len(self.seen_state) < SOCKET_FOLDER_MOST_BYTES

    @property
    def resolving(self) -> Resolving:
        """Settings of a resolver."""
        return self.host.resolving or Resolving()

    @property
    def anchor(self) -> Anchor | None:
        """The trust anchor, if a resolver validates."""
        if self.resolving.level != "validating" or not self.from_hints:
            return None
        return read_anchor(self.directory / ANCHOR_FILE)

    @property
    def may_change_zones(self) -> bool:
        """Whether the dataset is a copy of the server's own."""
        return self.dataset.is_relative_to(self.state.resolve())

    @property
    def suffix(self) -> str:
        """The longest name at or above all its zones; the root if they have no common label."""
        labels = [zone.name.rstrip(".").split(".")[::-1] for zone in self.zones]
        shared = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*labels))
        return ".".join(level[0] for level in [*shared][::-1]) or "."

    @property
    def tree(self) -> Path:
        """Folder of the files of its source, for the rig: a build, a root file system, the prefix of the user's own
        build, or /."""
        return next(iter(self.shown.values()), Path(self.source.prefix or self.root))

    @property
    def seen_tree(self) -> str:
        """`tree` for its programs, without a slash at the end."""
        return next(iter(self.shown), self.source.prefix or "")

    def shipped(self, names: Sequence[str], what: str, package: str) -> str:
        """The first of the paths ``names`` below `tree` that its source has.

        Raises DnsrigError if there is none: the source lacks ``what``, which is in Debian's ``package``.
        """
        if (found := next((name for name in names if (self.tree / name).exists()), None)) is None:
            raise DnsrigError(
                f"{self.source.name} has no {what} ({names[0]})", hint=f"install it: Debian's package is {package}"
            )
        return found

    @property
    def answers_over_tls(self) -> bool:
        """Whether it listens for TLS: for queries, or as a primary for XoT. Servers have one listener for both."""
        return self.over_tls or (self.transfer.tls and self.role == "primary")

    @property
    def threads(self) -> int:
        return len(self.host.cpus)

    def route_of(self, number: int) -> Route:
        """The route of zone ``number`` in ``zones``."""
        return self.routes[number % len(self.routes)]

    @property
    def configured_zones(self) -> list[Zone]:
        """Zones in the configuration: all zones of a primary; the catalog zone or the members of a secondary."""
        if self.catalog is None:
            return list(self.zones)
        return [*self.zones, self.catalog] if self.role == "primary" else [self.catalog]

    @property
    def signed(self) -> bool:
        """Whether its zones are signed (RFC 4034), from the beginning of the first zone's file."""
        return " RRSIG " in self._head()

    @property
    def hashed(self) -> bool:
        """Whether its zones deny names by hashes (RFC 5155), from the beginning of the first zone's file."""
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
