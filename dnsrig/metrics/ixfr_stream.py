"""Cost of a change of a large zone as IXFR and as AXFR, each measured many times in one trial by the instrument
`transfer`."""

from __future__ import annotations

from typing import Any

from dnsrig.metrics import metric
from dnsrig.runs.trial import Trial


def transfers(trial: Trial, way: str) -> dict[str, Any]:
    """The summary of the transfers of a ``way``, ``ixfr`` or ``axfr``; empty if no transfer was completed."""
    summary = trial.record.instruments.get(way, {})
    return summary if summary.get("done") else {}


def _time_ms(trial: Trial, way: str) -> float | None:
    summary = transfers(trial, way)
    return float(summary["transfer_ns"]["p50"]) / 1e6 if summary else None


def _each(trial: Trial, way: str, name: str) -> float | None:
    """A count over all transfers divided by their number: they are alike."""
    summary = transfers(trial, way)
    return float(summary[name]) / summary["done"] if summary else None


def _percent(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole


@metric(title="time of IXFR, relative to AXFR", unit="%", better="lower", order=10)
def ixfr_time_percent(trial: Trial) -> float | None:
    """Median time of a transfer by IXFR, from query to last message, in percent of the median time by AXFR in the same
    trial. From 100 on, IXFR saves no time."""
    return _percent(ixfr_time_ms(trial), axfr_time_ms(trial))


@metric(title="bytes of IXFR, relative to AXFR", unit="%", better="lower", order=11)
def ixfr_bytes_percent(trial: Trial) -> float | None:
    """Bytes of a transfer by IXFR in percent of the bytes of a transfer by AXFR in the same trial."""
    return _percent(ixfr_bytes(trial), axfr_bytes(trial))


@metric(title="IXFR answered with the whole zone", unit="%", better="neither", order=12)
def ixfr_whole_percent(trial: Trial) -> float | None:
    """Share of the IXFR queries that the primary answered with the whole zone (RFC 1995 §4)."""
    summary = transfers(trial, "ixfr")
    return _percent(float(summary["axfr"]), float(summary["axfr"] + summary["ixfr"])) if summary else None


@metric(title="time of an IXFR", unit="ms", better="lower", order=13)
def ixfr_time_ms(trial: Trial) -> float | None:
    """Median time of a transfer requested as IXFR, from the query to the last message of the answer, without the time
    to connect."""
    return _time_ms(trial, "ixfr")


@metric(title="time of an AXFR", unit="ms", better="lower", order=14)
def axfr_time_ms(trial: Trial) -> float | None:
    """Median time of a transfer requested as AXFR, from the query to the last message of the answer, without the time
    to connect."""
    return _time_ms(trial, "axfr")


@metric(title="bytes of an IXFR", unit="B", better="lower", order=15)
def ixfr_bytes(trial: Trial) -> float | None:
    """Bytes of the DNS messages of a transfer requested as IXFR, without TCP or TLS."""
    return _each(trial, "ixfr", "bytes")


@metric(title="bytes of an AXFR", unit="B", better="lower", order=16)
def axfr_bytes(trial: Trial) -> float | None:
    """Bytes of the DNS messages of a transfer requested as AXFR, without TCP or TLS."""
    return _each(trial, "axfr", "bytes")


@metric(title="messages of an IXFR", unit="messages", better="lower", order=17)
def ixfr_messages(trial: Trial) -> float | None:
    """Number of DNS messages of a transfer requested as IXFR."""
    return _each(trial, "ixfr", "messages")


@metric(title="messages of an AXFR", unit="messages", better="lower", order=18)
def axfr_messages(trial: Trial) -> float | None:
    """Number of DNS messages of a transfer requested as AXFR."""
    return _each(trial, "axfr", "messages")
