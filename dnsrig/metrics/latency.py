"""Latency of answers, missing answers, and the rate that a server can answer, all as counted by `load`.

A latency counts from the moment at which its query was due, not from the moment at which the instrument sent it. A
query without an answer counts as the client's timeout plus its lag. A latency that reaches the timeout is at least the
timeout. This is the upper end of the server's time; the lower end is the least time that it would have taken if the
instrument had been in time (docs/explanation/latency.md).
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from dnsrig.metrics import metric
from dnsrig.runs.load_result import Figures
from dnsrig.runs.trial import Trial


def timeout_ms(trial: Trial) -> float | None:
    """Time after which the client gives up: no latency is known beyond it."""
    timeout_ns = trial.load.timeout_ns
    return None if timeout_ns is None else timeout_ns / 1e6


def _value(trial: Trial, series: str, key: str) -> float | None:
    """A figure in ns; None for a ramp, whose latencies belong to many rates."""
    if not trial.load.has_latencies:
        return None
    figures: Figures = getattr(trial.load, series)
    return figures.get(key)


def _capped_ms(trial: Trial, series: str, key: str) -> float | None:
    value, most = _value(trial, series, key), timeout_ms(trial)
    return None if value is None else value / 1e6 if most is None else min(value / 1e6, most)


def _lower(key: str) -> Callable[[Trial], float | None]:
    """The least time that the server would have taken if the instrument had been in time; not in older runs."""
    return lambda trial: _capped_ms(trial, "lower_latency_ns", key)


@metric(title="latency, p99", unit="ms", better="lower", order=10, ceiling=timeout_ms, lower=_lower("p99"))
def p99_ms(trial: Trial) -> float | None:
    """99 % of the queries were answered within this time, counted from the moment at which each was due. “≥”: the
    client's timeout."""
    return _capped_ms(trial, "latency_ns", "p99")


@metric(title="latency, median", unit="ms", better="lower", order=11, ceiling=timeout_ms, lower=_lower("p50"))
def p50_ms(trial: Trial) -> float | None:
    """Half of the queries were answered within this time, counted from the moment at which each was due. “≥”: the
    client's timeout."""
    return _capped_ms(trial, "latency_ns", "p50")


@metric(title="latency, p90", unit="ms", better="lower", order=11, ceiling=timeout_ms, lower=_lower("p90"))
def p90_ms(trial: Trial) -> float | None:
    """90 % of the queries were answered within this time, counted from the moment at which each was due. “≥”: the
    client's timeout."""
    return _capped_ms(trial, "latency_ns", "p90")


@metric(title="latency, p99.9", unit="ms", better="lower", order=12, ceiling=timeout_ms, lower=_lower("p99_9"))
def p99_9_ms(trial: Trial) -> float | None:
    """99.9 % of the queries were answered within this time, counted from the moment at which each was due. “≥”: the
    client's timeout."""
    return _capped_ms(trial, "latency_ns", "p99_9")


@metric(title="latency, p99.99", unit="ms", better="lower", order=12, ceiling=timeout_ms, lower=_lower("p99_99"))
def p99_99_ms(trial: Trial) -> float | None:
    """99.99 % of the queries were answered within this time, counted from the moment at which each was due. “≥”: the
    client's timeout."""
    return _capped_ms(trial, "latency_ns", "p99_99")


@metric(title="latency, largest", unit="ms", better="lower", order=13, ceiling=timeout_ms, lower=_lower("max"))
def max_ms(trial: Trial) -> float | None:
    """The latency of the slowest query, counted from the moment at which it was due. “≥”: the client's timeout, so at
    least one was not answered in time."""
    return _capped_ms(trial, "latency_ns", "max")


@metric(title="latency, mean", unit="ms", better="lower", order=14, lower=_lower("mean"))
def mean_ms(trial: Trial) -> float | None:
    """The mean latency, counted from the moment at which each query was due; a query without an answer counts as the
    client's timeout plus its lag. It does not show slow queries."""
    value = _value(trial, "latency_ns", "mean")
    return None if value is None else value / 1e6


@metric(title="queries without an answer", unit="%", better="lower", order=15)
def unanswered_share_percent(trial: Trial) -> float | None:
    """Share of the sent queries that timed out at the client, or whose connection was lost; a wrong answer is an answer
    here. None for a ramp, which goes
    on until answers are missing."""
    load = trial.load
    if not load.sent or not load.has_latencies:
        return None
    return 100 * (load.timeouts + sum(load.lost.values())) / load.sent


@metric(title="wrong answers", unit="%", better="lower", order=15)
def wrong_share_percent(trial: Trial) -> float | None:
    """Share of the sent queries with an answer that differs from ``queries.expect``. Their latencies count as the
    client's timeout. None if nothing is expected, and for a ramp."""
    load, queries = trial.load, trial.record.spec.queries
    if not load.sent or not load.has_latencies or queries is None or not queries.parameters.get("expect"):
        return None
    return 100 * sum(load.wrong.values()) / load.sent


