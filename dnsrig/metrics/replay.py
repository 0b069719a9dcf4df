"""Arrival of a replayed stream, from a capture at the server (the option `capture` of the procedure `replay`), and the
effect of a flood on its clients (the procedure `overload`)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from dnsrig.metrics import metric
from dnsrig.runs import flood
from dnsrig.runs.load_result import Figures
from dnsrig.runs.trial import Trial


class Arrival(BaseModel):
    """The result of `replay compare`, and the number of packets that tcpdump missed (None: not reported)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    queries: int
    arrived: int
    missing: int
    encrypted: int
    unknown: int
    out_of_order: int
    due_gap_ns: Figures
    gap_ns: Figures
    gap_deviation_ns: Figures
    dropped: int | None = None

    @property
    def visible(self) -> int:
        """Queries that a capture can show."""
        return self.queries - self.encrypted


def arrival(trial: Trial) -> Arrival | None:
    """The arrival of the stream; None without a capture."""
    try:
        return Arrival.model_validate(trial.record.instruments.get("arrival"))
    except ValidationError:
        return None


def _deviation_us(trial: Trial, percentile: str) -> float | None:
    found = arrival(trial)
    ns = found.gap_deviation_ns.get(percentile) if found else None
    return None if ns is None else ns / 1e3


@metric(title="deviation of intervals, median", unit="µs", better="lower", order=93)
def interval_deviation_p50_us(trial: Trial) -> float | None:
    """Difference between the interval of two consecutive queries in the stream and their interval at the server, from
    the kernel's times in a capture: median of the absolute values."""
    return _deviation_us(trial, "p50")


@metric(title="deviation of intervals, p99", unit="µs", better="lower", order=93)
def interval_deviation_p99_us(trial: Trial) -> float | None:
    """Like `interval_deviation_p50_us`, the 99th percentile."""
    return _deviation_us(trial, "p99")


@metric(title="queries out of order", unit="%", better="lower", order=94)
def out_of_order_percent(trial: Trial) -> float | None:
    """Share of the queries at the server that a later query of the stream had overtaken (RFC 4737, 3.3)."""
    found = arrival(trial)
    paired = found.visible - found.missing if found else 0
    return 100 * found.out_of_order / paired if found and paired else None


@metric(title="queries that did not arrive unchanged", unit="%", better="lower", order=94)
def changed_percent(trial: Trial) -> float | None:
    """Share of the stream's queries, as far as a capture can show them, that did not reach the server from their
    client's address with identical bytes except for the message id."""
    found = arrival(trial)
    return 100 * found.missing / found.visible if found and found.visible else None


@metric(title="clients' queries answered during the flood", unit="%", better="higher", order=95)
def goodput_percent(trial: Trial) -> float | None:
    """Share of the replayed clients' queries, due in whole intervals of the flood, that were answered within the
    client's timeout, with any response code."""
    return flood.goodput_percent(trial)


@metric(title="recovery after the flood", unit="s", better="lower", order=95)
def recovery_s(trial: Trial) -> float | None:
    """Time from the end of the flood to the start of the first three consecutive intervals in which the 90th percentile
    of the clients' latency was at most twice its largest value in the second half of the time before the flood. Its
    resolution is one interval (`interval_s`). None if the server did not recover before the replay ended."""
    return flood.recovery_s(trial)
