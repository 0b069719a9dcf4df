"""What an emulated link and the sockets at its ends would have written of a trial: made up, nothing of it measured."""

from __future__ import annotations

from typing import Any

import polars as pl
import socket_data
from trial_data import SECOND, measured, series, use

from dnsrig.lab import links
from dnsrig.rundir import PathSpec, Phase
from dnsrig.runs.trial import Trial

COUNTS = ("packets", "bytes", "delivered_packets", "delivered_bytes", "lost", "overflowed", "too_big")
ENDS = ("primary", "secondary")


def over_path(trial: Trial, forward: PathSpec, *, kind: str = "tun", seconds: int = 10) -> Trial:
    """Let the zones of ``trial`` have come over a path, for so long, with its links and sockets not looked at."""
    begin_ns = measured(trial, seconds)
    before = trial.record.phases[0].start.model_copy(update={"monotonic_ns": begin_ns - SECOND})
    trial.record.phases[0] = Phase(name="setup", start=before, end=before)
    trial.record.spec.links[0] = links.joined(ENDS, kind, forward=forward, reverse=PathSpec())
    trial.__dict__["_links"] = {}
    return trial


def link_rows(trial: Trial, **at_end: int) -> None:
    """A row of the link before the first phase, in which its self-test lost 8 packets that were too large, and one at
    the end of `measure`."""
    phase = trial.measure
    assert phase is not None
    nothing = dict.fromkeys(COUNTS, 0)
    early = {
        "time_ns": trial.record.phases[0].start.monotonic_ns - SECOND,
        "direction": "forward",
        **nothing,
        "too_big": 8,
    }
    late: dict[str, Any] = {"time_ns": phase.end.monotonic_ns, "direction": "forward", **nothing, **at_end}
    reverse = {"time_ns": phase.end.monotonic_ns, "direction": "reverse", **nothing}
    trial.__dict__["_links"] = {"primary-secondary": pl.DataFrame([early, late, reverse])}


def sockets(trial: Trial, mss_bytes: int) -> None:
    """One connection that brought something, with segments of this size."""
    phase = trial.measure
    assert phase is not None
    rows = socket_data.rows(phase.start.monotonic_ns, resent_share=0.1)
    at_primary = pl.col("host") == "primary"
    mss = pl.when(at_primary).then(mss_bytes).otherwise(pl.col("mss_bytes")).cast(pl.UInt32)
    host = pl.when(at_primary).then(pl.lit("primary")).otherwise(pl.lit("secondary"))
    trial.__dict__["sockets"] = rows.with_columns(mss_bytes=mss, host=host)


def resent(trial: Trial, segments: int) -> None:
    """So many segments sent again by the primary's host during `measure`."""
    phase = trial.measure
    assert phase is not None
    seconds = (phase.end.monotonic_ns - phase.start.monotonic_ns) // SECOND
    use(trial, series(phase.start.monotonic_ns, primary__tcp__retrans_segs=[0, *[segments] * int(seconds)]))
