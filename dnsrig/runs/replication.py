"""What came over the link between the sites, whatever carried it. Pure."""

from __future__ import annotations

import polars as pl

from dnsrig.rundir import TrialSpec
from dnsrig.runs.trial import Trial

DATABASE, REPLICA = "database", "replica"
"""Hosts of the procedure `replication`, and the instruments as which it tells what it saw of them."""
LAST_WORDS_SHARE, LAST_WORDS_BYTES, LAST_WORDS_SHARE_MOST = 0.001, 2_000, 0.1
"""What may be missing when all was received: a thousandth, or 2,000 bytes if that is more, but no more than a tenth: a
protocol's last words, and its signs of life, which never end."""


def far_link(spec: TrialSpec) -> tuple[str, str] | None:
    """The host at the near site and that at the far one; None where no option ``carrier`` says what brings zones from
    one to the other."""
    if "carrier" not in spec.options:
        return None
    for name, host in spec.hosts.items():
        if host.database is not None and host.database_far:
            return host.database, name
    return ("primary", spec.subject) if "primary" in spec.hosts else None


def arrived(trial: Trial) -> pl.DataFrame:
    """Bytes that had come to the far site, during `measure`: columns time_ns, bytes (since its beginning), sorted by
    time.

    As the emulated link delivered them, every 100 ms, the last of which may end after `measure`; else as the far
    interface counted them, every 200 ms. Empty without either.
    """
    empty = pl.DataFrame(schema={"time_ns": pl.Int64, "bytes": pl.Int64})
    ends, phase = far_link(trial.record.spec), trial.measure
    if ends is None or phase is None:
        return empty
    near, far = ends
    for link in trial.record.spec.links:
        if set(link.ends) == {near, far} and not (seen := trial.links().get(link.name, empty)).is_empty():
            direction = pl.col("direction") == ("forward" if link.ends[0] == near else "reverse")
            rows = seen.filter(direction, pl.col("time_ns") >= phase.start.monotonic_ns).sort("time_ns")
            # A row tells of the interval before it: what came last in `measure` is in the first row after it.
            until = pl.col("time_ns").shift(1, fill_value=phase.start.monotonic_ns) < phase.end.monotonic_ns
            nbytes = pl.col("delivered_bytes").cast(pl.Int64).cum_sum().alias("bytes")
            return rows.filter(until).select("time_ns", nbytes)
    rows = trial.during_measure(far, trial.record.spec.interface(far, near), "rx_bytes")
    return empty if rows.is_empty() else rows.select("time_ns", bytes=pl.col("value") - rows["value"][0])


def received_ns(trial: Trial) -> int | None:
    """When all bytes had come but a protocol's last words; None where nothing is known of them."""
    rows = arrived(trial)
    whole = 0 if rows.is_empty() else int(rows["bytes"][-1])
    if not whole:
        return None
    last_words = min(max(LAST_WORDS_SHARE * whole, LAST_WORDS_BYTES), LAST_WORDS_SHARE_MOST * whole)
    return int(rows.filter(pl.col("bytes") >= whole - last_words)["time_ns"][0])
