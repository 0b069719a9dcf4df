"""The fit: known truth is found, intervals cover what they say, and a run's largest size is held against what it has
not seen."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from trial_data import clean_trial

from dnsrig.cli import _scenario
from dnsrig.prediction import fit, held_out
from dnsrig.prediction.fit import Line, Measured
from dnsrig.prediction.scenario import Path as Far
from dnsrig.rundir import LinkSpec, PathSpec, Scalar, TransferSpec
from dnsrig.runs.run import Run

SIZES = (100, 300, 1_000, 3_000)
LARGEST = 10_000


def drawn(
    source: random.Random, sizes: tuple[int, ...], repeats: int, *, start_s: float = 0.3, spread: float = 0.05
) -> list[Measured]:
    """Trials of a server that needs 1 ms a zone, each some percent off."""
    return [
        Measured(size, (start_s + 1e-3 * size) * source.lognormvariate(0, spread))
        for size in sizes
        for _ in range(repeats)
    ]


def test_a_line_without_noise_is_found() -> None:
    found = fit.fit([Measured(size, 0.3 + 2e-3 * size) for size in SIZES])
    assert found is not None
    assert (found.start_s, found.each_s) == (pytest.approx(0.3), pytest.approx(2e-3))


@given(st.floats(0, 10), st.floats(1e-6, 1), st.lists(st.integers(1, 10**6), min_size=2, max_size=8, unique=True))
def test_so_is_any_line(start_s: float, each_s: float, sizes: list[int]) -> None:
    found = fit.fit([Measured(size, start_s + each_s * size) for size in sizes])
    assert found is not None
    for size in sizes:
        assert found.time_s(size) == pytest.approx(start_s + each_s * size, rel=1e-6)


def test_repeats_that_went_wrong_do_not_move_it() -> None:
    trials = [Measured(size, 1e-3 * size) for size in SIZES for _ in range(5)]
    trials[3] = Measured(SIZES[0], 60.0)
    trials[-1] = Measured(SIZES[-1], 63.0)
    found = fit.fit(trials)
    assert found is not None and found.time_s(LARGEST) == pytest.approx(10.0, rel=0.01)


def test_neither_start_nor_slope_is_below_zero() -> None:
    falling = fit.fit([Measured(1, 5.0), Measured(10, 4.0), Measured(100, 3.0)])
    assert falling == Line(4.0, 0.0)
    curved = fit.fit([Measured(10, 0.001), Measured(100, 1.0), Measured(1000, 20.0)])
    assert curved is not None and curved.start_s == 0.0 and curved.each_s > 0


def test_too_few_say_nothing() -> None:
    assert fit.fit([Measured(5, 1.0), Measured(5, 2.0)]) is None
    assert fit.forecast([], 10) is None
    assert fit.forecast([Measured(5, 1.0), Measured(6, 2.0)], 10) is None


def test_the_interval_covers_what_it_says() -> None:
    """100 made-up runs of three repeats: the trial of the largest size lies in its 90 % interval about nine times of
    ten."""
    source = random.Random(11)
    inside = narrow = 0
    for number in range(100):
        found = fit.forecast(drawn(source, SIZES, 3), LARGEST, seed=number)
        assert found is not None
        inside += found.holds(drawn(source, (LARGEST,), 1)[0].time_s)
        narrow += found.is_narrow
    assert 82 <= inside <= 99  # three standard deviations of 90 are 9; the seed is fixed
    assert narrow >= 95, "at 5 % of noise an interval is well within ±30 %"


def test_noise_makes_it_wide_and_it_says_so() -> None:
    found = fit.forecast(drawn(random.Random(3), SIZES, 3, spread=0.4), LARGEST)
    assert found is not None and not found.is_narrow


def test_it_is_the_same_each_time() -> None:
    trials = drawn(random.Random(5), SIZES, 5)
    assert fit.forecast(trials, LARGEST) == fit.forecast(list(reversed(trials)), LARGEST)


def test_many_trials_are_thinned() -> None:
    trials = drawn(random.Random(5), SIZES, 500)
    found = fit.forecast(trials, LARGEST)
    assert found is not None and found.time_s == pytest.approx(10.3, rel=0.05)


def made_up(folder: Path, **more: object) -> Run:
    plan = synthetic.Plan(zones=(100, 300, 1000, 3000), repeats=5, **more)  # type: ignore[arg-type]
    return Run.open(synthetic.build(folder / "run", plan))


def test_a_run_is_held_against_its_largest_size(tmp_path: Path) -> None:
    """The made-up servers take 0.4 s and so much a zone, ± 10 %."""
    found = held_out.rows(made_up(tmp_path))
    assert [row.label for row in found] == ["server=bind@system", "server=knot@system"]
    for row in found:
        assert (len(row.fitted), len(row.unseen), row.unit, row.unseen[0].size) == (15, 5, "zones", 3000)
        assert row.forecast is not None and row.behind_wall
    # 100 ports: with 3,000 zones of a connection each the wall is 29 × 60 s, and the made-up times are not.
    assert found[0].wall_s == 29 * 60
    covered = held_out.coverage(found)
    assert (covered.trials, covered.behind_wall, covered.unfinished) == (0, 10, 0)


def without_wall(run: Run) -> Run:
    for trial in run.trials:
        synthetic.known(trial, connections_opened=10.0)
    return run


@pytest.mark.full
def test_coverage_counts_trials(tmp_path: Path) -> None:
    """Trials of a row share one fit, so that they are out together: it takes several runs to see that about nine of ten
    are in."""
    found = [
        row
        for seed in range(1, 7)
        for row in held_out.rows(without_wall(made_up(tmp_path / str(seed), seed=seed, samples=False)))
    ]
    covered = held_out.coverage(found)
    assert (covered.trials, covered.rows, covered.narrow) == (60, 12, 12)
    assert covered.held == sum(sum(row.held) for row in found)
    assert 45 <= covered.held < 60
    assert sum(row.off == 1.0 for row in found) >= 9


def test_a_largest_size_that_does_not_follow_is_seen(tmp_path: Path) -> None:
    slow = {("bind@system", 3000, repeat): 4.0 for repeat in range(1, 6)}
    bind, knot = held_out.rows(without_wall(made_up(tmp_path, slow=slow)))
    assert bind.held == [False] * 5 and bind.off == pytest.approx(4, rel=0.1)
    assert knot.off == 1.0


def test_trials_that_did_not_finish_say_nothing(tmp_path: Path) -> None:
    outcomes = {("bind@system", 3000, repeat): "timeout" for repeat in range(1, 6)}
    found = held_out.rows(without_wall(made_up(tmp_path, outcomes=outcomes)))
    assert (found[0].unseen[0].size, found[0].unfinished) == (1000, 5)
    assert held_out.coverage(found).unfinished == 5


def test_runs_without_sizes_have_no_rows(tmp_path: Path) -> None:
    assert held_out.rows(Run.open(synthetic.build(tmp_path / "one", synthetic.Plan(zones=(100,))))) == []
    loads = Run.open(synthetic.build(tmp_path / "rates", synthetic.Plan(zones=(100, 1000))))
    for trial in loads.trials:
        trial.record.spec.main_metric = "zones_per_s"
    assert held_out.rows(loads) == []


def far(run: Run, rtt_ms: float, workers: int) -> Run:
    for trial in run.trials:
        trial.record.link_tests[0]["rtt_median_us"] = rtt_ms * 1e3
        trial.record.spec.hosts["secondary"].settings = {"transfers-in": workers, "transfers-per-ns": workers}
    return run


def test_a_run_over_a_far_path_gives_its_round_trips(tmp_path: Path) -> None:
    """The made-up BIND does 500 zones a second: with 100 at a time over 100 ms that is 2 round trips a zone."""
    bind, _ = held_out.rows(far(without_wall(made_up(tmp_path)), 100, 100))
    assert bind.rtt_s == pytest.approx(0.1)
    assert bind.round_trips == pytest.approx(2, rel=0.1)
    near, _ = held_out.rows(far(without_wall(made_up(tmp_path / "near")), 0.03, 100))
    assert near.rtt_s is None and near.round_trips is None


def asked(**changed: object) -> _scenario.Asked:
    nothing = dict.fromkeys(("uplink_bytes_per_s", "bytes_per_record", "window_bytes", "policy", "transport"))
    given = {"path": Far(), "sites": 1, "congestion": "cubic", "workers": None, "connections": None, "settings": {}}
    return _scenario.Asked(**{**nothing, **given, **changed})  # type: ignore[arg-type]


def test_a_far_run_that_missed_its_largest_size_is_no_surer_than_a_near_one(tmp_path: Path) -> None:
    slow = {("bind@system", 3000, repeat): 4.0 for repeat in range(1, 6)}
    bind, knot = held_out.rows(far(without_wall(made_up(tmp_path, slow=slow)), 100, 100))
    missed, notes = _scenario.of_row(asked(), bind, 10_000, None)
    assert missed.measured_round_trips == bind.round_trips
    assert missed.round_trips_factor == pytest.approx(4, rel=0.1) and any(
        "something else decides" in note for note in notes
    )
    assert _scenario.of_row(asked(), knot, 10_000, None)[0].round_trips_factor == pytest.approx(1.3, abs=0.1)


def test_where_a_run_did_not_measure_its_primary_it_says_which_it_was(tmp_path: Path) -> None:
    run = without_wall(made_up(tmp_path))
    kind = "powerdns"
    for trial in run.trials:
        synthetic.known(trial, primary_cpu_s=None)
        spec = trial.record.spec
        server = spec.hosts[spec.primaries[0]].server
        assert server is not None
        spec.hosts[spec.primaries[0]].server = server.model_copy(update={"kind": kind})
    found, notes = _scenario.of_row(asked(sites=10), held_out.rows(run)[0], 3000, None)
    assert (found.primary, found.primary_zone_s) == (kind, None)
    assert not any("taken to be" in note for note in notes)


def test_a_far_run_keeps_its_round_trip_where_another_rate_is_asked_for(tmp_path: Path) -> None:
    bind, _ = held_out.rows(far(without_wall(made_up(tmp_path)), 100, 100))
    found, _ = _scenario.of_row(asked(path=Far(rate_bytes_per_s=1e6)), bind, 10_000, None)
    assert found.path == Far(rtt_s=0.1, rate_bytes_per_s=1e6)
    nearer, _ = _scenario.of_row(asked(path=Far(rtt_s=0.02)), bind, 10_000, None)
    assert nearer.path.rtt_s == 0.02


def test_jitter_that_keeps_order_is_counted(tmp_path: Path) -> None:
    """S3's link: the round trips of a busy path are longer than 250 ms, so that a zone comes to fewer of them."""
    run = far(without_wall(made_up(tmp_path)), 250, 100)
    way = PathSpec(delay_ms=125, jitter_ms=50)
    for trial in run.trials:
        trial.record.spec.links[0] = LinkSpec(ends=("primary", "secondary"), kind="tun", forward=way, reverse=way)
    bind, _ = held_out.rows(run)
    assert bind.rtt_s == pytest.approx(0.25)
    assert bind.round_trips == pytest.approx(100 / 500 / 0.325, rel=0.1)


