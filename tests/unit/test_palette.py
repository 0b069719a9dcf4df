"""The colours of charts: told apart on both backgrounds, by deuteranopic eyes, and printed in grey."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import dist

import pytest

from dnsrig.report import figures
from dnsrig.report.charts import _look

DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
"""Machado, Oliveira and Fernandes (IEEE TVCG 15(6), 2009), severity 1, for linear RGB."""
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
"""Of linear sRGB; the second row is the luminance."""
WHITE_POINT = (0.95047, 1.0, 1.08883)
LIGHT, DARK = "#ffffff", "#15171a"
"""The backgrounds of a page."""

Vector = list[float]
PAIRS = list(combinations(_look.COLOURS, 2))


def product(matrix: tuple[tuple[float, ...], ...], vector: Vector) -> Vector:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def linear(colour: str) -> Vector:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def lab(rgb: Vector) -> Vector:
    """CIE L*a*b*."""
    x, y, z = (
        each ** (1 / 3) if each > 216 / 24389 else (24389 / 27 * each + 16) / 116
        for each in (value / white for value, white in zip(product(XYZ, rgb), WHITE_POINT, strict=True))
    )
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


def seen(colour: str) -> Vector:
    """As deuteranopic eyes see it."""
    return lab([min(1.0, max(0.0, value)) for value in product(DEUTERANOPIA, linear(colour))])


def contrast(one: str, other: str) -> float:
    low, high = sorted(product(XYZ, linear(colour))[1] for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_the_distance_is_that_of_known_colours() -> None:
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.05)
    red, green = "#b33a2f", "#4a7d3a"
    assert dist(seen(red), seen(green)) < 0.4 * dist(lab(linear(red)), lab(linear(green)))


@pytest.mark.parametrize("colour", _look.COLOURS)
def test_each_colour_stands_out_on_both_backgrounds(colour: str) -> None:
    """3:1, as WCAG 2.2 asks of graphics."""
    assert contrast(colour, LIGHT) >= 3
    assert contrast(colour, DARK) >= 3


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_any_two_colours_differ_for_deuteranopic_eyes(one: str, other: str) -> None:
    assert dist(lab(linear(one)), lab(linear(other))) > 25
    assert dist(seen(one), seen(other)) > 20


def test_no_two_colours_are_the_same_grey_in_print() -> None:
    greys = sorted(lab(linear(colour))[0] for colour in _look.COLOURS)
    assert min(high - low for low, high in pairwise(greys)) > 3
    first = sorted(lab(linear(colour))[0] for colour in _look.COLOURS[:3])
    assert min(high - low for low, high in pairwise(first)) > 6, "of the first three still more"


def test_no_two_lines_of_a_chart_have_the_same_colour_and_dash() -> None:
    names = [figures.FLOOR, *(f"server {i}" for i in range(len(_look.COLOURS) * len(_look.DASHES)))]
    colours, dashes = _look.colours(names)["range"], _look.dashes(names)["range"]
    looks = {(colour, tuple(dash)) for colour, dash in zip(colours, dashes, strict=True)}
    assert len(looks) >= len(names) - 1  # the floor takes a place of the servers'
    assert dashes[0] == _look.FLOOR_DASH and colours[0] == _look.MUTED


def test_no_two_dashes_are_alike() -> None:
    drawn = [tuple(dash) for dash in (*_look.DASHES, _look.FLOOR_DASH)]
    assert len(set(drawn)) == len(drawn) > len(_look.COLOURS)
