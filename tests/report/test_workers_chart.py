"""The chart of workers, on a run of which every number is known."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl
import pytest
import synthetic
from html_facts import read

from dnsrig.report import svg
from dnsrig.report.charts import _look, _split, metric_by_axis
from dnsrig.report.charts._by_axis import Reference
from dnsrig.runs.run import Run

(WORKERS,) = (chart for chart in metric_by_axis.CHARTS if chart.id == "workers")


@pytest.fixture
def law(tmp_path: Path) -> Run:
    """Three zones a second for each worker up to 80 of them; with a connection a zone half as many."""
    axes = {"workers": ["1", "10", "100", "400"], "connections": ["reused", "one a zone"]}
    plan = synthetic.Plan(servers=["knot@forky"], zones=[100], repeats=2, extra_axes=axes, baseline={}, samples=False)
    run = Run.open(synthetic.build(tmp_path / "run", plan))
    for trial in run.trials:
        chosen = trial.record.spec.variant.parameters
        share = 1.0 if chosen["connections"] == "reused" else 0.5
        trial.record.metrics["zones_per_s"] = 3 * share * min(int(chosen["workers"]), 80)
    return run


def beside(run: Run) -> list[Reference]:
    found = WORKERS.beside(WORKERS, run, WORKERS.marks(run))
    assert {(point.panel, point.group) for point in found} == {(_split.ONLY, metric_by_axis.LAW)}
    return found


def test_it_applies_where_workers_vary(law: Run, run: Run) -> None:
    assert WORKERS.applies(law) and not WORKERS.applies(run)
    for trial in law.trials:
        trial.record.outcome = "invalid"
    assert not WORKERS.applies(law)


def test_the_law_goes_on_from_the_fewest_workers(law: Run) -> None:
    marks = WORKERS.marks(law)
    assert marks.height == 16 and set(marks["group"]) == {"connections: reused", "connections: one a zone"}
    assert [(point.place, point.value) for point in beside(law)] == [(1, 1.5), (400, 600)]
    (drawing,) = WORKERS.draw(law, [])
    found = read(svg.render(drawing.chart))
    for word in ("reused", "one a zone", metric_by_axis.LAW, "400", "workers (log scale)"):
        assert word in found.text
    assert "NaN" not in " ".join(found.values("d"))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([12.0, 90.0], ["10", "20", "50", "100"]),
        ([3.0, 3.2], ["3", "4"]),
        ([0.004, 0.02], ["0.005", "0.01", "0.02"]),
        ([900_000.0, 4e6], ["1,000,000", "2,000,000", "5,000,000"]),
    ],
)
def test_a_logarithmic_axis_has_figures_at_any_size(values: list[float], named: list[str]) -> None:
    rows = pl.DataFrame({"value": values})
    chart = alt.Chart(rows).mark_point().encode(alt.X("value:Q", **_look.log_axis(rows["value"], "of them")))
    text = read(svg.render(_look.stack([chart]))).text
    assert "of them (log scale)" in text and all(figure in text for figure in named)


def test_what_did_not_count_is_in_no_line(law: Run) -> None:
    for trial in law.trials:
        outcome = {"100": "invalid", "400": "timeout"}.get(str(trial.record.spec.variant.parameters["workers"]), "done")
        trial.record.outcome = outcome  # type: ignore[assignment]
    marks = WORKERS.marks(law)
    assert set(marks.filter("counts")["place"]) == {1, 10}
    assert set(marks.filter(~marks["counts"])["place"]) == {100}
    assert [(point.place, point.value) for point in beside(law)] == [(1, 1.5), (10, 15)], "from the slower of the lines"
    spans = WORKERS.draw(law, [])[0].chart.to_dict()["datasets"].values()
    (medians,) = [rows for rows in spans if rows and "low" in rows[0] and rows[0]["group"] != metric_by_axis.LAW]
    assert {row["place"] for row in medians} == {1, 10}
