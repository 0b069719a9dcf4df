"""Latencies count from the moment at which a query was sent, not from when it was due.

A tool may be delayed, by itself or because it waits for answers before it sends more. Queries that were due meanwhile
are sent later or never, and no figure contains their wait. So a server that stands still looks better than it is for
its clients (coordinated omission: Gil Tene, How NOT to Measure Latency, 2013). The result does not show how much is
missing.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import Conclusion

ORDER = 51
OF_IMPORTED = True
GROUP = "the load generator"
TITLE = "latencies count from sending, not from due time"
SOURCE = "G. Tene, How NOT to Measure Latency (2013); docs/explanation/latency.md"
WEIGHT = "invalidates"
METRICS = ("sent_p50_ms", "sent_p99_ms", "sent_p99_9_ms", "sent_max_ms", "sent_mean_ms")


def after(trial: Trial) -> Conclusion | None:
    imported, load = trial.record.spec.imported, trial.load
    if imported is None or imported.basis != "sending" or not load.sent_latency_ns:
        return None
    sent_qps = load.sent / load.span_s if load.span_s > 0 else None
    evidence: dict[str, float | None] = {"asked_qps": load.asked_qps, "sent_qps": sent_qps and round(sent_qps, 1)}
    short = ""
    if load.asked_qps and sent_qps is not None:
        short = f" It was to send {load.asked_qps:,.0f} queries/s and sent {sent_qps:,.0f}."
    return Conclusion(
        "found",
        summary=f"{imported.tool} starts its clock when it sends a query: it does not count the wait before that.{short}",
        evidence=evidence,
        metrics=METRICS,
        remedy="Compare it only with results that count from sending too, such as `sent_p99_ms` of dnsrig. To measure how long clients "
        "wait, use a tool whose clock starts when a query is due: `dnsrig load --rate`.",
    )
