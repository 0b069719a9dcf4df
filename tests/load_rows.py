"""What `load` would have written of a server whose behaviour is known: made query by query, nothing of it measured."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from dnsrig.analysis.latency import Histogram, Interval, merge
from dnsrig.analysis.read import Trial

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
    """Stands for `dnsrig.analysis.latency.Latency`, without a file."""

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
    """``usual``, but for ``stall_ms`` of each ``every_ms`` nothing is answered; ``late(client, stall number)``: of whom."""

    def answer(due_ns: int, client: int) -> int:
        number, into_ns = divmod(due_ns - round(phase_ms * MS), round(every_ms * MS))
        left_ns = round(stall_ms * MS) - into_ns
        return usual(due_ns, client) + (left_ns if left_ns > 0 and late(client, number) else 0)

    return answer


def load(trial: Trial, asked: Asked, server: Server, **summary: Any) -> None:
    """Let ``trial`` have asked ``server``; ``summary`` changes fields of the summary."""
    noise, due_times = random.Random(f"clients {asked.seed}"), _due_times(asked)
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    values: dict[int, list[int]] = defaultdict(list)
    clients: dict[tuple[int, int], list[int]] = defaultdict(list)
    unanswered: Counter[tuple[int, int]] = Counter()
    answered: list[tuple[int, int]] = []
    interval_ns = round(asked.interval_s * SECOND)
    for number, due_ns in enumerate(due_times):
        client = number % asked.clients if asked.round_robin else noise.randrange(asked.clients)
        wait_ns = server(due_ns, client)
        answered.append((due_ns + LAG_NS, due_ns + LAG_NS + wait_ns))
        interval, late = due_ns // interval_ns, wait_ns >= asked.timeout_ns
        counts[interval].update(due=1, sent=1, answered=not late, timeouts=late)
        values[interval].append(min(wait_ns, asked.timeout_ns) + LAG_NS)
        clients[interval, client].append(values[interval][-1])
        unanswered[interval, client] += late
    intervals = [
        Interval(i * asked.interval_s, asked.interval_s, Histogram.of(Counter(v))) for i, v in sorted(values.items())
    ]
    sent = [Interval(i.offset_s, i.duration_s, _less(i.histogram, LAG_NS)) for i in intervals]
    trial.__dict__["latency"] = Counted(asked.timeout_ns, {"due": intervals, "sent": sent})
    trial.__dict__["load_intervals"] = _interval_rows(counts, interval_ns)
    trial.__dict__["clients"] = _client_rows(clients, unanswered, interval_ns)
    trial.__dict__["answers"] = _answer_rows(asked, answered)
    whole = merge(interval.histogram for interval in intervals)
    trial.record.outcome = "done"
    trial.record.instruments["load"] = _summary(asked, whole, len(due_times), sum(unanswered.values())) | summary


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


def _interval_rows(counts: dict[int, Counter[str]], interval_ns: int) -> pl.DataFrame:
    names = ("due", "sent", "answered", "timeouts", "lost", "late", "truncated", "busy_ns")
    return pl.DataFrame(
        [
            {"start_ns": START_NS + number * interval_ns, "duration_ns": interval_ns}
            | {name: count[name] for name in names}
            for number, count in sorted(counts.items())
        ]
    )


def _less(histogram: Histogram, ns: int) -> Histogram:
    return Histogram([value - ns for value in histogram.values_ns], histogram.counts)


def _answer_rows(asked: Asked, answered: Sequence[tuple[int, int]]) -> pl.DataFrame:
    """``answered``: when each query was sent and answered; as `load` leaves them: nothing after the last was due."""
    bins: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for sent_ns, received_ns in answered:
        bins[sent_ns // BIN_NS][0] += 1
        if received_ns < asked.seconds * SECOND:
            of = bins[received_ns // BIN_NS]
            of[2] = min(of[2] or START_NS + received_ns, START_NS + received_ns)
            of[1], of[3] = of[1] + 1, max(of[3], START_NS + received_ns)
    rows = [(START_NS + number * BIN_NS, *of) for number, of in sorted(bins.items())]
    return pl.DataFrame(rows, schema=["time_ns", "sent", "answered", "first_ns", "last_ns"], orient="row")


def _client_rows(
    waits: dict[tuple[int, int], list[int]], unanswered: Counter[tuple[int, int]], interval_ns: int
) -> pl.DataFrame:
    rows = [
        (START_NS + key[0] * interval_ns, key[1], len(of) - unanswered[key], unanswered[key], sum(of), max(of))
        for key, of in sorted(waits.items())
    ]
    schema = ["start_ns", "client", "answered", "unanswered", "sum_ns", "max_ns"]
    return pl.DataFrame(rows, schema=schema, orient="row")


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
