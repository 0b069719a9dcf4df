"""Drawings that answer: what a specification of Vega-Lite gets for a browser."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dnsrig.browse.interactive import MOST_HOVER_ROWS, OFF_OPACITY, ZOOM, interactive

Spec = dict[str, Any]


def channel(field: str, kind: str = "quantitative", **more: Any) -> Spec:
    return {"field": field, "type": kind, **more}


def unit(mark: Any, rows: list[Spec], **encoding: Spec) -> Spec:
    return {"mark": mark, "data": {"values": rows}, "encoding": encoding}


TRIALS = [{"t": 1.0, "v": 2.0, "end": 3.0, "name": "a", "trial": "v00/1", "repeat": 1}]
X, Y, NAME = channel("t", title="time, s"), channel("v"), channel("name", "nominal")
TOLD_X = {"field": "t", "type": "quantitative", "title": "time, s", "format": ",.5~g"}
TOLD_Y = {"field": "v", "type": "quantitative", "title": "v", "format": ",.5~g"}
TOLD_NAME = {"field": "name", "type": "nominal", "title": "name"}


def test_a_mark_of_a_trial_leads_to_it() -> None:
    drawn = unit("point", TRIALS, x=X, y=Y, x2=channel("end"), y2=channel("end"), color=NAME, size={"value": 3})
    before = copy.deepcopy(drawn)
    found = interactive(drawn, trials_at="/run/r/trial")
    assert drawn == before, "it is a copy"
    assert found["encoding"]["tooltip"] == [TOLD_X, TOLD_Y, TOLD_NAME, {"field": "repeat", "type": "nominal"}]
    assert found["encoding"]["href"] == {"field": "href", "type": "nominal"}
    assert found["transform"] == [{"calculate": "'/run/r/trial/' + datum.trial", "as": "href"}]
    assert found["mark"] == {"type": "point", "tooltip": {"content": "encoding"}, "cursor": "pointer", "size": 60}


@pytest.mark.parametrize(("size", "expected"), [(59, 60), (60, 60), (61, 61)])
def test_a_mark_to_be_clicked_has_a_least_size(size: int, expected: int) -> None:
    found = interactive(unit({"type": "circle", "size": size}, TRIALS, x=X), trials_at="/run/r/trial")
    assert found["mark"]["size"] == expected


@pytest.mark.parametrize(
    ("mark", "rows", "trials_at"),
    [
        ("bar", TRIALS, "/run/r/trial"),
        ("point", [], "/run/r/trial"),
        ("point", [{"t": 1.0}], "/run/r/trial"),
        ("point", TRIALS, ""),
    ],
)
def test_other_marks_lead_nowhere(mark: str, rows: list[Spec], trials_at: str) -> None:
    found = interactive(unit(mark, rows, x=X), trials_at=trials_at)
    assert "href" not in found["encoding"] and "transform" not in found


@pytest.mark.parametrize(("mark", "is_told"), [("bar", True), ("text", False), ("rule", False), ("tick", False)])
def test_a_mark_with_a_value_shows_it(mark: str, is_told: bool) -> None:
    found = interactive(unit(mark, TRIALS, x=X))
    assert found["mark"] == ({"type": mark, "tooltip": {"content": "encoding"}} if is_told else mark)


def zooms(*panels: Spec) -> list[tuple[list[str], list[str]]]:
    """Axes and views of each zoom."""
    found = interactive({"vconcat": [copy.deepcopy(panel) for panel in panels]})
    bound = [param for param in found["params"] if param["bind"] == "scales"]
    assert [param["name"] for param in bound] == [f"zoom_{number}" for number in range(len(bound))]
    assert all({"type": "interval", **ZOOM}.items() <= param["select"].items() for param in bound)
    return [(param["select"]["encodings"], param["views"]) for param in bound]


def within(low: float, high: float) -> Spec:
    return {"scale": {"domain": [low, high]}}


@pytest.mark.parametrize(
    ("panels", "expected"),
    [
        ([unit("bar", [], x=X, y=Y)], [(["x", "y"], ["unit_0_0"])]),
        ([unit("bar", [], x=X, y=NAME)], [(["x"], ["unit_0_0"])]),
        ([unit("bar", [], x=NAME, y=Y)] * 2, [(["y"], ["unit_0_0"]), (["y"], ["unit_1_0"])]),
        ([unit("bar", [], x=X, y=Y)] * 2, [(["x"], ["unit_0_0", "unit_1_0"])]),
        (
            [unit("bar", [], x=channel("t", **within(0, 1))), unit("bar", [], x=channel("t", **within(0, 2)))],
            [(["x"], ["unit_0_0"]), (["x"], ["unit_1_0"])],
        ),
        ([{"layer": [unit("text", [], x=X), unit("bar", [], x=X)]}], [(["x"], ["unit_0_1"])]),
        ([unit("bar", [], x=channel("t", bin=True), y=channel("v", scale=None))], []),
        ([unit("bar", [], x={"type": "quantitative"}, y=channel("v", "temporal"))], [(["y"], ["unit_0_0"])]),
    ],
    ids=["both", "x", "y apart", "one axis", "two ends", "not text", "none", "temporal"],
)
def test_panels_with_one_axis_move_together(panels: list[Spec], expected: list[tuple[list[str], list[str]]]) -> None:
    assert zooms(*panels) == expected


def test_a_legend_switches_what_it_tells_apart() -> None:
    found = interactive(
        {
            "params": [{"name": "ours", "bind": "x"}],
            "layer": [
                unit("bar", TRIALS, x=NAME, color={**NAME, "legend": None}),
                unit({"type": "bar", "opacity": 0.5}, TRIALS, x=NAME, shape=NAME),
                unit("bar", TRIALS, x=NAME, color=NAME, opacity={"value": 1}),
                unit("bar", TRIALS, x=NAME, color=Y),
            ],
        }
    )
    assert found["params"][0]["name"] == "ours"
    (legend,) = [param for param in found["params"] if param["bind"] == "legend"]
    assert (legend["name"], legend["views"]) == ("shown_0", ["unit_0_1"])
    assert legend["select"] == {"type": "point", "fields": ["name"], "toggle": "true"}
    first, second, third, fourth = (each["encoding"].get("opacity") for each in found["layer"])
    assert first == {"condition": {"param": "shown_0", "value": 1}, "value": OFF_OPACITY}
    assert second == {"condition": {"param": "shown_0", "value": 0.5}, "value": OFF_OPACITY * 0.5}
    assert (third, fourth) == ({"value": 1}, None)


@pytest.mark.parametrize(("rows", "has_points"), [(MOST_HOVER_ROWS, True), (MOST_HOVER_ROWS + 1, False)])
def test_points_without_ink_lie_over_a_line_of_few_rows(rows: int, has_points: bool) -> None:
    drawn = unit("line", TRIALS * rows, x={**X, "axis": None}, y=Y, detail=NAME, color=NAME)
    found = interactive(drawn)
    assert ("layer" in found) is has_points
    if has_points:
        line, points = found["layer"]
        assert line["mark"]["type"] == "line" and line["name"] == "unit_0_0"
        assert points["mark"] == {"type": "point", "filled": True, "size": 90, "opacity": 0}
        assert points["encoding"] == {"x": X, "y": Y, "detail": NAME, "tooltip": [TOLD_NAME, TOLD_X, TOLD_Y]}
        assert points["data"] == line["data"]


def test_the_page_decides_the_background() -> None:
    found = interactive({"config": {"background": "white", "font": "x"}, **unit("bar", TRIALS, x=NAME)})
    assert found["config"] == {"background": "transparent", "font": "x"} and found["params"] == []
