"""A chart is drawn anew for a phone: its panels are smaller, its letters are not."""

from __future__ import annotations

import copy
import re
from typing import Any

import altair as alt
import pytest

from dnsrig.report import charts, first, fit, svg
from dnsrig.report.charts import Drawing, all_charts, time_by_variant
from dnsrig.report.first import ROOMS
from dnsrig.report.fit import fitted
from dnsrig.runs.run import Run


@pytest.mark.parametrize("room", ROOMS)
def test_a_chart_fits_its_room(small: Run, room: str) -> None:
    spec = time_by_variant.draw(small)[0].chart.to_dict()
    width, height = ROOMS[room]
    found = fitted(spec, width, height)
    wide, high = svg.size(found.svg)
    assert found.fits and wide <= width + 12 and high <= height + 12
    letters = {float(size) for size in re.findall(r'font-size="([\d.]+)px"', found.svg)}
    assert letters == {float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg.render_spec(spec))}


def test_what_lies_side_by_side_or_is_too_high_does_not_fit() -> None:
    panel = alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q").properties(width=100, height=100)
    assert fitted(panel.to_dict(), 350, 270).fits
    assert not fitted(alt.hconcat(panel, panel).to_dict(), 350, 270).fits
    assert not fitted(alt.vconcat(*[panel] * 12).to_dict(), 350, 270).fits


def test_rows_with_labels_of_two_lines_keep_their_height() -> None:
    def height(label: str) -> float:
        names = [f"{label} {number}" for number in range(9)]
        y = alt.Y("y:N", scale=alt.Scale(domain=names), axis=alt.Axis(title=None))
        rows = alt.Chart(alt.Data(values=[{"x": 1, "y": names[0]}])).mark_point().encode(x="x:Q", y=y)
        return svg.size(fitted(rows.properties(width=900, height=alt.Step(40)).to_dict(), 350, 200).svg)[1]

    assert height("bind@forky") <= 200 + 12
    assert height("bind@forky · 90 %") >= 9 * 26


@pytest.mark.parametrize(
    ("label", "lines"),
    [
        ("bind@forky", ["bind@forky"]),
        ("bind@forky · tcp", ["bind@forky", "tcp"]),
        ("bind@forky · tcp · held: 1,000", ["bind@forky · tcp", "held: 1,000"]),
        ("bind@forky · tcp · held: 1,000 · limits raised", ["bind@forky · tcp", "held: 1,000 · limits raised"]),
    ],
)
def test_a_label_has_at_most_two_lines(label: str, lines: list[str]) -> None:
    """More would lie over the label of the next row."""
    names = [label, f"{label} and another one, so long that it does not fit beside the panel"]
    y = alt.Y("y:N", scale=alt.Scale(domain=names), axis=alt.Axis(title=None))
    rows = alt.Chart(alt.Data(values=[{"x": 1, "y": label}])).mark_point().encode(x="x:Q", y=y)
    drawn = fitted(rows.properties(width=900, height=alt.Step(40)).to_dict(), 900, 200).svg
    texts = re.findall(r"<(?:text|tspan)[^>]*>([^<]+)</", drawn)
    at = texts.index(lines[0])
    assert texts[at : at + len(lines)] == lines


PANELS: dict[str, Any] = {
    "vconcat": [
        {"width": 100, "height": 50},
        {"hconcat": [{"width": 30, "height": 20}, {"width": 40, "height": 60}]},
    ]
}


def rows(*names: str, broken: bool = False) -> dict[str, Any]:
    """A panel with bars, ticks and spread marks, of 40 pixels a row."""
    y = {"type": "nominal", "scale": {"domain": list(names)}, "axis": {"labelExpr": fit.BROKEN} if broken else {}}
    marks: list[dict[str, Any]] = [
        {"type": "bar", "height": 20},
        {"type": "tick", "size": 30},
        {"type": "point", "size": 9},
    ]
    layers = [{"mark": mark, "encoding": {"y": y, "yOffset": {"scale": {"range": [10, 30]}}}} for mark in marks]
    return {"width": 300, "height": {"step": 40}, "layer": layers}


