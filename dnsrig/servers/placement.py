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
"""Of 108, with room for the socket's own name."""
HEAD_BYTES = 4096
"""Of a zone file: a signed one has the signature of its SOA there."""


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
