"""kxdpgun (Knot DNS): what ``-j`` prints. It is a dialect of DNS metrics, and has no latency."""

from __future__ import annotations

import itertools
from dataclasses import replace

from dnsrig.importers import Asked, Result, dns_metrics

FILES = "what `-j` prints; with `-S 1000` also each second"


def read(data: bytes, asked: Asked) -> Result:
    found = dns_metrics.read(data, asked)
    rate = found.command.split()
    rates = [
        following for word, following in itertools.pairwise(rate) if word in ("-Q", "--qps") and following.isdecimal()
    ]
    return replace(
        found,
        asked_qps=float(rates[-1]) if rates else None,
        missing=[
            "There is no latency at all: it counts what came back, whenever that was.",
            *(text for text in found.missing if text != dns_metrics.NO_DISTRIBUTION),
        ],
    )
