"""The charts of congestion control, on runs of which every number is known."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import synthetic
from drawn import as_it_was
from html_facts import read
from socket_data import bulk

from dnsrig.comparison.published import held_against, s4
from dnsrig.report import svg
from dnsrig.report.charts import _over_time, all_charts, metric_by_axis, time_series
from dnsrig.report.charts._by_axis import MEASURED
from dnsrig.rundir import Outcome, PathSpec
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

(CONGESTION,) = (chart for chart in metric_by_axis.CHARTS if chart.id == "congestion")
(SENDERS,) = (chart for chart in time_series.CHARTS if chart.id == "sender-over-time")
RATES = {"cubic": 17.0, "illinois": 21.0, "hybla": 140.0, "bbr": 1728.0}


@pytest.fixture
def far(tmp_path: Path) -> Run:
    """Four algorithms × three repeats over S4's link; each repeat a tenth faster than the one before."""
    plan = synthetic.Plan(servers=["zones@engine"], zones=[1], extra_axes={"congestion": list(RATES)}, baseline={})
    run = Run.open(synthetic.build(tmp_path / "run", plan))
    run.manifest.experiment, run.manifest.procedure = "congestion-control", "bulk"
    for trial in run.trials:
        algorithm, repeat = str(trial.record.spec.variant.parameters["congestion"]), trial.record.spec.repeat
        bulk(trial, kb_per_s=RATES[algorithm] * (1 + repeat / 10), congestion=algorithm, cwnd=int(RATES[algorithm]))
        run.manifest.specs[trial.record.spec.variant.id] = trial.record.spec
    return run


def of(run: Run, algorithm: str) -> list[Trial]:
    return [t for t in run.trials if t.record.spec.variant.parameters["congestion"] == algorithm]


def test_each_applies_only_where_there_is_something_to_draw(far: Run, run: Run) -> None:
    charts = [next(chart for chart in all_charts() if chart.id == id_) for id_ in ("congestion", "sender-over-time")]
    assert [chart.applies(far) for chart in charts] == [True, True]
    assert not any(chart.applies(run) for chart in charts)


def test_measured_stands_beside_published(far: Run) -> None:
    (drawing,) = CONGESTION.draw(far, [])
    text = read(svg.render(drawing.chart)).text
    for word in (*RATES, MEASURED, "published: S4", "kB/s (log scale)"):
        assert word in text
    marks = CONGESTION.marks(far)
    assert marks.height == 12 and set(marks["outcome"]) == {"done"}
    published = CONGESTION.beside(CONGESTION, far, marks)
    assert {(figure.place, figure.value, figure.low, figure.high) for figure in published} == {
        ("cubic", 10, None, None),
        ("illinois", None, 15, 20),
        ("hybla", None, 60, 80),
    }, "bbr was not published"
    assert "S4" in CONGESTION.caption(far)


def test_nothing_published_stands_beside_another_path(far: Run) -> None:
    for spec in far.manifest.specs.values():
        path = spec.links[0].forward
        assert path is not None
        path.loss_percent = 1
    assert CONGESTION.beside(CONGESTION, far, CONGESTION.marks(far)) == []
    assert "published: S4" not in read(svg.render(CONGESTION.draw(far, [])[0].chart)).text
    assert "S4" not in CONGESTION.caption(far)


@pytest.mark.parametrize(("outcome", "marks"), [("invalid", 12), ("server-failed", 9)])
def test_what_did_not_count_is_told_apart_or_not_there(far: Run, outcome: Outcome, marks: int) -> None:
    for trial in of(far, "cubic"):
        trial.record.outcome = outcome
    assert CONGESTION.marks(far).height == marks
    assert "NaN" not in " ".join(read(svg.render(CONGESTION.draw(far, [])[0].chart)).values("d"))


def test_what_is_invalid_is_in_no_bar(far: Run) -> None:
    slowest, *counted = sorted(of(far, "cubic"), key=lambda trial: trial.metrics["throughput_kbytes_per_s"] or 0)
    slowest.record.outcome = "invalid"
    rates = [trial.metrics["throughput_kbytes_per_s"] for trial in counted]
    drawn = CONGESTION.draw(far, [])[0].chart.to_dict()["datasets"].values()
    (bar,) = [
        row for rows in drawn for row in rows if row["place"] == "cubic" and row.get("low") and "panel" not in row
    ]
    assert [bar["low"], bar["high"]] == rates


