"""The time of each trial, in the order in which they ran."""

import altair as alt
import polars as pl

from dnsrig.report.charts import MAIN, Drawing
from dnsrig.runs.run import Run

TITLE = "Time by order of trials"
ORDER = 500
METRICS = (MAIN,)


def applies(run: Run) -> bool:
    return any(trial.time_s is not None for trial in run.trials)


def caption(run: Run) -> str:
    return "Look for a slope: the machine got warmer, or fuller."


def draw(run: Run) -> list[Drawing]:
    labels = {variant.id: variant.label for variant in run.manifest.variants}
    rows = [
        {"place": 1 + run.manifest.order.index(trial.key), "time_s": trial.time_s, "variant": labels[trial.key.variant]}
        for trial in run.trials
        if trial.time_s is not None
    ]
    marks = alt.Chart(pl.DataFrame(rows)).mark_point().encode(x="place:Q", y="time_s:Q", color="variant:N")
    return [Drawing("all", alt.vconcat(marks))]
