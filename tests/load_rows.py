"""What `load` would have written of a server whose behaviour is known: made query by query, nothing of it measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from dnsrig.runs.latency import Histogram, Interval, merge
from dnsrig.runs.trial import Trial

SECOND = 1_000_000_000
MS = 1_000_000
START_NS = 5_000 * SECOND
BIN_NS = 10_000_000
LAG_NS = 5_000
"""From due to sent, of every query."""
Server = Callable[[int, int], int]
"""(due time in ns from the start, client) -> how long the answer takes, in ns."""


@dataclass(frozen=True)
class Asked:
    """The traffic of one trial."""

    qps: int = 1_000
    seconds: int = 10
    interval_s: float = 1.0
    clients: int = 32
    timeout_ns: int = SECOND
    poisson: bool = False
    seed: int = 1
    round_robin: bool = False
    """Each client in its turn, or drawn by chance."""


class Counted:
    """Stands for `dnsrig.runs.latency.Latency`, without a file."""

    result = lower = "due"

    def __init__(self, timeout_ns: int, tags: dict[str, list[Interval]]) -> None:
        self.timeout_ns, self._tags = timeout_ns, tags

    def intervals(self, tag: str) -> list[Interval]:
        return self._tags.get(tag, [])

    def total(self, tag: str) -> Histogram:
        return merge(interval.histogram for interval in self.intervals(tag))


def log_normal(median_ms: float, sigma: float, seed: int = 1) -> Server:
    """Latencies as of a server in order."""
    noise = random.Random(seed)
    return lambda due_ns, client: round(median_ms * MS * noise.lognormvariate(0, sigma))


def stalling(
    usual: Server,
    *,
    every_ms: float,
    stall_ms: float,
    phase_ms: float = 0,
    late: Callable[[int, int], bool] = lambda c, n: True,
) -> Server:
    """``usual``, but for ``stall_ms`` of each ``every_ms`` nothing is answered; ``late(client, stall number)``: of
    whom."""

    def answer(due_ns: int, client: int) -> int:
        number, into_ns = divmod(due_ns - round(phase_ms * MS), round(every_ms * MS))
        left_ns = round(stall_ms * MS) - into_ns
        return usual(due_ns, client) + (left_ns if left_ns > 0 and late(client, number) else 0)

    return answer


def load(trial: Trial, asked: Asked, server: Server, **summary: Any) -> None:
    """Let ``trial`` have asked ``server``; ``summary`` changes fields of the summary."""
    queries = _queries(asked, server)
    due = _intervals(asked, queries, pl.col("wait_ns").clip(upper_bound=asked.timeout_ns) + LAG_NS)
    sent = [Interval(i.offset_s, i.duration_s, _less(i.histogram, LAG_NS)) for i in due]
    trial.__dict__["latency"] = Counted(asked.timeout_ns, {"due": due, "sent": sent})
    trial.__dict__["load_intervals"] = _interval_rows(asked, queries)
    trial.__dict__["clients"] = _client_rows(asked, queries)
    trial.__dict__["answers"] = _answer_rows(asked, queries)
    whole = merge(interval.histogram for interval in due)
    trial.record.outcome = "done"
    trial.record.instruments["load"] = _summary(asked, whole, queries.height, queries["late"].sum()) | summary


def ramp(trial: Trial, steps: Sequence[dict[str, Any]], capacity_qps: float | None) -> None:
    """Let ``trial`` have looked for the highest rate."""
    usual = {
        "repeat": 0,
        "loss_share": 0.0,
        "p50_ns": MS,
        "p99_ns": 2 * MS,
        "p99_9_ns": 3 * MS,
        "lag_p99_ns": 20_000,
        "busy_share": 0.4,
    }
    complete = [usual | {"sent_qps": step["rate_qps"], "answered_qps": step["rate_qps"]} | step for step in steps]
    trial.record.outcome = "done"
    trial.record.instruments["load"] = {
        "event": "summary", "model": "ramp", "start_ns": START_NS, "end_ns": START_NS + SECOND, "threads": 1, "unsent": 12_345,
        "capacity_qps": capacity_qps, "steps": complete,
    }  # fmt: skip


def _due_times(asked: Asked) -> list[int]:
    """Of all queries, in ns from the start."""
    if not asked.poisson:
        return [number * SECOND // asked.qps for number in range(asked.qps * asked.seconds)]
    noise, times, now_s = random.Random(f"arrivals {asked.seed}"), [], 0.0
    while (now_s := now_s + noise.expovariate(asked.qps)) < asked.seconds:
        times.append(round(now_s * SECOND))
    return times


def _queries(asked: Asked, server: Server) -> pl.DataFrame:
    """A row each: when it was due, in ns from the start, of which client, how long it waited, and whether it was too
    long."""
    due_ns = _due_times(asked)
    noise = random.Random(f"clients {asked.seed}")
    clients = (
        [number % asked.clients for number in range(len(due_ns))]
        if asked.round_robin
        else noise.choices(range(asked.clients), k=len(due_ns))
    )
    columns = {"due_ns": due_ns, "client": clients, "wait_ns": list(map(server, due_ns, clients))}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64)).with_columns(
        interval=pl.col("due_ns") // round(asked.interval_s * SECOND), late=pl.col("wait_ns") >= asked.timeout_ns
    )


def _intervals(asked: Asked, queries: pl.DataFrame, value_ns: pl.Expr) -> list[Interval]:
    """``value_ns`` of the queries of each interval."""
    counted = queries.group_by("interval", value_ns.alias("value_ns")).len().sort("interval", "value_ns")
    return [
        Interval(number * asked.interval_s, asked.interval_s, Histogram(of["value_ns"].to_list(), of["len"].to_list()))
        for (number,), of in counted.partition_by("interval", as_dict=True).items()
    ]


def _interval_rows(asked: Asked, queries: pl.DataFrame) -> pl.DataFrame:
    interval_ns = round(asked.interval_s * SECOND)
    nothing = {name: pl.lit(0, pl.Int64) for name in ("lost", "late", "truncated", "busy_ns")}
    return (
        queries.group_by("interval")
        .agg(due=pl.len(), sent=pl.len(), answered=(~pl.col("late")).sum(), timeouts=pl.col("late").sum())
        .sort("interval")
        .select(
            (START_NS + pl.col("interval") * interval_ns).alias("start_ns"),
            pl.lit(interval_ns, pl.Int64).alias("duration_ns"),
            pl.col("due", "sent", "answered", "timeouts").cast(pl.Int64),
            **nothing,
        )
    )


def _less(histogram: Histogram, ns: int) -> Histogram:
    return Histogram([value - ns for value in histogram.values_ns], histogram.counts)


def _answer_rows(asked: Asked, queries: pl.DataFrame) -> pl.DataFrame:
    """When queries were sent and answered, as `load` leaves it: nothing after the last was due."""
    sent_ns = pl.col("due_ns") + LAG_NS
    received = queries.select(received_ns=sent_ns + pl.col("wait_ns")).filter(
        pl.col("received_ns") < asked.seconds * SECOND
    )
    sent = queries.group_by(number=sent_ns // BIN_NS).agg(sent=pl.len())
    answered = received.group_by(number=pl.col("received_ns") // BIN_NS).agg(
        answered=pl.len(),
        first_ns=START_NS + pl.col("received_ns").min(),
        last_ns=START_NS + pl.col("received_ns").max(),
    )
    return (
        sent.join(answered, "number", "full", coalesce=True)
        .sort("number")
        .select(
            (START_NS + pl.col("number") * BIN_NS).alias("time_ns"),
            *(pl.col(name).fill_null(0).cast(pl.Int64) for name in ("sent", "answered", "first_ns", "last_ns")),
        )
    )


def _client_rows(asked: Asked, queries: pl.DataFrame) -> pl.DataFrame:
    waited_ns = pl.col("wait_ns").clip(upper_bound=asked.timeout_ns) + LAG_NS
    return (
        queries.group_by("interval", "client")
        .agg(
            answered=(~pl.col("late")).sum().cast(pl.Int64),
            unanswered=pl.col("late").sum().cast(pl.Int64),
            sum_ns=waited_ns.sum(),
            max_ns=waited_ns.max(),
        )
        .sort("interval", "client")
        .select(
            (START_NS + pl.col("interval") * round(asked.interval_s * SECOND)).alias("start_ns"),
            pl.exclude("interval"),
        )
    )


def _summary(asked: Asked, whole: Histogram, due: int, timeouts: int) -> dict[str, Any]:
    percentiles = {"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9, "p99_99": 99.99}
    due_ns = {name: whole.percentile(percent) or 0 for name, percent in percentiles.items()}
    return {
        "event": "summary", "transport": "udp", "model": "rate", "asked_qps": float(asked.qps), "poisson": asked.poisson, "outstanding": None,
        "start_ns": START_NS, "end_ns": START_NS + asked.seconds * SECOND, "duration_s": float(asked.seconds),
        "interval_s": asked.interval_s, "timeout_ns": asked.timeout_ns, "clients": asked.clients, "threads": 1,
        "due": due, "sent": due, "unsent": 0, "answered": due - timeouts, "timeouts": timeouts, "busy_share": 0.3,
        "latency_ns": due_ns, "sent_latency_ns": {name: value - LAG_NS for name, value in due_ns.items()},
        "lag_ns": dict.fromkeys(due_ns, LAG_NS), "steps": [], "capacity_qps": None,
    }  # fmt: skip
