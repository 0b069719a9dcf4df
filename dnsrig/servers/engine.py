"""Subcommands of the engine as servers: a reflector, a synthetic secondary and primary, and a simulated Internet.

Their whole configuration is on the command line. Settings are the options of the subcommand without dashes. An option
that may occur several times takes its values separated by spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from dnsrig import datasets
from dnsrig.datasets.world import SPECIFICATION_FILE
from dnsrig.errors import UsageError
from dnsrig.rundir import Address, Scalar
from dnsrig.servers import keys
from dnsrig.servers.driver import Driver, Feature, Setting, Support
from dnsrig.servers.placement import Placement, Preparation


class EngineDriver(Driver):
    """A subcommand of the engine, as a server."""

    executable = "dnsrig-engine"
    packages = ()
    only_source = "engine"
    writes_kept = True
    version_arguments = ("--version",)
    version_pattern = r"dnsrig-engine (\d\S*)"
    log_clock_resolution_ns = 1
    repeatable: frozenset[str] = frozenset()
    """Settings whose text may contain several values."""

    def configure(self, placement: Placement) -> None:
        """Refuse unknown settings before anything is started."""
        known = {setting.name for setting in self.settings}
        if unknown := sorted(set(placement.settings) - known):
            raise UsageError(f"{self.kind} has no setting {unknown[0]!r}", hint=f"it has: {', '.join(sorted(known))}")

    def words(self, options: Mapping[str, Scalar]) -> list[str]:
        """The arguments for ``options``: true is an option without a value, false is left out."""
        found = []
        for name, value in options.items():
            if isinstance(value, bool):
                found += [f"--{name}"] if value else []
            elif name in self.repeatable:
                found += [f"--{name}={part}" for part in str(value).split()]
            else:
                found.append(f"--{name}={value}")
        return found


def tsig(placement: Placement) -> str:
    """The key as an argument of the engine: ALGORITHM:NAME:SECRET."""
    return f"{keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{placement.keys.tsig_secret}"


class Echo(EngineDriver):
    """The engine's own reflector, `dnsrig-engine serve echo`: the floor under every latency that is measured here.

    It has no zones and answers every query with the query itself, so what is measured against it is the instrument, the
    kernel and the network. Settings are the options of `serve echo` without their dashes: faults that it makes on
    request, so that what the instrument reports can be compared with a known truth.
    """

    kind = "echo"
    title = "echo (the instrument's floor)"
    roles = ("primary", "secondary", "resolver")
    answers_zones = False
    reflects = True
    fault_settings = frozenset({"delay", "jitter", "loss", "stall"})
    settings = (
        Setting("threads", "the host's CPUs", "threads that answer, each with a socket of its own (SO_REUSEPORT)"),
        Setting("segmentation", "false", "send answers with UDP segmentation offload, which real servers do not do"),
        Setting("early-data", "false", "over DoT, DoH and DoQ, queries in a first flight (0-RTT): true, or refuse"),
        Setting("doh-fault", "none", 'fault of every connection of DoH, e.g. "goaway=100"'),
        Setting("delay", "none", 'delay of every answer, e.g. "10ms"'),
        Setting("jitter", "none", "random part of the delay, uniform, to either side"),
        Setting("loss", "none", 'share of queries that get no answer, e.g. "1%"'),
        Setting("stall", "none", "duration for which it stops reading, once every `stall-every`"),
        Setting("stall-every", "1s", "time from one stall to the next"),
        Setting("stall-threads", "all", "number of threads that stall"),
        Setting("seed", "1", "seed of loss and jitter"),
        Setting("streams-max", "100", "over DoQ, streams that a client may have open at a time"),
        Setting("retry", "false", "over DoQ, have every client prove its address first (Retry)"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        name: Support("0.0", "0.0", "0.0") for name in ("DoT", "DoH", "DoQ")
    }

    def command(self, placement: Placement) -> list[str]:
        options: dict[str, Scalar] = {"threads": placement.threads, **placement.settings}
        transports = ["udp", "tcp"]
        transports += ["dot"] if placement.over_tls else []
        transports += ["doh"] if placement.over_https else []
        transports += ["doq"] if placement.over_quic else []
        if placement.over_tls or placement.over_https or placement.over_quic:
            options |= {"certificate": placement.certificate, "key": placement.private_key}
        words = [self.executable, "serve", "echo", str(placement.address), f"--transport={','.join(transports)}"]
        return [*words, *self.words(options)]


TRANSFER_DEFAULTS: Mapping[str, Scalar] = {"policy": "pipelined", "window": 100}


class Transfer(EngineDriver):
    """The instrument `dnsrig-engine transfer` in the place of a secondary: the floor that the protocol sets, for
    nothing is stored.

    It takes all zones of the primary, pipelined over one connection unless the settings say otherwise, counts their
    records and forgets them. It answers no queries: its time is from its exec to the last message of the last zone.
    Settings are the options of `transfer` without their dashes.
    """

    kind = "transfer"
    title = "transfer (protocol floor, not stored)"
    roles = ("secondary",)
    answers = False
    answers_zones = False
    finishes = True
    settings = (
        Setting("policy", "pipelined", "one (connection a zone), reused or pipelined"),
        Setting("window", "100", "zones asked for at once on a connection"),
        Setting("connections", "1", "connections at once"),
        Setting("close", "fin", "how a connection is closed: fin or rst"),
        Setting("soa", "none", "SOA query before each transfer: none, udp, or on the same connection"),
        Setting("threads", "the host's CPUs", "threads that receive"),
        Setting("retries", "3", "attempts after the first one of a zone that failed"),
        Setting("retry-after", "1s", "time until the next attempt"),
        Setting("timeout", "10s", "longest time without a record of a transfer"),
        Setting("time-max-s", "7200", "longest time of a transfer from its first message, in seconds"),
        Setting("zonemd", "false", "verify each zone's ZONEMD (RFC 8976)"),
        Setting("quickack", "false", "acknowledge at once (TCP_QUICKACK)"),
        Setting("congestion", "the host's", "congestion control of its TCP sockets"),
        Setting("quic-congestion", "cubic", "over XoQ, its congestion control: cubic, newreno or bbr"),
        Setting("quic-window-bytes", "16777216", "over XoQ, bytes that may be on their way to it"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        name: Support(None, "0.0") for name in ("TSIG", "XoT", "XoQ", "catalog zones", "IXFR", "NOTIFY")
    }

    def configure(self, placement: Placement) -> None:
        super().configure(placement)
        if len({route.primary for route in placement.routes}) > 1:
            raise UsageError("transfer@engine transfers zones from only one primary", hint="set options.primaries = 1")

    def command(self, placement: Placement) -> list[str]:
        transfer, route = placement.transfer, placement.routes[0]
        options: dict[str, Scalar] = {"transport": transfer.carrier, "threads": placement.threads}
        if transfer.tls:
            options |= {"verify": "ca", "ca": placement.certificate, "server-name": keys.TLS_NAME}
        if transfer.tsig:
            options["tsig"] = tsig(placement)
        what = (
            f"--catalog={placement.catalog.name}"
            if placement.catalog
            else f"--zones={placement.seen_dataset}/zones.list"
        )
        words = [self.executable, "transfer", str(route.primary), what, f"--out={placement.seen_directory}"]
        if route.source:
            words.append(f"--source={route.source}")
        return [*words, *self.words({**TRANSFER_DEFAULTS, **options, **placement.settings})]


GENERATOR = "zones"
"""The generator of tiny zones, as in dataset.json."""
ROWS = "changes.arrow"
HEAD_BYTES = 512
"""Bytes read of the catalog's file: its version is before the first member."""


