"""Axes of figures that are switched between linear and logarithmic."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dnsrig.browse import rescale
from dnsrig.browse.spec import Rows, Spec


def unit(mark: str = "point", rows: list[float] | None = None, **encoding: Spec) -> Spec:
    return {"mark": mark, "data": {"values": [{"v": value} for value in rows or [2.0, 8.0]]}, "encoding": encoding}


def figures(**more: Any) -> Spec:
    return {"field": "v", "type": "quantitative", **more}


def rescaled(spec: Spec, kind: str) -> Spec:
    found = copy.deepcopy(spec)
    rescale.apply(found, kind, Rows(found).values)
    return found


@pytest.mark.parametrize(
    ("rows", "scale", "low", "high"),
    [
        ([2.0, 8.0], {}, 2, 8),
        ([0.001], {}, 0.001, 0.001),
        ([2.0, 8.0], {"domain": [1, 10.5]}, 1, 10),
        ([2.0, 8.0], {"domain": [0, 10.5]}, 2, 10),
        ([2.0, 8.0], {"domain": [-1, 10.5]}, 2, 10),
        ([2.0, 8.0], {"domain": ["a", "b", "c"]}, 2, 8),
        ([2.0, 8.0], {"zero": False}, 2, 8),
    ],
)
def test_a_logarithmic_axis_has_room_at_both_ends(rows: list[float], scale: Spec, low: float, high: float) -> None:
    found = rescaled(unit(rows=rows, y=figures(title="time, ms", scale=scale)), "log")["encoding"]["y"]
    domain = [pytest.approx(low / 1.05), pytest.approx(high * 1.05)]
    assert found["scale"] == {**scale, "type": "log", "nice": False, "domain": domain}
    assert found["title"] == "time, ms (log scale)"


@pytest.mark.parametrize("rows", [[0.0, 8.0], [-1.0, 8.0]])
def test_there_is_no_logarithm_of_zero(rows: list[float]) -> None:
    spec = unit(rows=rows, y=figures(title="x"))
    assert rescaled(spec, "log")["encoding"]["y"] == figures(title="x", scale={})
    assert not rescale.switchable(spec, Rows(spec).values)


def test_a_linear_axis_begins_at_zero_and_has_no_values_of_its_own() -> None:
    logarithmic = {"type": "log", "domain": [1, 10.5], "base": 10}
    channel = figures(title="time, ms (log scale)", scale=logarithmic, axis={"values": [1, 10], "grid": True})
    found = rescaled(unit(y=channel), "linear")["encoding"]["y"]
    domain = [0, pytest.approx(10.5)]
    assert found["scale"] == {"type": "linear", "domain": domain, "base": 10, "nice": False}
    assert (found["title"], found["axis"]) == ("time, ms", {"grid": True})


@pytest.mark.parametrize("title", [None, "time, ms (log scale)"])
def test_an_axis_that_is_as_asked_stays(title: str | None) -> None:
    drawn = figures(title=title, scale={"type": "linear", "domain": [1, 2]})
    assert rescaled(unit(y=drawn), "linear")["encoding"]["y"] == drawn
    assert rescaled(unit(y=figures(title=title)), "log")["encoding"]["y"]["title"] == title, "it says so once"


NAME = {"field": "name", "type": "nominal"}


@pytest.mark.parametrize(
    ("spec", "switched"),
    [
        (unit(y=figures(), x=NAME), ["y"]),
        (unit(x=figures(), y=NAME), ["x"]),
        (unit(x=figures(), y=figures()), ["y"]),
        (unit("bar", y=figures()), []),
        (unit("area", y=figures()), []),
        (unit("rect", y=figures()), []),
        (unit("bar", y=figures(), y2={"field": "v"}), ["y"]),
        (unit("bar", x=figures(), x2={"field": "v"}, y=NAME), ["x"]),
        (unit("bar", x=figures(), y2={"field": "v"}, y=NAME), []),
        (unit(x=figures(field="time_s")), []),
        (unit(x=figures(field="loss_percent")), []),
        (unit(x={"type": "quantitative"}), []),
        (unit(x=NAME, y=NAME), []),
    ],
)
def test_only_an_axis_of_figures_is_switched(spec: Spec, switched: list[str]) -> None:
    found = rescaled({"vconcat": [spec]}, "log")
    encoding = found["vconcat"][0]["encoding"]
    assert [name for name, channel in encoding.items() if channel.get("scale", {}).get("type") == "log"] == switched
    assert rescale.is_logarithmic(found) is bool(switched) and not rescale.is_logarithmic(spec)
    assert (
        rescale.switchable(spec, Rows(spec).values) is rescale.switchable(found, Rows(found).values) is bool(switched)
    )