@metric(title="clients without an answer", unit="%", better="lower", order=15)
def silent_clients_percent(trial: Trial) -> float | None:
    """Share of a replay's clients whose queries all had no answer in time."""
    if trial.load.model != "stream" or trial.clients.is_empty():
        return None
    answered = trial.clients.group_by("client").agg(pl.col("answered").sum())["answered"]
    return 100 * int((answered == 0).sum()) / answered.len()


@metric(title="answers a second", unit="queries/s", better="higher", order=16)
def answered_qps(trial: Trial) -> float | None:
    """Queries answered within the client's timeout, divided by the time in which queries were due. None for a ramp."""
    return trial.load.answered_qps


@metric(title="requested rate", unit="queries/s", better="neither", order=17)
def asked_qps(trial: Trial) -> float | None:
    """The rate at which queries were due; None in a closed loop, where an answer makes the next one due."""
    return trial.load.asked_qps


def _highest_tried_qps(trial: Trial) -> float | None:
    """The highest rate of the ramp, if even that passed: the capacity is at least that."""
    return trial.ramp.capacity_qps if trial.ramp.capacity_is_lower_bound else None


@metric(title="capacity", unit="queries/s", better="higher", order=10, ceiling=_highest_tried_qps)
def capacity_qps(trial: Trial) -> float | None:
    """The highest rate at which the share of lost queries and the latency stayed within the limits of the ramp. In a
    trial of latency, the result of the short ramp before it. “≥”: even the highest rate passed. None if not even the
    lowest rate passed."""
    return trial.ramp.capacity_qps


def _of_other_tools(trial: Trial, key: str) -> float | None:
    """A latency from sending in ms, for imported results. dnsrig's own results have latencies from due time, and p99
    from sending for comparison with other tools; more metrics would weaken every comparison (Holm)."""
    return _capped_ms(trial, "sent_latency_ns", key) if trial.record.spec.imported else None


def _sent_lower(key: str) -> Callable[[Trial], float | None]:
    """The lower end, for a tool that counts in wide buckets."""
    return lambda trial: _capped_ms(trial, "lower_sent_latency_ns", key)


@metric(
    title="latency from sending, p99",
    unit="ms",
    better="lower",
    order=91,
    ceiling=timeout_ms,
    lower=_sent_lower("p99"),
)
def sent_p99_ms(trial: Trial) -> float | None:
    """99 % of the queries were answered within this time after each was sent: p99_ms without the lag of the instrument
    and without the time that a query waited before it was sent. “≥”: the client's timeout."""
    return _capped_ms(trial, "sent_latency_ns", "p99")


@metric(
    title="latency from sending, median",
    unit="ms",
    better="lower",
    order=91,
    ceiling=timeout_ms,
    lower=_sent_lower("p50"),
)
def sent_p50_ms(trial: Trial) -> float | None:
    """For results of other tools: half of the queries were answered within this time after each was sent. “≥”: the
    client's timeout."""
    return _of_other_tools(trial, "p50")


@metric(
    title="latency from sending, p99.9",
    unit="ms",
    better="lower",
    order=91,
    ceiling=timeout_ms,
    lower=_sent_lower("p99_9"),
)
def sent_p99_9_ms(trial: Trial) -> float | None:
    """For results of other tools: 99.9 % of the queries were answered within this time after each was sent. “≥”: the
    client's timeout."""
    return _of_other_tools(trial, "p99_9")


@metric(
    title="latency from sending, largest",
    unit="ms",
    better="lower",
    order=91,
    ceiling=timeout_ms,
    lower=_sent_lower("max"),
)
def sent_max_ms(trial: Trial) -> float | None:
    """For results of other tools: the latency of the slowest query after it was sent. “≥”: the client's timeout."""
    return _of_other_tools(trial, "max")


@metric(title="latency from sending, mean", unit="ms", better="lower", order=91, lower=_sent_lower("mean"))
def sent_mean_ms(trial: Trial) -> float | None:
    """For results of other tools: the mean latency after each query was sent. It does not show slow queries."""
    return _of_other_tools(trial, "mean")


@metric(title="lag of sending, median", unit="µs", better="lower", order=92)
def send_lag_p50_us(trial: Trial) -> float | None:
    """Half of the queries were sent within this time after they were due: what the instrument adds by itself."""
    value = _value(trial, "lag_ns", "p50")
    return None if value is None else value / 1e3


@metric(title="lag of sending, p99", unit="µs", better="lower", order=92)
def send_lag_p99_us(trial: Trial) -> float | None:
    """99 % of the queries were sent within this time after they were due: what the instrument adds by itself."""
    value = _value(trial, "lag_ns", "p99")
    return None if value is None else value / 1e3
