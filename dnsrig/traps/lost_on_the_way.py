"""Queries or answers were lost outside of the server: the generator or the way to it counts as the server's silence.

The generator says how many queries it sent and how many were answered. The kernels of both hosts counted as well, and
the places where their counts differ show who lost what. Losses at the server and in it are its own result.
"""

from __future__ import annotations

from dataclasses import asdict

from dnsrig.runs import packets
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

GROUP = "the load generator"
OUTCOMES = JUDGED
TITLE = "queries or answers were lost outside of the server"
SOURCE = "RFC 4113, udpInDatagrams and udpOutDatagrams; Linux, /proc/net/dev"
WEIGHT = "distorts"
SHARE = 1e-4
"""Share of the queries from which losses count: a tenth of what latency procedures call a loss that matters."""
FEWEST = 2
"""A single datagram may belong to other traffic."""
REMEDIES = {
    "generator": "Give the generator more CPUs or larger buffers (net.core.rmem_max), or lower the rate "
    "(`--set options.rate_qps=...`).",
    "wire": "Look at the queues of both interfaces and at other traffic: `tc -s qdisc` and `ip -s link` in the namespaces "
    "of the hosts.",
}


def after(trial: Trial) -> Conclusion | None:
    if not packets.are_counted(trial):
        return None
    counts, spec = packets.counts(trial), trial.record.spec
    if counts is None:
        return cannot_tell(
            "Samples of datagrams or packets are missing, before the first query or after the last answer."
        )
    outside = [loss for loss in counts.losses if loss.where != "server"]
    lost = sum(loss.datagrams for loss in outside)
    if lost < max(FEWEST, SHARE * counts.sent):
        return CLEAR
    worst = max(outside, key=lambda loss: loss.datagrams)
    told = " and ".join(f"{loss.datagrams:,} {loss.why}" for loss in outside)
    return Conclusion(
        "found",
        summary=f"Of {counts.sent:,} queries and their answers, {told} were lost: the server is not to blame for these.",
        evidence=asdict(counts),
        metrics=(spec.main_metric, "unanswered_share_percent", "answered_qps"),
        remedy=REMEDIES[worst.where],
    )
