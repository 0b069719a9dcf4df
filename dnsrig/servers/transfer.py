"""The instrument `dnsrig-engine transfer` in the place of a secondary: the floor that the protocol sets, for nothing is
stored.

It takes all zones of the primary, pipelined over one connection unless the settings say otherwise, counts their records
and forgets them. It answers no queries: its time is from its exec to the last message of the last zone. Settings are
the options of `transfer` without their dashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar
from dnsrig.servers import keys
from dnsrig.servers._engine import EngineDriver, tsig
from dnsrig.servers.driver import Feature, Setting, Support
from dnsrig.servers.placement import Placement

DEFAULTS: Mapping[str, Scalar] = {"policy": "pipelined", "window": 100}


class Transfer(EngineDriver):
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
        Setting("retry-after", "1s", "after how long"),
        Setting("timeout", "10s", "without a record of a transfer"),
        Setting("time-max-s", "7200", "of a transfer, from its first message, in seconds"),
        Setting("zonemd", "false", "verify each zone's ZONEMD (RFC 8976)"),
        Setting("quickack", "false", "acknowledge at once (TCP_QUICKACK)"),
        Setting("congestion", "the host's", "congestion control of its sockets"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {
        name: Support(None, "0.0") for name in ("TSIG", "XoT", "catalog zones", "IXFR", "NOTIFY")
    }

    def configure(self, placement: Placement) -> None:
        super().configure(placement)
        if len({route.primary for route in placement.routes}) > 1:
            raise UsageError("transfer@engine transfers zones from only one primary", hint="set options.primaries = 1")

    def command(self, placement: Placement) -> list[str]:
        transfer, route = placement.transfer, placement.routes[0]
        options: dict[str, Scalar] = {"transport": "xot" if transfer.tls else "tcp", "threads": placement.threads}
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
        return [*words, *self.words({**DEFAULTS, **options, **placement.settings})]
