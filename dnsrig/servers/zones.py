"""The engine's synthetic primary, `dnsrig-engine serve zones`: zones computed from the dataset's seed, nothing stored.

It serves datasets of tiny zones only: as many, of the same names, the same number of records and the same serial,
though not the same data. So a secondary meets a primary that is never what it waits for. Settings are the options of
`serve zones` without their dashes, faults that it makes on request among them,
e.g. ``fault = "servfail-after=10 slow=5ms"``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from dnsrig import datasets
from dnsrig.errors import UsageError
from dnsrig.rundir import Address, Scalar
from dnsrig.servers import keys
from dnsrig.servers._engine import EngineDriver, tsig
from dnsrig.servers.driver import Feature, Preparation, Setting, Support
from dnsrig.servers.placement import Placement

GENERATOR = "zones"
"""As dataset.json names what made tiny zones."""
ROWS = "changes.arrow"
HEAD_BYTES = 512
"""Of the catalog's file: its version stands before the first member."""


class Zones(EngineDriver):
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
        Setting("tsig-every", "1", "of so many messages of a transfer one is signed"),
        Setting("large", "none", "N:RECORDS: the first N zones have so many records"),
        Setting("concurrent-max", "none", "transfers at a time; the excess is answered SERVFAIL"),
        Setting("changes-per-s", "0", "changes a second, of one zone after another"),
        Setting("change-records", "1", "records of a change"),
        Setting(
            "changes-before", "0", "changes of every zone that lie behind at the start: the serial is so much higher"
        ),
        Setting("changes-kept", "100; of the catalog 10,000", "serials back to which it answers IXFR"),
        Setting("notify-interval", "100ms", "it tells of the catalog at most once in so long"),
        Setting("connections-max", "10000", "TCP connections at once"),
        Setting("idle-timeout", "30s", "closes a connection on which nothing was asked for so long"),
        Setting("fault-every", "1", "faults hit only zones whose number is a multiple of it"),
        Setting("fault", "none", "what it does wrong, KIND or KIND=VALUE; several are separated by spaces"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        name: Support("0.0", None)
        for name in ("TSIG", "XoT", "catalog zones", "catalog zones of schema 1", "IXFR", "NOTIFY")
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
    """The version of the dataset's catalog zone (RFC 9432 §4.2.1), so that a secondary meets the same from every
    primary."""
    file = placement.dataset / datasets.CATALOG_FILE
    if not file.is_file():
        return 2
    with file.open() as text:
        return 1 if 'TXT "1"' in text.read(HEAD_BYTES) else 2


def ranges(addresses: Iterable[Address]) -> list[str]:
    """Neighbours as FIRST-LAST, so that a thousand addresses do not make a command line of their own.

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