def test_records_are_the_size_where_zones_do_not_differ(tmp_path: Path) -> None:
    run = made_up(tmp_path)
    specs = (*run.manifest.specs.values(), *(trial.record.spec for trial in run.trials))
    for dataset in {id(spec.dataset): spec.dataset for spec in specs}.values():
        dataset.records, dataset.zones = dataset.zones * 5, 1
    found = held_out.rows(run)
    assert {row.unit for row in found} == {"records"}
    assert found[0].unseen[0].size == 15_000 and found[0].wall_s == 0.0


@pytest.mark.parametrize(
    ("opened", "zones", "more", "wall_s"),
    [
        # The made-up hosts have 100 ports, and a port is free again after a minute.
        (100.0, 100, {}, 0),
        (100.0, 101, {}, 60),
        (100.0, 200, {}, 60),
        (100.0, 201, {}, 120),
        (90.0, 201, {}, 120),
        (89.0, 201, {}, 0),  # fewer than nine connections for ten zones: it reuses them
        (None, 201, {}, 0),
        (100.0, 201, {"source_addresses": ["198.18.0.9"]}, 60),
        (100.0, 201, {"transport": "xoq"}, 0),
        (100.0, 201, {"primaries": 2}, 0),
        (100.0, 201, {"range": "40000 40000"}, 12_000),
        (100.0, 28_233, {"range": ""}, 60),
    ],
)
def test_the_wall_of_ports(
    tmp_path: Path, opened: float | None, zones: int, more: dict[str, Any], wall_s: float
) -> None:
    trial = clean_trial(tmp_path / "run")
    spec = trial.record.spec
    synthetic.known(trial, connections_opened=opened)
    spec.hosts["secondary"].source_addresses = more.get("source_addresses", [])
    spec.transfer = TransferSpec(transport=more.get("transport", "tcp"))
    if more.get("primaries") == 2:
        spec.hosts["primary2"] = spec.hosts["primary"].model_copy()
    if "range" in more:
        trial.record.read_back["hosts"]["secondary"]["sysctls"] = {"net.ipv4.ip_local_port_range": more["range"]}
    assert held_out.wall_s(trial, zones) == wall_s