class Zones(EngineDriver):
    """The engine's synthetic primary, `dnsrig-engine serve zones`: zones computed from the dataset's seed, nothing
    stored.

    It serves datasets of tiny zones only: as many, of the same names, the same number of records and the same serial,
    though not the same data. So a secondary meets a primary that is never what it waits for. Settings are the options
    of `serve zones` without their dashes, faults that it makes on request among them, e.g. ``fault = "servfail-after=10
    slow=5ms"``.
    """

    kind = "zones"
    title = "zones (synthetic primary)"
    roles = ("primary",)
    repeatable = frozenset({"fault"})
    changes_itself = True
    remedies = {"transfer-limit": "concurrent-max"}
    settings = (
        Setting("threads", "the host's CPUs", "threads that answer"),
        Setting("message-bytes", "65535", "most bytes of a message of a transfer"),
        Setting("records-per-message", "as many as fit", "records in a message of a transfer"),
        Setting("order", "in-order", "of transfers on one connection: in-order, or interleaved message by message"),
        Setting("tsig-every", "1", "number of messages of a transfer of which one is signed"),
        Setting("large", "none", "N:RECORDS: number of records in the first N zones"),
        Setting("concurrent-max", "none", "transfers at a time; the excess is answered SERVFAIL"),
        Setting("changes-per-s", "0", "changes a second, of one zone after another"),
        Setting("change-records", "1", "records of a change"),
        Setting("changes-before", "0", "changes of every zone before the start: the serial is higher by this number"),
        Setting("changes-kept", "100; of the catalog 10,000", "number of earlier serials for which it answers IXFR"),
        Setting("notify-interval", "100ms", "least time between two NOTIFYs of the catalog"),
        Setting("connections-max", "10000", "TCP connections at once"),
        Setting("idle-timeout", "30s", "time without a query after which it closes a connection"),
        Setting("quic-congestion", "cubic", "over XoQ, its congestion control: cubic, newreno or bbr"),
        Setting("quic-window-bytes", "16777216", "over XoQ, bytes that may be on their way on a connection"),
        Setting("streams-max", "100", "over XoQ, streams that a client may have open at a time"),
        Setting("fault-every", "1", "faults hit only zones whose number is a multiple of it"),
        Setting("fault", "none", "faults on purpose, KIND or KIND=VALUE, separated by spaces"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        name: Support("0.0", None)
        for name in ("TSIG", "XoT", "XoQ", "catalog zones", "catalog zones of schema 1", "IXFR", "NOTIFY")
    }

    def configure(self, placement: Placement) -> None:
        super().configure(placement)
        if datasets.facts(placement.dataset).get("generator") != GENERATOR:
            raise UsageError(
                "zones@engine serves only a dataset of kind tiny-zones",
                hint='set dataset.kind = "tiny-zones", or choose another primary',
            )

    def command(self, placement: Placement) -> list[str]:
        facts = datasets.facts(placement.dataset)
        transports = ["udp", "tcp"]
        options: dict[str, Scalar] = {
            "count": facts["count"],
            "records": facts["records_per_zone"],
            "suffix": facts["suffix"],
            "seed": facts["seed"],
            "serial": facts["serial"],
            "catalog": facts["catalog"],
            "catalog-schema": catalog_schema(placement),
            "threads": placement.threads,
        }
        if placement.answers_over_tls:
            transports.append("xot")
            options |= {"certificate": placement.certificate, "key": placement.private_key, "xot-port": keys.XOT_PORT}
        if placement.answers_over_quic:
            transports.append("xoq")
            options |= {"certificate": placement.certificate, "key": placement.private_key, "xoq-port": keys.XOT_PORT}
        if placement.transfer.tsig:
            options["tsig"] = tsig(placement)
        words = [self.executable, "serve", "zones", str(placement.address), f"--transport={','.join(transports)}"]
        if placement.transfer.notify:
            words += [f"--notify={text}" for text in ranges(placement.secondaries)]
        if changes := placement.changes:
            options |= {
                "changes-of": changes.of,
                "changes-per-s": changes.per_s,
                "changes-on-signal": True,
                "changes-delay": f"{changes.delay_s}s",
                "out": f"{placement.seen_directory}/{ROWS}",
            }
            if changes.of == "catalog":
                options |= {"first-member": changes.first_member, "absent": changes.absent}
        return [*words, *self.words({**options, **placement.settings})]

    def load_changes(self, placement: Placement) -> list[Preparation]:
        raise UsageError(
            "zones@engine generates its zones, so it has no files to change",
            hint='let it change its zones itself: settings "changes-per-s"',
        )


def catalog_schema(placement: Placement) -> int:
    """The version of the dataset's catalog zone (RFC 9432 §4.2.1), which must be the same on every primary."""
    file = placement.dataset / datasets.CATALOG_FILE
    if not file.is_file():
        return 2
    with file.open() as text:
        return 1 if 'TXT "1"' in text.read(HEAD_BYTES) else 2


def ranges(addresses: Iterable[Address]) -> list[str]:
    """Neighbours as FIRST-LAST, so that a thousand addresses fit on a command line.

    >>> from ipaddress import ip_address
    >>> ranges([ip_address("192.0.2.1"), ip_address("192.0.2.2"), ip_address("192.0.2.9")])
    ['192.0.2.1-192.0.2.2', '192.0.2.9']
    """
    found: list[list[Address]] = []
    for address in addresses:
        if found and found[-1][-1] + 1 == address:
            found[-1] = [found[-1][0], address]
        else:
            found.append([address])
    return ["-".join(map(str, group)) for group in found]


class World(EngineDriver):
    """The engine's simulated Internet, `dnsrig-engine serve world`: the root, the TLDs and all other zones, each on
    servers of its own (docs/explanation/world.md).

    All those servers are one process on one host, which has all their addresses. In its folder are the hints, and the
    trust anchor where the root is signed: resolvers of the trial get them. What the trial's clients will ask is signed
    before it answers anything, as real servers have their signatures when they start. Settings are the options of
    `serve world` without their dashes.
    """

    kind = "world"
    title = "world (a simulated Internet)"
    roles = ("world",)
    answers_zones = False
    settings = (
        Setting("threads", "the host's CPUs", "threads that answer, each with a socket of its own (SO_REUSEPORT)"),
        Setting("family", "ipv4,ipv6", "families over which it answers"),
        Setting("signature-cache-mib", "256", "memory for signatures that are kept, in MiB; 0: each is made anew"),
        Setting("reproducible", "false", "whether a question always has the same bytes as answer (RFC 6979)"),
        Setting("connections-max", "10000", "TCP connections at once"),
        Setting("idle-timeout", "30s", "time without a query after which it closes a connection"),
    )

    def configure(self, placement: Placement) -> None:
        super().configure(placement)
        if datasets.facts(placement.dataset).get("generator") != "world":
            raise UsageError("world@engine serves only a dataset of kind world", hint='set dataset.kind = "world"')

    def command(self, placement: Placement) -> list[str]:
        ipv4, ipv6 = placement.host.server_ranges
        options: Mapping[str, Scalar] = {
            "ipv4": ipv4,
            "ipv6": ipv6,
            "threads": placement.threads,
            "out": placement.seen_directory,
            **placement.settings,
        }
        if placement.stream is not None:
            options = {"sign-ahead": placement.seen_stream, **options}
        specification = f"{placement.seen_dataset}/{SPECIFICATION_FILE}"
        return [self.executable, "serve", "world", specification, *self.words(options)]
