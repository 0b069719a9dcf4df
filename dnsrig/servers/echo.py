"""The engine's own reflector, `dnsrig-engine serve echo`: the floor under every latency that is measured here.

It has no zones and answers every query with the query itself, so what is measured against it is the instrument, the
kernel and the network. Settings are the options of `serve echo` without their dashes: faults that it makes on request,
so that what the instrument reports can be compared with a known truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dnsrig.rundir import Scalar
from dnsrig.servers._engine import EngineDriver
from dnsrig.servers.driver import Feature, Setting, Support
from dnsrig.servers.placement import Placement


class Echo(EngineDriver):
    kind = "echo"
    title = "echo (the instrument's floor)"
    roles = ("primary", "secondary", "resolver")
    answers_zones = False
    settings = (
        Setting("threads", "the host's CPUs", "threads that answer, each with a socket of its own (SO_REUSEPORT)"),
        Setting("segmentation", "false", "send answers with UDP segmentation offload, which real servers do not do"),
        Setting("early-data", "false", "over DoT, take queries with the first flight of a resumed session (0-RTT)"),
        Setting("delay", "none", 'every answer comes so much later, e.g. "10ms"'),
        Setting("jitter", "none", "and as much again, at random: uniform, to either side"),
        Setting("loss", "none", 'share of queries that get no answer, e.g. "1%"'),
        Setting("stall", "none", "how long it stops reading, once every `stall-every`"),
        Setting("stall-every", "1s", "how often"),
        Setting("stall-threads", "all", "how many of the threads stall"),
        Setting("seed", "1", "of loss and jitter"),
    )
    features: ClassVar[Mapping[Feature, Support]] = {"DoT": Support("0.0", "0.0", "0.0")}

    def command(self, placement: Placement) -> list[str]:
        options: dict[str, Scalar] = {"threads": placement.threads, **placement.settings}
        transports = ["udp", "tcp"]
        if placement.over_tls:
            transports.append("dot")
            options |= {"certificate": placement.certificate, "key": placement.private_key}
        words = [self.executable, "serve", "echo", str(placement.address), f"--transport={','.join(transports)}"]
        return [*words, *self.words(options)]