@pytest.mark.parametrize(
    ("pairs", "tells"),
    [
        ([(1, (10, 40)), (2, (20, 80))], True),
        ([(1, (10, 40)), (2, (10, 80)), (2.5, (11, 80))], True),
        ([(1, (10, 40)), (2, (10, 40))], False),  # another value, and the same size
        ([(1, (20, 80)), (2, (10, 40))], False),  # it shrinks
        ([(1, (10, 40)), (1, (20, 80))], False),
        ([(1, (10, 40)), (1, (20, 80)), (2, (30, 90))], False),  # another size with the same value
        ([("1", (10, 40)), ("2", (20, 80))], False),
        ([(False, (10, 40)), (True, (20, 80))], False),
    ],
)
def test_an_axis_gives_the_size_if_its_numbers_grow_with_it(
    pairs: list[tuple[Scalar, tuple[int, int]]], tells: bool
) -> None:
    assert held_out._tells_size(pairs) is tells


@pytest.mark.parametrize(
    ("low_s", "high_s", "half_width", "narrow"),
    [
        (8.0, 12.0, 0.2, True),
        (9.0, 12.9, 0.29, True),
        (9.0, 13.1, 0.31, False),
        (6.9, 10.0, 0.31, False),
        (7.1, 10.0, 0.29, True),
    ],
)
def test_an_interval_is_as_wide_as_its_larger_half(
    low_s: float, high_s: float, half_width: float, narrow: bool
) -> None:
    found = fit.Forecast(Line(0.0, 1.0), 10, 10.0, low_s, high_s)
    assert found.half_width == pytest.approx(half_width) and found.is_narrow is narrow
    assert [found.holds(time_s) for time_s in (low_s - 0.1, low_s, high_s, high_s + 0.1)] == [False, True, True, False]


