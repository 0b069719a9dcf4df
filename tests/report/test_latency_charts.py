"""The charts of latency, on runs of which every number is known."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from drawn import as_it_was, words_as_they_were
from html_facts import read
from load_data import LoadPlan, build, write_hlog
from made_up import once

from dnsrig import report
from dnsrig.report import svg, wording
from dnsrig.report.charts import _latency, _look, all_charts, time_by_variant
from dnsrig.report.charts import latency_boxes as boxes
from dnsrig.report.charts import latency_by_rate as by_rate
from dnsrig.report.charts import latency_heat_map as heat_map
from dnsrig.report.charts import slowest_percentile as slowest
from dnsrig.runs.latency import Histogram, Interval
from dnsrig.runs.load_result import Try
from dnsrig.runs.run import Run

BIND, KNOT, ECHO = "bind@system", "knot@system", "echo@engine"
SERVERS = [BIND, *(f"knot@/{letter}" for letter in "abcdefgh")]
MS = 1_000_000
PLAN = LoadPlan(seconds=4, slow_seconds={BIND: [2]}, timeouts={BIND: 60})


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.open(once(tmp_path_factory, "loaded", partial(build, plan=PLAN)))


@pytest.fixture(scope="module")
def ramped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.open(once(tmp_path_factory, "ramped", partial(build, plan=LoadPlan(ramp=True))))


def drawn(module: Any, run: Run) -> str:
    return "".join(svg.render(drawing.chart) for drawing in module.draw(run))


def test_each_applies_only_where_there_is_something_to_draw(loaded: Run, ramped: Run, run: Run) -> None:
    ids = ("slowest-percentile", "latency-heat-map", "latency-boxes", "latency-by-rate")
    charts = [next(chart for chart in all_charts() if chart.id == id_) for id_ in ids]
    assert [chart.applies(loaded) for chart in charts] == [True, True, True, False]
    assert [chart.applies(ramped) for chart in charts] == [False, False, False, True]
    assert not any(chart.applies(run) for chart in charts), "a run of transfers"


def test_the_grid_ends_where_one_query_is_left() -> None:
    assert slowest.grid(1000)[0] == 100 and slowest.grid(1000)[-1] == pytest.approx(0.1)
    assert slowest.grid(10**9)[-1] == slowest.LEAST_PERCENT
    assert len(slowest.grid(10**9)) == slowest.POINTS
    assert slowest.grid(1)[-1] == 100


def test_a_curve_is_the_mean_of_the_repeats_and_their_range(tmp_path: Path) -> None:
    """Two repeats that answer everything in 1 ms and in 3 ms; 1 % never in the second."""
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=[KNOT], repeats=2, seconds=1)))
    first, second = run.trials
    write_hlog(first.directory / "latency.hlog", [{"due": {1_000_000: 10_000}}])
    write_hlog(second.directory / "latency.hlog", [{"due": {3_000_000: 9_900, 1_000_000_500: 100}}])
    points = slowest.curve(Run.open(run.directory).trials)
    for point in points:
        above = point.percent > 1
        assert point.low_ms == pytest.approx(1, rel=1e-3)
        assert point.high_ms == (pytest.approx(3, rel=1e-3) if above else 1000)
        assert point.mean_ms == pytest.approx(2 if above else 500.5, rel=1e-3)
    assert points[-1].percent == pytest.approx(0.01), "one of 10,000"


def test_both_ends_are_drawn_where_the_instrument_was_late(tmp_path: Path) -> None:
    late = Run.open(build(tmp_path / "late", LoadPlan(repeats=2, seconds=2, late_us={KNOT: 300})))
    by_server = {str(v.parameters["server"]): slowest.curve(late.of_variant(v.id)) for v in late.manifest.variants}
    for point in by_server[KNOT]:
        assert point.mean_ms - point.lower_ms == pytest.approx(0.3, abs=0.1 + 0.01 * point.mean_ms)
        assert point.low_ms <= point.lower_ms <= point.mean_ms <= point.high_ms
    assert all(point.lower_ms > 0.9 * point.mean_ms for point in by_server[BIND])
    assert "thin line" in slowest.caption(late)
    by_variant = json.dumps(time_by_variant.draw(late)[0].chart.to_dict())
    assert '"lower"' in by_variant and '"field": "lower"' in by_variant
    lines = [
        drawn(slowest, run).count('class="mark-line')
        for run in (late, Run.open(build(tmp_path / "in-time", LoadPlan(repeats=2, seconds=2))))
    ]
    assert lines[0] > lines[1]


def test_pictures_over_time_have_both_ends_where_these_are_apart(tmp_path: Path) -> None:
    plan = LoadPlan(servers=[KNOT], repeats=1, seconds=3)
    late = Run.open(build(tmp_path / "late", dataclasses.replace(plan, late_us={KNOT: 300})))
    in_time = Run.open(build(tmp_path / "in-time", plan))
    for module in (heat_map, boxes):
        assert "the least that" in module.caption(late) and "the least that" not in module.caption(in_time)
    assert "What the server took at least" in read(drawn(heat_map, late)).text
    assert "What the server took at least" not in read(drawn(heat_map, in_time)).text
    upper, lower = _latency.intervals(late.trials[0])
    for box in boxes.boxes(upper, lower, None):
        assert box["low"] <= box["lower_median"] < box["median"] - 0.2 <= box["high"]
    assert _latency.intervals(in_time.trials[0])[1] == []


def test_the_floor_is_grey_and_named_and_the_rest_as_elsewhere(loaded: Run) -> None:
    picture = drawn(slowest, loaded)
    text = read(picture).text
    assert f"{ECHO}: floor, no server" in text and f"{BIND}: floor" not in text
    colours = {str(v.parameters["server"]): _latency.colour(loaded, v) for v in loaded.manifest.variants}
    assert colours == {BIND: _look.COLOURS[0], KNOT: _look.COLOURS[1], ECHO: _look.MUTED}
    used = {value for _, name, value in read(picture).attributes if name in ("fill", "stroke")}
    assert used <= {*_look.NEUTRALS.values(), *_look.COLOURS, "none", "transparent"}


@pytest.mark.parametrize(("module", "ramp"), [(slowest, False), (by_rate, True)])
def test_a_legend_names_what_is_drawn_and_no_variant_that_is_invalid(tmp_path: Path, module: Any, ramp: bool) -> None:
    plan = LoadPlan(servers=[BIND, KNOT], repeats=1, seconds=1, ramp=ramp, invalid=[BIND])
    text = drawn(module, Run.open(build(tmp_path / "run", plan)))
    assert KNOT in text and BIND not in text


def test_where_all_are_reflectors_none_is_the_floor(tmp_path: Path) -> None:
    plan = LoadPlan(servers=[ECHO], seconds=2, repeats=1, extra_axes={"rate": [1000, 2000]})
    run = Run.open(build(tmp_path / "run", plan))
    assert {_latency.colour(run, v) for v in run.manifest.variants} == {*_look.COLOURS[:2]}
    assert "floor" not in read(drawn(slowest, run)).text


def test_timeout_and_few_answers_are_marked_where_they_are(loaded: Run, tmp_path: Path) -> None:
    text = read(drawn(slowest, loaded)).text
    assert "≥ 1 s: the client's timeout" in text
    assert "fewer than 10 answers" in text
    clean = Run.open(build(tmp_path / "run", LoadPlan(servers=[KNOT], repeats=1, seconds=2, rate_qps=1_000_000)))
    text = read(drawn(slowest, clean)).text
    assert "timeout" not in text, "nothing reaches it"
    assert "fewer than" not in text, "two million queries have twenty beyond 0.001 %"


def test_a_second_axis_makes_panels(tmp_path: Path) -> None:
    plan = LoadPlan(seconds=1, repeats=1, extra_axes={"transport": ["udp", "tcp"]})
    text = read(drawn(slowest, Run.open(build(tmp_path / "run", plan)))).text
    assert "transport udp" not in text and "udp" in text and "tcp" in text


def test_a_panel_has_at_most_four_bands_and_the_baseline_in_each(tmp_path: Path) -> None:
    names = [BIND, *(f"knot@/{letter}" for letter in "abcdefghijk")]
    plan = LoadPlan(servers=names, repeats=1, seconds=1, median_us=dict.fromkeys(names, 100.0))
    run = Run.open(build(tmp_path / "run", plan))
    variants = run.manifest.variants
    found = slowest._few_in_each(run, {"all": variants})
    assert list(found) == ["1 of 4", "2 of 4", "3 of 4", "4 of 4"]
    assert all(len(panel) <= slowest.MOST_BANDS and panel[0] == variants[0] for panel in found.values())
    assert {variant.id for panel in found.values() for variant in panel} == {variant.id for variant in variants}
    few = {"all": variants[:4], "tcp": variants[:2]}
    assert slowest._few_in_each(run, few) == few
    assert "2 of 4" in drawn(slowest, run)


def test_the_median_repeat_of_each_variant_the_slowest_in_sight(loaded: Run) -> None:
    for module in (heat_map, boxes):
        first, second = module.draw(loaded)
        assert first.group == "" and first.title.startswith(f"server={BIND} zones=100. Repeat ")
        assert "≥ 1,000 ms" in first.title
        assert second.group == f"server={KNOT} zones=100"
    middle = sorted(loaded.of_variant("v01"), key=lambda trial: trial.result or 0)[1]
    assert heat_map.draw(loaded)[1].name == f"v01-{middle.record.spec.repeat:02d}"


def test_cells_hold_all_queries_where_they_belong() -> None:
    found = [
        Interval(0.0, 1.0, Histogram.of({100_000: 5, 1_000_000: 250})),
        Interval(1.0, 1.0, Histogram([], [])),
        Interval(2.0, 1.0, Histogram.of({90_000_000: 10})),
    ]
    edges = heat_map.edges(0.1, 90)
    assert edges[0] <= 0.1 and edges[-1] > 90 and len(edges) - 1 <= heat_map.ROWS
    cells = heat_map.cells(found, edges)
    assert [(cell.start_s, cell.end_s, cell.shade) for cell in cells] == [(0, 1, 0), (0, 1, 2), (2, 3, 1)]
    for cell, value_ms in zip(cells, (0.1, 1.0, 90.0)):
        assert cell.low <= value_ms * (1 + 1e-9) and value_ms < cell.high * (1 + 1e-9)


def test_neighbours_of_one_shade_are_one_cell() -> None:
    counts = (5, 9, 10, 0, 30, 40)
    found = [Interval(float(n), 1.0, Histogram.of({100_000: count})) for n, count in enumerate(counts)]
    cells = heat_map.cells(found, heat_map.edges(0.1, 0.1))
    assert [(cell.start_s, cell.end_s, cell.shade) for cell in cells] == [(0, 2, 0), (2, 3, 1), (4, 6, 1)]


@pytest.mark.parametrize(("low", "high"), [(0.001, 10_000), (1, 1), (0.0301, 0.0302), (1e-6, 1e6)])
def test_rows_cover_any_range(low: float, high: float) -> None:
    edges = heat_map.edges(low, high)
    assert edges[0] <= low * (1 + 1e-9) and edges[-1] > high
    assert 1 <= len(edges) - 1 <= heat_map.ROWS + 2


def test_boxes_are_the_quarters() -> None:
    found = [
        Interval(0.0, 2.0, Histogram.of({1_000_000 * n: 1 for n in range(1, 9)})),
        Interval(2.0, 2.0, Histogram([], [])),
    ]
    (box,) = boxes.boxes(found, [], most_ms=7)
    values = {name: round(box[name], 2) for name in ("low", "quarter", "median", "three_quarters", "high")}
    assert values == {"low": 1, "quarter": 2, "median": 4, "three_quarters": 6, "high": 7}
    assert box["middle_s"] == 1


def test_many_intervals_are_drawn_as_few() -> None:
    many = [Interval(n / 10, 0.1, Histogram.of({1000: 1})) for n in range(6001)]
    few = _latency.stretches(many)
    assert len(few) <= _latency.MOST_STRETCHES
    assert sum(interval.histogram.total for interval in few) == 6001
    assert few[-1].offset_s + few[-1].duration_s == pytest.approx(600.1)


def test_steps_of_a_ramp_are_put_in_order(ramped: Run) -> None:
    trial = ramped.trials[0]
    found = by_rate.steps(trial)
    assert [step.rate_qps for step in found] == sorted(step.rate_qps for step in found)
    assert len(found) == 9, "two tries of each rate are one step"
    capacity = trial.ramp.capacity_qps
    assert max(step.rate_qps for step in found if step.holds) == pytest.approx(capacity)
    text = read(drawn(by_rate, ramped)).text
    middle = sorted(t.ramp.capacity_qps for t in ramped.of_variant("v00"))[1]
    assert f"{middle:,.0f}/s" in text


def test_steps_without_an_answer_are_no_points(ramped: Run, tmp_path: Path) -> None:
    trial = Run.open(build(tmp_path / "run", LoadPlan(ramp=True, servers=[KNOT], repeats=1))).trials[0]
    ramp = trial.record.instruments["load"]
    ramp["steps"][0] |= {"p50_ns": None, "p99_ns": None}
    ramp["steps"][1] |= {"sent_qps": 0}
    assert len(by_rate.steps(trial)) == 8
    ramp["steps"] = []
    assert by_rate.steps(trial) == []
    ramp["capacity_qps"] = None
    assert by_rate.steps(trial) == []


def test_a_ramp_that_never_held_is_drawn_without_a_capacity(tmp_path: Path) -> None:
    directory = build(tmp_path / "run", LoadPlan(ramp=True, servers=[KNOT], repeats=1))
    (path,) = directory.glob("trials/*/*/trial.json")
    record = json.loads(path.read_text())
    record["instruments"]["load"]["capacity_qps"] = None
    for step in record["instruments"]["load"]["steps"]:
        step["holds"] = False
    path.write_text(json.dumps(record))
    assert "/s" not in read(drawn(by_rate, Run.open(directory))).text.replace("rate, queries/s", "")


def test_the_page_tells_of_latency(tmp_path: Path) -> None:
    directory = build(tmp_path / "run", LoadPlan(seconds=3, repeats=5, timeouts={BIND: 60}))
    path = report.write_report(directory).path
    page = read(path.read_text(encoding="utf-8"))
    assert page.unclosed == []
    answer = page.text.split("Every variant in figures")[1].split("Findings")[0]
    assert "≥ 1,000 ms" in answer and "≤ 0.0" in answer
    assert "latency, p99, ms" in page.text, "the axis of the repeats has the metric's unit"
    assert "section-slowest-percentile" in page.values("id")
    assert path.stat().st_size < 1_000_000


@pytest.mark.full
def test_a_large_run_makes_a_page_that_can_be_mailed(tmp_path: Path) -> None:
    servers = [f"bind@/opt/{number}" for number in range(13)]
    plan = LoadPlan(servers=servers, repeats=1, seconds=65, median_us=dict.fromkeys(servers, 100.0))
    run = Run.open(build(tmp_path / "run", plan))
    assert len(heat_map.draw(run)) == _latency.MOST_VARIANTS
    size = sum(len(drawn(module, run)) for module in (slowest, heat_map, boxes))
    assert size < 1_200_000


def test_the_charts_are_as_they_were(loaded: Run, ramped: Run) -> None:
    assert as_it_was("drawn/load", loaded)
    assert as_it_was("drawn/ramp", ramped)


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("late", LoadPlan(repeats=2, seconds=2, late_us={KNOT: 300})),
        ("transports", LoadPlan(servers=[KNOT], seconds=1, repeats=1, extra_axes={"transport": ["udp", "tcp"]})),
        ("nine-servers", LoadPlan(SERVERS, repeats=1, seconds=1, median_us=dict.fromkeys(SERVERS, 100.0))),
    ],
)
def test_the_curves_are_as_they_were(tmp_path: Path, name: str, plan: LoadPlan) -> None:
    run = Run.open(build(tmp_path / "run", plan))
    assert as_it_was(f"drawn/{name}", run, "slowest-percentile", "latency-heat-map", "latency-boxes")


@pytest.mark.parametrize(("queries", "marked"), [(1_000_000, False), (999_000, True)])
def test_few_answers_are_marked_only_where_there_are_few(tmp_path: Path, queries: int, marked: bool) -> None:
    """A million queries have ten beyond the last percentile drawn, 0.001 %."""
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=[KNOT], repeats=1, seconds=1)))
    write_hlog(run.trials[0].directory / "latency.hlog", [{"due": {1_000_000: queries}}])
    trials, last = Run.open(run.directory).trials, slowest.LEAST_PERCENT
    assert bool(slowest._few(trials, alt.X("percent:Q"), alt.Scale(type="log"), last)) is marked


@pytest.mark.parametrize(
    ("holds", "said"), [([True], True), ([False], False), ([True, False], False), ([True, True, False], True)]
)
def test_a_rate_holds_in_most_of_its_tries(holds: list[bool], said: bool) -> None:
    tries = [Try(rate_qps=10, sent_qps=20 + n, p50_ns=MS, p99_ns=2 * MS, holds=held) for n, held in enumerate(holds)]
    step = by_rate._step(tries, most_ms=1.5)
    middle = 20 + (len(holds) - 1) / 2
    assert (step.rate_qps, step.p50_ms, step.p99_ms, step.holds) == (middle, 1, 1.5, said)


@pytest.mark.parametrize(
    ("shades", "opacities"),
    [(1, [0.16]), (2, [0.16, 1]), (3, [0.16, 0.58, 1]), (6, [0.16, 0.328, 0.496, 0.664, 0.832, 1])],
)
def test_shades_go_from_faint_to_full(shades: int, opacities: list[float]) -> None:
    scale = heat_map._shade(range(shades), "black")["scale"]
    assert scale["range"] == pytest.approx(opacities)
    last = "100,000 or more" if shades == 6 else {1: "1 to 9", 2: "10 to 99", 3: "100 to 999"}[shades]
    assert scale["domain"][-1] == last


@pytest.mark.parametrize(("intervals", "drawn"), [(1, 1), (60, 60), (61, 31), (120, 60), (121, 41)])
def test_up_to_sixty_stretches_are_drawn(intervals: int, drawn: int) -> None:
    found = _latency.stretches([Interval(float(n), 1.0, Histogram.of({1000: 1})) for n in range(intervals)])
    assert len(found) == drawn and found[0].offset_s == 0
    assert sum(stretch.duration_s for stretch in found) == intervals


@pytest.mark.parametrize(
    ("value_ns", "timeout_ms", "shown"),
    [(0, None, 0.001), (999, None, 0.001), (1001, None, 0.001001), (5 * MS, 5.0, 5), (5 * MS + 1, 5.0, 5)],
)
def test_a_latency_is_drawn_between_a_microsecond_and_the_timeout(
    value_ns: int, timeout_ms: float | None, shown: float
) -> None:
    assert _latency.shown_ms(value_ns, timeout_ms) == pytest.approx(shown, rel=1e-12)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1.15, 80.0], [1, 10, 100]),
        ([1.16, 79.9], [2, 5, 10, 20, 50]),
        ([0.5, 0.9], [0.5, 1]),
        ([3.0, 3.1], None),
    ],
)
def test_times_on_an_axis_have_figures(values: list[float], ticks: list[float] | None) -> None:
    title, scale, axis = _latency.milliseconds(values, "latency, ms")
    assert title == "latency, ms (log scale)"
    assert scale["domain"] == pytest.approx([values[0] / 1.15, 1.25 * values[-1]])
    assert axis.to_dict().get("values") == (pytest.approx(ticks) if ticks else None)


CAUSES = [
    (
        ("lateness",),
        "Where the instrument was late",
        "the latency from the due time and the least that the server took",
    ),
    (("buckets",), "Where a tool counts in buckets", "their upper ends and their lower ends"),
    (
        ("buckets", "lateness"),
        "Where a tool counts in buckets, or an instrument was late,",
        "the upper end and the lower one",
    ),
]


@pytest.mark.parametrize(("causes", "why", "ends"), CAUSES)
def test_a_caption_states_why_there_are_two_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, causes: tuple[str, ...], why: str, ends: str
) -> None:
    late = Run.open(build(tmp_path / "run", LoadPlan(servers=[KNOT], repeats=1, seconds=2, late_us={KNOT: 300})))
    monkeypatch.setattr(wording, "causes_of_ends", lambda run: set(causes))
    assert _latency.why_between(late) == why
    assert _latency.between(late, "it is drawn") == f" {why} the true latency lies between {ends}: it is drawn."
    buckets, instrument = "tool" in wording.both_ends(late), "late" in wording.both_ends(late)
    assert {"buckets": buckets, "lateness": instrument} == {cause: cause in causes for cause in ("buckets", "lateness")}
    assert ("buckets" in wording.why_wide(late), "late" in wording.why_wide(late)) == (buckets, instrument)


def test_the_words_are_as_they_were(loaded: Run, ramped: Run, tmp_path: Path) -> None:
    late = Run.open(build(tmp_path / "late", LoadPlan(repeats=5, seconds=1, late_us={KNOT: 300})))
    for name, run in {"load": loaded, "ramp": ramped, "late": late}.items():
        assert words_as_they_were(f"drawn/{name}", run), name


@pytest.mark.parametrize(
    ("low", "high", "edges", "a_decade"),
    [(1, 9.9, 11, 10), (1, 2500, 35, 10), (1, 2600, 29, 8), (0.0011, 9990, 29, 4), (1e-6, 9.9e6, 40, 3), (5, 5, 2, 10)],
)
def test_a_map_has_as_many_rows_as_fit(low: float, high: float, edges: int, a_decade: int) -> None:
    """At most 36, of 10, 8, 6, 5, 4 or 3 a decade."""
    found = heat_map.edges(low, high)
    assert len(found) == edges and found[1] / found[0] == pytest.approx(10 ** (1 / a_decade))


@pytest.mark.parametrize(
    ("value_ms", "row"), [(0.5, 0), (1.0, 0), (9.99, 0), (10.0, 1), (99.9, 1), (100.0, 1), (1e9, 1)]
)
def test_a_latency_lies_in_the_row_that_begins_with_it(value_ms: float, row: int) -> None:
    assert heat_map._row(value_ms, [1.0, 10.0, 100.0]) == row