def test_a_line_a_variant_of_its_median_repeat(far: Run) -> None:
    (trial,) = [t for t in of(far, "hybla") if t.record.spec.repeat == 2]
    rows = time_series.sender(trial)
    assert rows["acked_kb_per_s"].drop_nulls().is_between(150, 190).all(), "140 and a fifth"
    assert rows["cwnd"].is_between(139, 141).all()
    assert math.isclose(rows["retransmitted_percent"][-1], 10, rel_tol=0.02)
    assert rows["time_s"][0] == 0
    (picture,) = time_series.senders(far, [])
    assert picture.lines == list(RATES)
    drawn = picture.panels[0].rows.filter(line="hybla")["value"]
    assert drawn.equals(rows["acked_kb_per_s"]), "the median of three repeats"
    (drawing,) = SENDERS.draw(far, [])
    text = read(svg.render(drawing.chart)).text
    assert all(word in text for word in (*RATES, *time_series.SENDER.values()))


def test_long_courses_are_thinned(far: Run) -> None:
    trial = bulk(of(far, "bbr")[0], seconds=120)
    assert time_series.sender(trial).height <= _over_time.MOST_POINTS


def test_a_trial_of_a_moment_has_no_course(far: Run) -> None:
    for trial in far.trials:
        bulk(trial, seconds=0.6)
    assert not SENDERS.applies(far)


def test_s4_is_held_against_the_same_algorithm(far: Run) -> None:
    found = {measured.figure.variant: measured for measured in held_against(far)}
    assert set(found) == {"cubic", "illinois", "hybla"}
    cubic = found["cubic"]
    assert cubic.comparable and cubic.middle[0] == "median"
    assert cubic.middle[1] == sorted(t.metrics["throughput_kbytes_per_s"] or 0 for t in of(far, "cubic"))[1]
    assert any("the source does not say" in sentence for sentence in cubic.differs)


def test_s4_counts_what_the_chart_counts_and_says_what_failed(far: Run) -> None:
    """A trial at its limit has the rate that it had: without it the slowest would be left out."""
    for algorithm, outcome in (("cubic", "timeout"), ("hybla", "server-failed")):
        for trial in of(far, algorithm):
            trial.record.outcome = outcome  # type: ignore[assignment]
    of(far, "illinois")[0].record.outcome = "server-failed"
    found = {measured.figure.variant: measured for measured in held_against(far)}
    assert {name: measured.values and measured.values.n for name, measured in found.items()} == {
        "cubic": 3,
        "illinois": 2,
        "hybla": None,
    }
    assert [found[name].comparable for name in ("cubic", "illinois", "hybla")] == [True, False, False]
    assert found["hybla"].differs[0].startswith("In 3 of 3 repeats a server failed")


def test_a_path_is_s4s_by_its_round_trip_and_its_loss_on_either_way(far: Run) -> None:
    spec = next(iter(far.manifest.specs.values()))
    link = next(link for link in spec.links if link.forward is not None)
    link.forward, link.reverse = PathSpec(delay_ms=250), PathSpec(delay_ms=50, loss_percent=10)
    assert s4.path(spec) == []
    link.reverse = PathSpec(delay_ms=50, loss_percent=5)
    assert s4.path(spec) == ["Loss 5 % here, about 10 % in the source."]
    link.reverse = PathSpec(delay_ms=250, loss_percent=10)
    assert s4.path(spec) == ["Round trip 500 ms here, about 300 ms in the source."]


def test_s4_is_not_held_against_another_path(far: Run) -> None:
    for spec in far.manifest.specs.values():
        path = spec.links[0].forward
        assert path is not None
        path.delay_ms, path.rate_mbit = 20, 50
    found = held_against(far)
    assert found and not any(measured.comparable for measured in found)
    differs = " ".join(found[0].differs)
    assert "about 300 ms in the source" in differs and "Rate 50 Mbit/s here" in differs


def test_the_charts_are_as_they_were(far: Run) -> None:
    assert as_it_was("drawn/congestion", far, "congestion", "sender-over-time")


def test_a_trial_without_a_flow_has_no_course(run: Run) -> None:
    rows = time_series.sender(run.trials[0])
    assert rows.is_empty() and rows.columns == ["time_s", *time_series.SENDER]
