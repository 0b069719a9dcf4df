"""The chart of workers, on a run of which every number is known."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl
import pytest
import synthetic
from drawn import as_it_was
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


def test_the_chart_is_as_it_was(law: Run) -> None:
    assert as_it_was("drawn/workers", law, "workers")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        # The axis has 1.3 times as much room beyond either end as its marks.
        ([13.0, 76.9], [10, 20, 50]),
        ([13.1, 77.0], [20, 50, 100]),
        ([1.3, 769.0], [1, 2, 5, 10, 20, 50, 100, 200, 500]),
        ([0.13, 1.5], [0.1, 0.2, 0.5, 1]),
    ],
)
def test_a_logarithmic_axis_names_what_lies_in_it(values: list[float], named: list[float]) -> None:
    axis = _look.log_axis(pl.Series(values), "x")["axis"]
    assert axis["values"] == pytest.approx(named)


@pytest.mark.parametrize(
    ("low", "high", "named"),
    [
        (1.0, 50.0, [1, 2, 5, 10, 20, 50]),
        (1.01, 49.9, [2, 5, 10, 20]),
        (0.9, 1.9, None),
        (1.0, 2.0, [1, 2]),
        (3.0, 4.0, None),
    ],
)
def test_the_ends_of_a_logarithmic_axis_have_figures_too(low: float, high: float, named: list[float] | None) -> None:
    """If fewer than two figures lie in it, the renderer chooses."""
    axis = _look.axis_of(alt.Scale(type="log", domain=[low, high]), 7).to_dict()
    assert axis.get("values") == named and axis.get("tickCount") == (None if named else 7)


@pytest.mark.parametrize(
    ("values", "title", "kind", "domain"),
    [
        ([1.0, 30.0], "x", "linear", [0, 31.5]),
        ([1.0, 30.1], "x (log scale)", "log", [1 / 1.05, 31.605]),
        ([0.0, 1000.0], "x", "linear", [0, 1050]),
        ([-2.0, 10.0], "x", "linear", [-2, 10.5]),
        ([0.0], "x", "linear", [0, 1]),
        ([], "x", "linear", [0, 1]),
    ],
)
def test_an_axis_begins_at_zero_unless_that_would_hide_the_small(
    values: list[float], title: str, kind: str, domain: list[float]
) -> None:
    found, scale = _look.measure(pl.Series(values, dtype=pl.Float64), "x")
    assert (found, scale["type"]) == (title, kind) and scale["domain"] == pytest.approx(domain)


@pytest.mark.parametrize(("values", "domain"), [([2.0, 4.0], [0, 4.2]), ([0.0], [0, 1]), ([], [0, 1])])
def test_a_scale_from_zero_ends_above_the_largest(values: list[float], domain: list[float]) -> None:
    assert _look.from_zero(pl.Series(values, dtype=pl.Float64))["domain"] == pytest.approx(domain)


def test_colours_shapes_and_dashes_begin_anew_after_the_last() -> None:
    names = list("abcdefghi")
    assert _look.colours(names)["range"] == [*_look.COLOURS, *_look.COLOURS[:3]]
    assert _look.shapes(names)["range"] == [*_look.SHAPES, _look.SHAPES[0]]
    assert _look.dashes(names)["range"] == [*_look.DASHES, *_look.DASHES[:2]]
    floor = "transfer@engine (protocol floor)"
    assert _look.colours(["a", floor])["range"] == [_look.COLOURS[0], _look.MUTED]
    assert _look.dashes(["a", floor])["range"] == [_look.DASHES[0], _look.FLOOR_DASH]


@pytest.mark.parametrize(
    ("names", "at_ends"),
    [
        (["a"], False),
        (["a", "b"], True),
        (list("abcd"), True),
        (list("abcde"), False),
        (["a", "b" * 30], True),
        (["a", "b" * 31], False),
    ],
)
def test_few_short_names_are_at_the_ends_of_lines(names: list[str], at_ends: bool) -> None:
    assert _look.named_at_ends(names) is at_ends