def test_panels_add_up_along_their_composition() -> None:
    assert fit._extent(PANELS, "width") == 100, "the widest row"
    assert fit._extent(PANELS, "height") == 50 + 60
    assert fit._extent(PANELS["vconcat"][1], "width") == 30 + 40
    assert fit._extent(rows("a", "b", "c"), "height") == 3 * 40
    assert fit._extent(rows("a"), "width") == 300
    assert fit._extent({"mark": "point"}, "width") == 0


def test_panels_are_scaled_and_what_is_drawn_in_their_rows_too() -> None:
    spec = copy.deepcopy(PANELS)
    fit._scale(spec, "height", 0.5)
    assert spec["vconcat"] == [
        {"width": 100, "height": 25},
        {"hconcat": [{"width": 30, "height": 10}, {"width": 40, "height": 30}]},
    ]
    panel = rows("a", "b")
    fit._scale(panel, "height", 0.5)
    bar, tick, point = (layer["mark"] for layer in panel["layer"])
    assert (panel["height"], bar["height"], tick["size"], point["size"]) == ({"step": 20}, 10, 15, 9)
    assert [layer["encoding"]["yOffset"]["scale"]["range"] for layer in panel["layer"]] == [[5, 15]] * 3
    assert panel["width"] == 300


@pytest.mark.parametrize(
    ("panel", "step"),
    [
        (rows("a · b", broken=True), 26),
        (rows("a · b"), 10),
        (rows("a", broken=True), 10),
    ],
)
def test_a_label_of_two_lines_needs_26_pixels(panel: dict[str, Any], step: float) -> None:
    fit._scale(panel, "height", 0.25)
    assert panel["height"] == {"step": step}


@pytest.mark.parametrize(
    ("width", "limit", "columns"), [(350, 126, 2), (340, 122, 2), (339, 122, 1), (100, 36, 1), (690, 248, 4)]
)
def test_labels_have_a_third_of_the_width(width: float, limit: int, columns: int) -> None:
    spec: dict[str, Any] = {"title": {"text": "x"}, **rows("a · b")}
    fit._narrow_words(spec, width)
    assert spec["config"] == {"axis": {"labelLimit": limit}, "legend": {"columns": columns}}
    assert spec["title"]["limit"] == width
    assert {layer["encoding"]["y"]["axis"]["labelExpr"] for layer in spec["layer"]} == {fit.BROKEN}


def test_only_the_first_screen_may_shrink_a_drawing() -> None:
    drawn = '<svg xmlns="http://www.w3.org/2000/svg" width="700" height="9"/>'
    assert 'style="min-width:min(700px, 560px)"' in svg.embed(drawn, "x", "a chart")
    chart = next(chart for chart in all_charts() if chart.id == "time-by-variant")
    picture = first._picture(chart, Drawing("all", alt.vconcat(), "Part 1", "a group"), drawn, "first-wide")
    assert "min-width" not in picture.svg and picture.title == f"{chart.title}: a group: Part 1"


@pytest.mark.parametrize(
    ("metric", "answers"),
    [
        ("transfer_time_s", ["search-by-round", "replication", "time-by-variant"]),
        ("zones_per_s", ["search-by-round", "workers", "zones-by-policy", "time-by-variant"]),
        ("load_time_s", ["search-by-round", "time-by-variant"]),
    ],
)
def test_the_first_chart_answers_the_question(
    small: Run, monkeypatch: pytest.MonkeyPatch, metric: str, answers: list[str]
) -> None:
    for module in (first, charts):
        monkeypatch.setattr(module, "main_metric", lambda run: metric)
    assert [chart.id for chart in first.candidates(small, all_charts())] == answers
    (series,) = (chart for chart in all_charts() if chart.id == "timeline")
    assert first.candidates(small, [series]) == [series], "it shows the main metric, whichever that is"