def test_residuals_are_of_the_two_largest_sizes() -> None:
    """Twice as long as fitted, as fitted, and twice as long: three of them, so wider by the root of 3 / (3 - 2)."""
    trials = [Measured(1, 9.0), Measured(2, 4.0), Measured(3, 3.0), Measured(3, 6.0)]
    twice = math.log(2) * math.sqrt(3)
    assert fit._residuals(trials, Line(0.0, 1.0)) == pytest.approx([twice, 0, twice])


@pytest.mark.parametrize(("trials", "taken"), [(0, 0), (1, 1), (60, 60), (61, 31), (120, 60), (121, 41)])
def test_at_most_sixty_trials_are_taken_evenly(trials: int, taken: int) -> None:
    assert len(fit._thinned([Measured(size, 1.0) for size in range(trials)])) == taken


@pytest.mark.parametrize(
    ("weighted", "median"), [([(1, 1), (2, 1)], 1), ([(1, 1), (2, 3)], 2), ([(1, 1), (2, 1), (3, 2)], 2), ([(7, 5)], 7)]
)
def test_a_weighted_median_has_half_of_the_weight_below(weighted: list[tuple[float, float]], median: float) -> None:
    assert fit._weighted_median(weighted) == median


def test_a_forecast_is_the_same_in_every_version() -> None:
    """Repeats lie 0.01 s apart. The resamples have a seed."""
    found = fit.forecast([Measured(size, 0.3 + 1e-3 * size + 0.01 * n) for size in SIZES for n in range(3)], LARGEST)
    assert found is not None
    assert (found.line.start_s, found.line.each_s, found.time_s) == pytest.approx((0.31, 0.001, 10.31))
    assert (found.low_s, found.high_s) == pytest.approx((10.160275764397388, 10.46646491048735), rel=1e-9)
