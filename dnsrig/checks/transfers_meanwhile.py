"""Share of the load's duration in which zones were transferred from the server under test.

The check counts samples of the link, a fifth of a second apart, in which at least a kilobyte arrived. At least half of
them must be such samples: the transfers are the load that the variant is named after, and transfers that ended early
leave the server at rest.
"""

from __future__ import annotations

import polars as pl

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "time with zone transfers during the load"
UNIT = "% of the samples"
LEAST_PERCENT = 50.0
BYTES_LEAST = 1_000


def look(trial: Trial) -> Seen:
    interface = trial.record.spec.interface("client", trial.subject)
    rows = trial.during_measure("client", interface, "rx_bytes")
    if rows.height < 2:
        return cannot_tell("there are no samples of the link to the client")
    moved = rows.select((pl.col("value").diff().drop_nulls() >= BYTES_LEAST).alias("moved"))["moved"]
    return Seen(
        100 * int(moved.sum()) / moved.len(),
        least=LEAST_PERCENT,
        asked=str(trial.record.spec.options["transfers"]),
        series=(f"client/{interface}/rx_bytes",),
    )
