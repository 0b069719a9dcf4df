"""No drawing is taller than a screen, panels that are compared have one axis, and lines have their names at their
ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import altair as alt
import polars as pl
import pytest
from html_facts import read
from load_data import LoadPlan
from load_data import build as build_load
from synthetic import Plan, build

from dnsrig.report import draw, svg
from dnsrig.report.charts import Drawing, _look, _split, slowest_percentile, time_by_variant
from dnsrig.runs.run import Run


def height_px(drawing: str) -> float:
    found = re.search(r'height="([\d.]+)"', drawing)
    assert found
    return float(found.group(1))


def panel() -> alt.Chart:
    chart: alt.Chart = alt.Chart(pl.DataFrame({"x": [1]})).mark_point().encode(x="x:Q").properties(height=200)
    return chart


def test_rows_that_do_not_fit_on_a_screen_are_drawn_apart() -> None:
    assert [drawing.name for drawing in _split.screens([panel()] * 2, 240)] == ["all"]
    several = _split.screens([panel()] * 7, 240)
    assert [drawing.title for drawing in several] == ["Part 1 of 4", "Part 2 of 4", "Part 3 of 4", "Part 4 of 4"]
    assert all(height_px(svg.render(drawing.chart)) <= _split.SCREEN_PX for drawing in several)


def test_one_row_taller_than_a_screen_is_drawn_all_the_same() -> None:
    assert len(_split.screens([panel()], 2000)) == 1


def test_no_drawing_of_many_variants_is_taller_than_a_screen(tmp_path: Path) -> None:
    servers = [f"bind@/{letter}" for letter in "abcdefghijklmn"]
    run = Run.open(build(tmp_path / "run", Plan(servers=servers, zones=[10, 100], repeats=2, samples=False)))
    drawn = draw.draw_all(run, [])
    assert not list(run.failures)
    assert {each.name: height for each in drawn if (height := height_px(each.svg)) > _split.SCREEN_PX} == {}
    repeats = [each for each in drawn if each.chart.id == "time-by-variant"]
    assert len(repeats) > 1
    text = " ".join(read(each.svg).text for each in repeats)
    assert all(name in text for name in servers)


def _domains(drawing: Drawing) -> set[tuple[float, ...]]:
    """Of the axis x of all panels."""
    panels = drawing.chart.to_dict()["vconcat"]
    layers = (layer for panel in panels for layer in panel["layer"])
    scales = (layer["encoding"].get("x", {}).get("scale") for layer in layers)
    return {tuple(scale["domain"]) for scale in scales if scale}


def test_sizes_are_compared_on_one_axis(run: Run) -> None:
    (drawing,) = time_by_variant.draw(run)
    assert len(_split.zone_counts(run)) > 1 and len(_domains(drawing)) == 1


def test_few_lines_have_their_names_at_their_ends_and_many_a_legend(tmp_path: Path) -> None:
    def legends(servers: list[str]) -> int:
        plan = LoadPlan(servers=servers, repeats=1, seconds=1, median_us=dict.fromkeys(servers, 100.0))
        (drawing, *_) = slowest_percentile.draw(Run.open(build_load(tmp_path / str(len(servers[0])), plan)))
        return str(drawing.chart.to_dict()).count("'symbolType': 'stroke'")

    assert legends(["knot@/a", "knot@/b", "knot@/c"]) == 0
    assert legends([f"knot@/{name:x<40}" for name in "ab"]) > 0, "long names"


@pytest.mark.parametrize(
    ("places", "apart"),
    [
        ([50.0], [50.0]),
        ([50.0, 50.0], [50.0, 63.0]),
        ([0.0, 90.0, 91.0], [0.0, 87.0, 100.0]),
        ([99.0, 98.0], [100.0, 87.0]),
    ],
)
def test_names_are_moved_apart_in_the_order_of_the_lines(places: list[float], apart: list[float]) -> None:
    assert _look.spread(places, 100) == apart


@pytest.mark.parametrize(
    ("scale", "domain", "values"),
    [
        ("linear", [0, 100], [20, 50, 80]),
        ("linear", [40, 140], [60, 90, 120]),
        ("log", [1, 10_000], [10, 100, 1_000]),
        ("log", [0.01, 100], [0.1, 1, 10]),
    ],
)
def test_a_name_with_room_is_where_its_line_ends(
    scale: Literal["linear", "log"], domain: list[float], values: list[float]
) -> None:
    y = alt.Y("value:Q", scale=alt.Scale(type=scale, domain=domain))
    ends = dict(zip("abc", values, strict=True))
    _, words = _look.at_ends(ends, y, 300, 200, _look.colours([*ends]))
    assert [row["value"] for row in words.data.to_dicts()] == pytest.approx(values)
    assert [row["end"] for row in words.data.to_dicts()] == values


@pytest.mark.parametrize(("scale", "domain"), [("linear", [10, 100]), ("log", [10, 100])])
def test_a_line_that_ends_outside_the_axis_has_its_name_at_the_edge(
    scale: Literal["linear", "log"], domain: list[float]
) -> None:
    y = alt.Y("value:Q", scale=alt.Scale(type=scale, domain=domain))
    _, words = _look.at_ends({"below": 1.0, "above": 1_000.0}, y, 300, 200, _look.colours(["below", "above"]))
    assert [row["value"] for row in words.data.to_dicts()] == pytest.approx(domain)
    assert [row["end"] for row in words.data.to_dicts()] == domain


@pytest.mark.parametrize(("height", "rows"), [(740, [1, 1, 1]), (363, [1, 1, 1]), (362, [2, 1]), (236, [3])])
def test_rows_and_the_gaps_between_them_fill_a_screen(height: int, rows: list[int]) -> None:
    """A screen has 800 pixels, of which 60 are for the frame; 16 are between two rows."""
    drawn = _split.screens([panel()] * 3, height)
    assert [len(each.chart.to_dict()["vconcat"]) for each in drawn] == rows
    assert [each.name for each in drawn] == (["all"] if len(rows) == 1 else ["1", "2", "3"][: len(rows)])
