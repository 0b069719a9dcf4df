"""What came over the link between the sites, whatever carried it. Pure."""

from __future__ import annotations

import polars as pl

from dnsrig.analysis.read import Trial
from dnsrig.rundir import TrialSpec

PROCEDURE = "carriers"
DATABASE, REPLICA = "database", "replica"
"""Hosts of the procedure, and the instruments as which it tells what it saw of them."""
RECEIVED_SHARE = 0.999
"""Of all octets that came: what is left are a protocol's last words and its signs of life, which never end."""


def far_link(spec: TrialSpec) -> tuple[str, str] | None:
    """The host at the near site and that at the far one; None where the procedure has no sites."""
    if spec.procedure != PROCEDURE:
        return None
    for name, host in spec.hosts.items():
        if host.database is not None and host.database_far:
            return host.database, name
    return ("primary", spec.subject) if "primary" in spec.hosts else None


def arrived(trial: Trial) -> pl.DataFrame:
    """Octets that had come to the far site, during `measure`: columns time_ns, octets (since its beginning), sorted by time.

    As the emulated link delivered them, every 100 ms; else as the far interface counted them, every 200 ms. Empty without either.
    """
    empty = pl.DataFrame(schema={"time_ns": pl.Int64, "octets": pl.Int64})
    ends, phase = far_link(trial.record.spec), trial.measure
    if ends is None or phase is None:
        return empty
    near, far = ends
    for left, right, direction in ((near, far, "there"), (far, near, "back")):
        path = trial.directory / f"link-{left}-{right}.arrow"
        if path.exists() and path.stat().st_size:
            start_ns, end_ns = phase.start.monotonic_ns, phase.end.monotonic_ns
            rows = pl.read_ipc_stream(path).filter(
                (pl.col("direction").cast(pl.String) == direction) & pl.col("time_ns").is_between(start_ns, end_ns)
            )
            octets = pl.col("delivered_octets").cast(pl.Int64).cum_sum().alias("octets")
            return rows.sort("time_ns").select(pl.col("time_ns").cast(pl.Int64), octets)
    rows = trial.during_measure(far, f"link:{near}", "rx_bytes")
    return empty if rows.is_empty() else rows.select("time_ns", octets=pl.col("value") - rows["value"][0])


def received_ns(trial: Trial) -> int | None:
    """When all but a thousandth of the octets had come; None where nothing is known of them."""
    rows = arrived(trial)
    if rows.is_empty() or not rows["octets"][-1]:
        return None
    return int(rows.filter(pl.col("octets") >= RECEIVED_SHARE * rows["octets"][-1])["time_ns"][0])
