"""How a replayed stream arrived, by a capture at the server (the option `capture` of the procedure `replay`)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from dnsrig.analysis.load_result import Figures
from dnsrig.analysis.metrics import metric
from dnsrig.analysis.read import Trial


class Arrival(BaseModel):
    """What `replay compare` says, and how many packets tcpdump missed (None: it did not say)."""

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
    """None where nothing was captured."""
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
    """How much longer or shorter the interval between two queries that follow each other in the stream is where they
    arrive at the server, by the times that the kernel gives a capture; the median of the absolute values."""
    return _deviation_us(trial, "p50")


@metric(title="deviation of intervals, p99", unit="µs", better="lower", order=93)
def interval_deviation_p99_us(trial: Trial) -> float | None:
    """As `interval_deviation_p50_us`, the 99th percentile."""
    return _deviation_us(trial, "p99")


@metric(title="queries out of order", unit="%", better="lower", order=94)
def out_of_order_percent(trial: Trial) -> float | None:
    """Of the queries that arrived at the server, those that one behind them in the stream had overtaken (RFC 4737,
    3.3)."""
    found = arrival(trial)
    paired = found.visible - found.missing if found else 0
    return 100 * found.out_of_order / paired if found and paired else None


@metric(title="queries that did not arrive as they were", unit="%", better="lower", order=94)
def changed_percent(trial: Trial) -> float | None:
    """Of the stream's queries that a capture can show, those that did not come to the server from the address of their
    client with the same bytes but for the id."""
    found = arrival(trial)
    return 100 * found.missing / found.visible if found and found.visible else None
