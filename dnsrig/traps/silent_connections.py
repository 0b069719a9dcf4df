"""Connections fell silent: the server had answered on them, then it answered nothing more, and it answered on others.

A server can forget a connection without a word: at a limit of its own, or after a packet that it did not expect. The
client goes on sending until its own timer ends the connection, which over QUIC takes seconds. All queries until then
are unanswered. In totals this looks like loss, or like a slow server, although neither a faster network nor a lower
rate helps.

The trap looks for stretches of whole intervals in which a client had no answer while others had some. If each query
were lost by itself, a stretch of this length would be unlikely: the probability is below 1e-3 for all clients together.
"""

from __future__ import annotations

import math

import polars as pl

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 41
GROUP = "limits of servers and hosts"
OUTCOMES = JUDGED
TITLE = "connections fell silent"
SOURCE = "RFC 9000, section 10.1: a connection whose peer is silent ends by the idle timeout"
WEIGHT = "explains"
OVER_CONNECTIONS = ("tcp", "dot", "doh", "doq")
SMALLEST_SHARE = 0.01
"""Smallest share of queries in such stretches. With less, only percentiles above the 99th can differ."""
ALPHA = 1e-3
"""Probability of the longest stretch by chance."""


def after(trial: Trial) -> Conclusion | None:
    load = trial.load
    if load.transport not in OVER_CONNECTIONS or load.model in ("stream", "ramp", ""):
        return None
    if trial.clients.is_empty():
        return cannot_tell("There are no rows of what each client saw.")
    due, unanswered = trial.clients.select(pl.col("answered") + pl.col("unanswered"), "unanswered").sum().row(0)
    if unanswered < SMALLEST_SHARE * due:
        return CLEAR
    if trial.clients["client"].n_unique() == 1:
        return cannot_tell("With one client, a silent connection looks like a server that answers nobody.")
    silent = _stretches(trial.clients).filter(
        pl.col("queries") * math.log(min(unanswered / due, 1 - 1e-9))
        < math.log(ALPHA / trial.clients["client"].n_unique())
    )
    lost = int(silent["queries"].sum())
    if lost < SMALLEST_SHARE * due:
        return _of_everybody(trial.clients, due) or CLEAR
    clients, connections = silent["client"].n_unique(), trial.clients["client"].n_unique()
    setting = of_servers(trial, "silent-connections", [trial.subject])
    return Conclusion(
        "found",
        summary=f"On {clients:,} of {connections:,} connections the server stopped answering, and it went on answering on "
        f"others. At least {lost:,} of {due:,} queries ({lost / due:.0%}) were lost so.",
        evidence={
            "silent_connections": clients,
            "connections": connections,
            "lost_queries": lost,
            "lost_percent": round(100 * lost / due, 1),
            "longest_silence_s": round(silent["seconds"].max(), 2),  # type: ignore[arg-type]
        },
        series=("clients.arrow/answered",),
        metrics=(trial.record.spec.main_metric, "p99_ms", "answered_qps", "unanswered_share_percent"),
        remedy="Use more connections, so that fewer queries are outstanding on each (`--set options.clients=...`), and "
        f"look for a limit of the server{setting}.",
    )


def _of_everybody(clients: pl.DataFrame, due: int) -> Conclusion | None:
    """If nobody had an answer for some time: the connections may have fallen silent together."""
    of_all = clients.group_by("start_ns").agg(pl.col("answered", "unanswered").sum())
    lost = int(of_all.filter(pl.col("answered") == 0)["unanswered"].sum())
    if lost < SMALLEST_SHARE * due:
        return None
    return cannot_tell(
        f"{lost:,} queries were due while nobody had an answer. All connections were silent, or the server."
    )


def _stretches(clients: pl.DataFrame) -> pl.DataFrame:
    """Stretches of intervals in which a client that had answers before had none, and another client had some. Columns:
    client, queries, seconds."""
    of_all = pl.col("answered").sum().over("start_ns")
    begun = pl.col("answered").cum_sum().over("client") > 0
    silent = (pl.col("answered") == 0) & begun & (of_all > 0)
    starts = clients["start_ns"].unique().sort()
    interval_ns = starts.diff().min() if len(starts) > 1 else 0
    return (
        clients.sort("client", "start_ns")
        .with_columns(silent=silent)
        .with_columns(stretch=pl.col("silent").rle_id().over("client"))
        .filter("silent")
        .group_by("client", "stretch", maintain_order=True)
        .agg(queries=pl.col("unanswered").sum(), seconds=pl.len() * interval_ns / 1e9)
    )
