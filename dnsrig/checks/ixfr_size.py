"""Bytes on the link for the change, compared with the bytes of the first transfer of the whole zones: few with IXFR
(RFC 1995), as many with AXFR.

50 % separates the two, because only one record in thousands changes here. A primary may answer IXFR with the whole
zone; then the trial is not what its variant's name says.
"""

from __future__ import annotations

import polars as pl

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "bytes of the change"
UNIT = "% of the bytes of the whole zones"
HALF_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    spec, phase = trial.record.spec, trial.measure
    assert phase is not None
    if trial.record.instruments.get("probe", {}).get("seen") == 0:
        return cannot_tell("no zone arrived")
    interface = spec.interface(trial.subject, spec.primaries[0])
    rows = trial.series(trial.subject, interface, "rx_bytes").filter(pl.col("time_ns") <= phase.start.monotonic_ns)
    changed = trial.growth(trial.subject, interface, "rx_bytes")
    whole = 0 if rows.height < 2 else int(rows["value"][-1]) - int(rows["value"][0])
    if changed is None or whole <= 0:
        return cannot_tell("there are no samples of the link from before the change")
    series = (f"{trial.subject}/{interface}/rx_bytes",)
    if spec.transfer.ixfr:
        return Seen(100 * changed / whole, most=HALF_PERCENT, asked="IXFR", series=series)
    return Seen(100 * changed / whole, least=HALF_PERCENT, asked="AXFR", series=series)
