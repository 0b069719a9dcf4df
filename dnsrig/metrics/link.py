"""Traffic on the emulated links during `measure`, from the rows of `link`, or from the interfaces' counters if the
kernel emulates."""

from __future__ import annotations

import polars as pl

from dnsrig.metrics import metric
from dnsrig.rundir import LinkSpec
from dnsrig.runs.trial import Trial


def _emulated(trial: Trial) -> list[LinkSpec]:
    return [link for link in trial.record.spec.links if link.emulated]


def rows_during(trial: Trial, link: LinkSpec) -> pl.DataFrame:
    """The rows of a link that end during `measure`."""
    rows, phase = trial.links().get(link.name), trial.measure
    if rows is None or rows.is_empty() or phase is None:
        return pl.DataFrame()
    return rows.filter(pl.col("time_ns").is_between(phase.start.monotonic_ns, phase.end.monotonic_ns, closed="right"))


def _bytes(trial: Trial, link: LinkSpec, direction: str, *, delivered: bool) -> float | None:
    """IP bytes that entered or left a link in one direction during `measure`."""
    if link.writes_rows:
        rows = rows_during(trial, link)
        if rows.is_empty():
            return None
        column = "delivered_bytes" if delivered else "bytes"
        return float(rows.filter(pl.col("direction") == direction)[column].sum())
    left, right = link.ends if direction == "forward" else reversed(link.ends)
    host, other, way = (right, left, "rx") if delivered else (left, right, "tx")
    nbytes, packets = (
        trial.growth(host, trial.record.spec.interface(host, other), f"{way}_{unit}") for unit in ("bytes", "packets")
    )
    return None if nbytes is None or packets is None else nbytes - link.header_bytes * packets


@metric(title="volume over the path", unit="MB", better="lower", order=32)
def link_mb(trial: Trial) -> float | None:
    """Bytes of the IP packets that hosts sent into emulated links, both directions, during `measure`, including lost
    ones; to within 0.2 s at either end. None without an emulated link."""
    sent = [
        _bytes(trial, link, direction, delivered=False)
        for link in _emulated(trial)
        for direction in ("forward", "reverse")
    ]
    known = [nbytes for nbytes in sent if nbytes is not None]
    return sum(known) / 1e6 if known and len(known) == len(sent) else None


@metric(title="share of the path's rate", unit="%", better="higher", order=33)
def link_share_percent(trial: Trial) -> float | None:
    """Bytes of the IP packets that arrived over emulated links in the direction of the zones, as a share of what the
    rate of the links allows during `measure`. None if a link has no rate."""
    links, phase = _emulated(trial), trial.measure
    rates = [link.forward.rate_mbit if link.forward else None for link in links]
    arrived = [_bytes(trial, link, "forward", delivered=True) for link in links]
    if phase is None or not links or None in rates or None in arrived:
        return None
    seconds = (phase.end.monotonic_ns - phase.start.monotonic_ns) / 1e9
    possible = sum(rate for rate in rates if rate) * 1e6 / 8 * seconds
    return 100 * sum(nbytes for nbytes in arrived if nbytes) / possible if possible else None
