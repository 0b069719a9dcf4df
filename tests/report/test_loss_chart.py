"""The loss of each transport beside UDP: its figures and its chart."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from drawn import as_it_was
from load_data import LoadPlan, build

from dnsrig.comparison.loss import losses
from dnsrig.report.charts import loss_to_udp
from dnsrig.runs.run import Run

BIND, ECHO = "bind@system", "echo@engine"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two servers, of which DoT costs a quarter of the first one's capacity, and three quarters of the second one's."""
    axes = {"transport": ["udp", "dot"]}
    found = Run.open(build(tmp_path / "run", LoadPlan(servers=[BIND, ECHO], ramp=True, repeats=6, extra_axes=axes)))
    found.manifest.baseline = {"transport": "udp"}
    for trial in found.trials:
        parameters = trial.record.spec.variant.parameters
        of_dot = 0.75 if parameters["server"] == BIND else 0.25
        share = of_dot if parameters["transport"] == "dot" else 1.0
        trial.record.instruments["load"]["capacity_qps"] = share * (10_000 + trial.record.spec.repeat)
    return found


def test_a_loss_is_what_is_missing_beside_udp(run: Run) -> None:
    found = list(losses(run))
    assert [each.variant.parameters["transport"] for each in found] == ["dot", "dot"]
    assert [round(each.percent) for each in found] == [25, 75]
    assert all(each.low <= each.percent <= each.high for each in found)


def test_the_chart_has_a_bar_for_each(run: Run) -> None:
    assert loss_to_udp.applies(run)
    drawing, *more = loss_to_udp.draw(run)
    text = str(drawing.chart.to_dict(validate=False))
    assert not more and "25 %" in text and "75 %" in text


def test_a_loss_to_a_capacity_that_was_not_reached_is_a_bound(run: Run) -> None:
    for trial in run.trials:
        parameters = trial.record.spec.variant.parameters
        if (parameters["server"], parameters["transport"]) == (BIND, "udp"):
            trial.record.instruments["load"]["capacity_is_lower_bound"] = True
    assert [each.text for each in losses(run)] == ["≥ 25", "75"]
    assert "≥ 25 %" in str(loss_to_udp.draw(run)[0].chart.to_dict(validate=False))


@pytest.mark.parametrize("low", [-300.0, -math.inf])
def test_no_interval_is_drawn_over_the_names(run: Run, monkeypatch: pytest.MonkeyPatch, low: float) -> None:
    first, second = losses(run)
    monkeypatch.setattr(loss_to_udp, "losses", lambda run: [replace(first, low=-80.0), replace(second, low=low)])
    drawn = loss_to_udp.draw(run)[0].chart.to_dict(validate=False)
    [rows] = drawn["datasets"].values()
    lows = [row["low"] for row in rows]
    assert lows == [-80.0, max(low, -300.0) if math.isfinite(low) else -80.0]
    assert f"'domain': [{min(lows)}" in str(drawn)


def test_without_udp_as_the_baseline_there_is_no_loss(run: Run) -> None:
    run.manifest.baseline = {"transport": "dot"}
    assert not loss_to_udp.applies(run)


def test_the_chart_is_as_it_was(run: Run) -> None:
    assert as_it_was("drawn/loss-to-udp", run, "loss-to-udp")
