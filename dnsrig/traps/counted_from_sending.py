"""Latencies count from the moment at which a query was sent, not from that at which it was due.

Where the tool was held up, by itself or because it waits for answers before it sends more, queries that were due
meanwhile are sent later or never. Their waiting is in no figure, so a server that stands still looks better than its
clients find it (coordinated omission: Gil Tene, How NOT to Measure Latency, 2013). Nothing in the result can tell how
much is missing.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.traps import Conclusion

ORDER = 51
OF_IMPORTED = True
TITLE = "latencies that count from sending"
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
        short = f" It was asked for {load.asked_qps:,.0f} queries/s, and sent {sent_qps:,.0f}."
    return Conclusion(
        "found",
        summary=f"{imported.tool} starts its clock when it sends a query: what had to wait before that is not counted.{short}",
        evidence=evidence,
        metrics=METRICS,
        remedy="Compare it with results that count from sending, as `sent_p99_ms` of `dnsrig` does. For what clients wait, measure "
        "with a tool whose clock starts when a query is due: `dnsrig load --rate`.",
    )
