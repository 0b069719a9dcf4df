"""The charts of resolvers, on runs of which every number is known."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from drawn import as_it_was
from load_data import LoadPlan, build

from dnsrig.report import svg
from dnsrig.report.charts import first_and_last_minute, resources
from dnsrig.runs import minutes
from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.runs.run import Run

SECOND = 1_000_000_000


@pytest.fixture
def resolved(tmp_path: Path) -> Run:
    """A resolver that answers half of its queries from its cache in the first second, and all in the second; then it
    has no queries."""
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=["knot@system"], repeats=2, seconds=4)))
    for trial in run.trials:
        assert trial.zero_ns is not None
        spec = trial.record.spec
        spec.hosts[spec.subject].role = "resolver"
        trial.record.instruments["load"] |= {"model": "stream"}
        counted = {"cache_hits": [5, 10, 20, 20], "cache_misses": [0, 5, 5, 5], "validations": [0, 7, 7, 3]}
        rows = [
            {"time_ns": trial.zero_ns + second * SECOND, "counter": name, "value": float(value)}
            for name, values in counted.items()
            for second, value in enumerate(values)
        ]
        pl.DataFrame(rows, schema=dict(STATISTICS.schema)).write_ipc_stream(trial.directory / STATISTICS.name)
        trial.record.files.pop(STATISTICS.name, None)
    return run


def test_counters_are_drawn_by_their_growth(resolved: Run) -> None:
    trial = resolved.trials[0]
    hits = resources.counter_share(trial, "cache_hits", "cache_hits", "cache_misses")
    assert hits["time_s"].to_list() == pytest.approx([1, 2]) and hits["value"].to_list() == pytest.approx([0.5, 1])
    # A counter that fell began anew.
    assert resources.counter_rate(trial, "validations")["value"].to_list() == pytest.approx([7, 0])
    assert (
        resources.counter_rate(trial, "unknown").is_empty()
        and resources.counter_share(trial, "unknown", "cache_hits").is_empty()
    )


@pytest.mark.parametrize(
    ("minute_s", "first", "last"), [(60, "first 2 s", "last 2 s"), (1, "first minute", "last minute")]
)
def test_both_minutes_are_drawn_or_the_halves_of_a_short_replay(
    resolved: Run, monkeypatch: pytest.MonkeyPatch, minute_s: int, first: str, last: str
) -> None:
    monkeypatch.setattr(minutes, "MINUTE_NS", minute_s * SECOND)
    assert first_and_last_minute.applies(resolved)
    (drawing,) = first_and_last_minute.draw(resolved)
    text = svg.render(drawing.chart)
    assert f">{first}<" in text and f">{last}<" in text


def test_a_legend_names_no_variant_that_is_invalid(resolved: Run) -> None:
    other = resolved.manifest.variants[0].model_copy(update={"id": "other", "parameters": {"server": "nsd@system"}})
    resolved.manifest.variants.append(other)
    resolved.manifest.specs["other"] = next(iter(resolved.manifest.specs.values())).model_copy(
        update={"variant": other}
    )
    resolved.manifest.axes["server"].append("nsd@system")
    (drawing,) = first_and_last_minute.draw(resolved)
    text = svg.render(drawing.chart)
    assert "knot@system" in text and "nsd@system" not in text


def test_a_resolver_of_a_world_shows_its_counters(resolved: Run) -> None:
    titles = [resource.title for resource in resources._resources(resolved)]
    assert "Cache hits, % of the queries" not in titles
    for spec in resolved.manifest.specs.values():
        spec.hosts["internet"] = spec.hosts[spec.subject].model_copy(update={"role": "world", "under_test": False})
    titles = [resource.title for resource in resources._resources(resolved)]
    assert {"Cache hits, % of the queries", "Sockets of the resolver in TIME_WAIT"} <= set(titles)


def test_a_server_that_is_no_resolver_has_no_minutes(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=["knot@system"], repeats=1, seconds=2)))
    assert not first_and_last_minute.applies(run)


def test_the_chart_is_as_it_was(resolved: Run) -> None:
    assert as_it_was("drawn/first-and-last-minute", resolved, "first-and-last-minute")


def test_repeats_are_laid_onto_one_grid_of_time() -> None:
    """In steps of a tenth of a second; what lies before the start is left out."""
    first = pl.DataFrame({"time_s": [-0.1, 0.0, 0.05, 0.25], "value": [9.0, 1.0, 3.0, 10.0]})
    second = pl.DataFrame({"time_s": [0.0], "value": [5.0]})
    assert resources._band([first, second]).rows() == [(0.05, 3.5, 2, 5, True), (0.25, 10, 10, 10, False)]
    assert resources._band([first]).rows() == [(0.05, 2, 2, 2, True), (0.25, 10, 10, 10, True)]
    assert resources._band([]).is_empty() and resources._band([first.clear()]).is_empty()


@pytest.mark.parametrize(("seconds", "step_s"), [(15, 0.1), (30, 0.2), (300, 2.0)])
def test_a_long_course_has_150_points(seconds: int, step_s: float) -> None:
    times = [(tenth + 0.5) / 10 for tenth in range(10 * seconds)] + [float(seconds)]
    found = resources._band([pl.DataFrame({"time_s": times, "value": [1.0] * len(times)})])
    assert found.height == 151 and found["time_s"][0] == pytest.approx(step_s / 2)


@pytest.mark.parametrize(
    ("name", "column", "heading"),
    [("all", 0, "CPU"), ("all", 1, ""), ("100 zones", 0, ["CPU", "100 zones"]), ("100 zones", 1, ["", "100 zones"])],
)
def test_the_first_column_names_the_resource(name: str, column: int, heading: str | list[str]) -> None:
    assert resources._heading("CPU", name, column) == heading
