"""Other servers with the zones that a simulated Internet dumps, and the questions that both are asked."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.flags
import dns.message
import dns.query
import dns.rdatatype
from placement_data import placed
from resolver_host import server, wait_for

from dnsrig.lab import host as lab_host
from dnsrig.lab.host import Host
from dnsrig.rundir import Scalar
from dnsrig.servers import sources
from dnsrig.servers.placement import Zone

TYPES = ["A", "AAAA", "CNAME", "DNSKEY", "DS", "HTTPS", "MX", "NS", "NSEC3PARAM", "PTR", "SOA", "SRV", "TXT", "TYPE999"]
TYPES_MISSING = ["A", "AAAA", "DS", "SOA", "TYPE999"]
"""Asked of names that are not there."""
LEVELS = ["root", "tlds", "zones"]
SETTINGS: dict[str, dict[str, Scalar]] = {
    "bind": {"minimal-responses": "yes", "zero-no-soa-ttl": "no"},
    "nsd": {"minimal-responses": "yes"},
}
"""Otherwise they add the zone's NS records to answers, which is up to a server; and BIND gives the SOA record a TTL of
0 where one asks for the SOA of what has none."""
TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Question:
    name: str
    rtype: str
    dnssec_ok: bool


class Dump:
    """The zones of `generate world --dump`."""

    def __init__(self, folder: Path) -> None:
        lines = (folder / "zones.list").read_text().splitlines()
        self.folder = folder
        self.files = {f"{name}.": file for name, file in (line.split("\t") for line in lines)}
        self.owners: dict[str, list[str]] = {}
        """Of each zone: the names that have records, but for hashes of names (RFC 5155)."""
        self.addresses: dict[str, str] = {}
        """IPv4 addresses by name, of servers among others."""
        self.servers: dict[str, list[str]] = defaultdict(list)
        """Their names, by zone."""
        for zone, file in self.files.items():
            owners: dict[str, None] = {}
            for line in (folder / file).read_text().splitlines():
                owner, _ttl, _class, rtype, data = line.split(" ", 4)
                if rtype == "NSEC3" or (rtype == "RRSIG" and data.startswith("NSEC3 ")):
                    continue
                owners[owner] = None
                if rtype == "A":
                    self.addresses[owner] = data
                elif rtype == "NS" and owner == zone:
                    self.servers[zone].append(data)
            self.owners[zone] = [*owners]

    def address(self, zone: str) -> str:
        """Of the zone's first server."""
        return self.addresses[self.servers[zone][0]]

    def level(self, zone: str) -> str:
        """Zones of different levels are on different servers; reverse zones are on those of `arpa`."""
        if zone.endswith("arpa."):
            return "tlds"
        return LEVELS[0 if zone == "." else zone.count(".")]

    def at(self, level: str) -> list[Zone]:
        return [
            Zone(zone.removesuffix(".") or ".", file) for zone, file in self.files.items() if self.level(zone) == level
        ]

    def questions(self, zone: str) -> list[Question]:
        """About what is there, in any type; about what is missing, in some; each without and with DO."""
        there = self.there(zone)
        asked = [(name, rtype) for name in there for rtype in TYPES]
        asked += [(name, rtype) for name in missing(zone, there) for rtype in TYPES_MISSING]
        return [Question(name, rtype, dnssec_ok) for name, rtype in asked for dnssec_ok in (False, True)]

    def there(self, zone: str) -> list[str]:
        """Names that have records, and those between them and the zone's own name."""
        own_dots = 0 if zone == "." else zone.count(".")
        between = {
            name.split(".", count)[count]
            for name in self.owners[zone]
            for count in range(1, name.count(".") - own_dots)
        }
        return list(dict.fromkeys([*self.owners[zone], *sorted(between)]))


def missing(zone: str, there: list[str]) -> list[str]:
    """Names that the zone has not, or by a wildcard, and one that is not in it."""
    names = [f"missing.{name}" for name in there]
    # `!` and `~` are before and behind all others in the order of names.
    names += [f"{label}.{zone}" for label in ("a.b.missing", "!", "~", "*")]
    names += [f"MiSSing.{zone.upper()}", f"missing.{zone.partition('.')[2]}"]
    return [f"{name.rstrip('.')}." for name in names]


@contextmanager
def serve(kind: str, dump: Dump, hosts: dict[str, Host], folder: Path) -> Iterator[None]:
    """A server on each of ``hosts``, with the zones of the level that the host is called after."""
    source = sources.find(f"{kind}@forky") or sources.install(f"{kind}@forky")
    with ExitStack() as started:
        logs = {}
        for level, host in hosts.items():
            placement = placed(
                folder / level,
                kind,
                "primary",
                root=sources.root(source),
                server=source,
                address=host.spec.address,
                other_address=None,
                secondaries=[],
                cpus=host.spec.cpus,
                zones=dump.at(level),
                dataset=dump.folder,
                settings=SETTINGS.get(kind, {}),
            )
            logs[level] = started.enter_context(server(host, placement))
        for level, host in hosts.items():
            for zone in dump.at(level):
                wait_for(host, host.spec.address, zone.name, "SOA", logs[level])
        yield


@contextmanager
def asking(host: Host, address: str) -> Iterator[socket.socket]:
    """A TCP connection, so that nothing is truncated."""
    with lab_host.inside(host.namespace):
        connection = socket.create_connection((address, 53), timeout=TIMEOUT_S)
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def ask(connection: socket.socket, question: Question) -> dns.message.Message:
    query = dns.message.make_query(question.name, question.rtype, want_dnssec=question.dnssec_ok)
    query.flags &= ~dns.flags.RD
    dns.query.send_tcp(connection, query)
    answer, _ = dns.query.receive_tcp(connection)
    assert query.is_response(answer), (question, answer)
    return answer
