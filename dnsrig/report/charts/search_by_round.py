"""The course of a search for a commit: what each round measured, and where the change could still be."""

from __future__ import annotations

import altair as alt
import polars as pl

from dnsrig.comparison.bisection.course import Step, course
from dnsrig.comparison.bisection.record import Search, search_of, state_of
from dnsrig.report import figures
from dnsrig.report.bisection import IS_LIKE
from dnsrig.report.charts import MAIN, Drawing, _look
from dnsrig.runs.run import Run
from dnsrig.text import digits

TITLE = "How did the search close in on the commit?"
ORDER = 1
METRICS = (MAIN,)
HEIGHT_PX = 260
MARKS = {
    "good": ("circle", _look.COLOURS[0]),
    "bad": ("square", _look.COLOURS[1]),
    "neither": ("diamond", _look.COLOURS[3]),
    "open": ("triangle-up", _look.MUTED),
}
"""What a commit was like by then -> its shape and colour."""


def applies(run: Run) -> bool:
    search = search_of(run)
    return search is not None and bool(state_of(run, search).rounds)


def caption(run: Run) -> str:
    return (
        "Each mark is a commit that a round measured, with the verdict of all its trials until then. Every round also measures both"
        " ends of the history. The grey band covers the commits among which the change was by then, with the probability of error that"
        " the search allows. It covers the whole history until the two ends differ. If a band widens or moves, later trials"
        " contradicted earlier ones."
    )


def draw(run: Run) -> list[Drawing]:
    search = search_of(run)
    assert search is not None  # `applies` says so
    steps = list(course(state_of(run, search)))
    return [Drawing("course", _look.stack([_panel(search, steps)]), figures.visible(in_words(steps)))]


def in_words(steps: list[Step]) -> str:
    """Where it ended, for a title."""
    last = steps[-1]
    where = f"commit {last.first}" if last.first == last.last else f"commits {last.first} to {last.last}"
    wrong = "" if last.wrong is None else f", wrong with {digits(100 * last.wrong, 2)} %"
    return f"after {figures.count(last.round, 'round')}: {where}{wrong}"


def _panel(search: Search, steps: list[Step]) -> alt.LayerChart | alt.FacetChart:
    bands = pl.DataFrame(
        [{"from": s.round - 0.5, "to": s.round + 0.5, "low": s.first - 0.5, "high": s.last + 0.5} for s in steps]
    )
    marks = pl.DataFrame(
        [
            {"round": step.round, "commit": commit, "like": IS_LIKE[verdict]}
            for step in steps
            for commit, verdict in step.measured.items()
        ],
        schema={"round": pl.Int64, "commit": pl.Int64, "like": pl.String},
    )
    ends = [0, len(search.candidates) - 1]
    x = alt.Scale(domain=[0.5, len(steps) + 0.5], nice=False)
    y = alt.Scale(domain=[ends[0] - 0.5, ends[1] + 0.5], nice=False)
    whole = alt.Axis(tickMinStep=1, format="d")
    band = alt.Chart(bands).mark_rect(color=_look.GRID)
    point = alt.Chart(marks).mark_point(filled=True, size=50, opacity=1)
    kinds = [IS_LIKE[verdict] for verdict in MARKS]
    shapes = alt.Scale(domain=kinds, range=[shape for shape, _ in MARKS.values()])
    colours = alt.Scale(domain=kinds, range=[colour for _, colour in MARKS.values()])
    return alt.layer(
        band.encode(
            alt.X("from:Q", scale=x, axis=whole, title="round of the search"),
            alt.X2("to:Q"),
            alt.Y("low:Q", scale=y, axis=whole, title="number of the commit, from good to bad"),
            alt.Y2("high:Q"),
        ),
        point.encode(
            alt.X("round:Q", scale=x),
            alt.Y("commit:Q", scale=y),
            alt.Color("like:N", scale=colours),
            alt.Shape("like:N", scale=shapes),
        ),
    ).properties(width=_look.WIDTH, height=HEIGHT_PX)
