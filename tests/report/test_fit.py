"""A chart is drawn anew for a phone: its panels are smaller, its letters are not."""

from __future__ import annotations

import re

import altair as alt
import pytest

from dnsrig.report import svg
from dnsrig.report.charts import time_by_variant
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
