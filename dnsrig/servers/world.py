"""The engine's simulated Internet, `dnsrig-engine serve world`: the root, the TLDs and all other zones, each on servers
of its own (docs/explanation/world.md).

All those servers are one process on one host, which has all their addresses. In its folder are the hints, and the trust
anchor where the root is signed: resolvers of the trial get them. What the trial's clients will ask is signed before it
answers anything, as real servers have their signatures when they start. Settings are the options of `serve world`
without their dashes.
"""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig import datasets
from dnsrig.datasets.world import SPECIFICATION_FILE
from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar
from dnsrig.servers._engine import EngineDriver
from dnsrig.servers.driver import Setting
from dnsrig.servers.placement import Placement


class World(EngineDriver):
    kind = "world"
    title = "world (a simulated Internet)"
    roles = ("world",)
    answers_zones = False
    settings = (
        Setting("threads", "the host's CPUs", "threads that answer, each with a socket of its own (SO_REUSEPORT)"),
        Setting("family", "ipv4,ipv6", "over which families it answers"),
        Setting("signature-cache-mib", "256", "memory for signatures that are kept; 0: each is made anew"),
        Setting("reproducible", "false", "the same question has the same bytes as answer (RFC 6979)"),
        Setting("connections-max", "10000", "TCP connections at once"),
        Setting("idle-timeout", "30s", "closes a connection on which nothing was asked for so long"),
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
