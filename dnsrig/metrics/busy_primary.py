"""Zones that a primary sent to the instrument `transfer` while it answered queries."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.metrics.transfer_load import per_second
from dnsrig.runs.trial import Trial


def _meanwhile(trial: Trial) -> bool:
    """Whether zones were transferred while something else was measured."""
    return trial.record.spec.options.get("transfers", "none") != "none" and bool(trial.transfer)


@metric(title="zones transferred during the load", unit="zones/s", better="higher", order=22)
def meanwhile_zones_per_s(trial: Trial) -> float | None:
    """Zones that the instrument `transfer` received completely while the primary answered queries, divided by the
    instrument's time."""
    return per_second(trial, "done") if _meanwhile(trial) else None


@metric(title="data transferred during the load", unit="MB/s", better="higher", order=22)
def meanwhile_mb_per_s(trial: Trial) -> float | None:
    """Bytes of DNS messages (10^6 to a MB) that the instrument `transfer` received while the primary answered queries,
    divided by the instrument's time."""
    bytes_per_s = per_second(trial, "bytes") if _meanwhile(trial) else None
    return None if bytes_per_s is None else bytes_per_s / 1e6


@metric(title="busy share of the transferring instrument", unit="%", better="neither", order=92)
def meanwhile_busy_percent(trial: Trial) -> float | None:
    """Share of the time in which the busiest thread of the instrument `transfer` had work while the primary answered
    queries. On a CPU that it shares with `load`, which has priority, it can delay the transfers; the primary is then
    less busy than it could be."""
    share = trial.transfer.get("busy_share") if _meanwhile(trial) else None
    return None if share is None else 100 * float(share)
