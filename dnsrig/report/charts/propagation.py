"""How changes arrive at secondaries: the part that has arrived, against the time since the primary was told."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _arrivals, _split

TITLE = "Arrival of changes at the secondaries"
ORDER = 22
METRICS = ("propagation_p50_ms", "propagation_p99_ms", "propagation_max_ms", "unseen_changes_percent")


def applies(run: Run) -> bool:
    return any(not trial.propagation.is_empty() for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "Each line is one repeat, all its changes and secondaries together: so many percent of the arrivals took no longer than"
        " so many milliseconds, from sending the update to the primary to the first answer with the new serial. A step is a"
        " timer of a server; a line that ends below 100 % did not see the rest before it was given up."
    )


def draw(run: Run) -> list[Drawing]:
    """A panel for the variants that are alike but for colour."""
    names = _split.colour_names(run)
    return _arrivals.draw(_rows(run), names, time="time since the update was sent, ms", arrived="arrived, %")


def _rows(run: Run) -> Iterable[dict[str, object]]:
    for variant in run.manifest.variants:
        for trial in run.of_variant(variant.id):
            for percent, time_ms in arrivals(trial):
                yield {
                    "panel": _arrivals.heading(variant, _split.other_axes(run)),
                    "colour": _split.colour_of(run, variant),
                    "repeat": trial.record.spec.repeat,
                    "percent": percent,
                    "time_ms": time_ms,
                }


def arrivals(trial: Trial) -> list[tuple[float, float]]:
    """(percent of all arrivals, the time in ms that they did not exceed), rising.

    Changes that the primary refused are left out; arrivals that were not seen count among all.
    """
    made = trial.propagation.filter(pl.col("rcode").fill_null(0) == 0)
    times = (made["seen_ns"] - made["changed_ns"]).drop_nulls().sort().to_list()
    return _arrivals.points([ns / 1e6 for ns in times], made.height)
