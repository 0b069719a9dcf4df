"""How much counters grew in stretches of a trial, and what that makes of the CPUs of a host."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial_data import SECOND, clean_trial, measured, series, use

from dnsrig.runs import cpu, during
from dnsrig.runs.trial import Trial

COUNTED = [0, 10, 30, 30, 70]
"""Samples of a counter, once a second."""
SERIES = ("secondary", "psi", "io_some_us")
SPAN = (0.0, 4.0)
Stretches = list[tuple[float, float]]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A trial of four seconds. Its secondary has CPU 1, all other hosts have CPU 0."""
    trial = clean_trial(tmp_path / "run")
    measured(trial, 4)
    return trial


def begin(trial: Trial) -> int:
    assert trial.measure is not None
    return trial.measure.start.monotonic_ns


def at(trial: Trial, stretches: Stretches) -> list[tuple[int, int]]:
    """Seconds of the trial as monotonic ns."""
    return [(begin(trial) + round(start * SECOND), begin(trial) + round(end * SECOND)) for start, end in stretches]


def sampled(trial: Trial, **columns: list[int]) -> None:
    """Samples a second, as `series` names them."""
    use(trial, series(begin(trial), observer__cgroup__memory_bytes=[1], **columns))


@pytest.mark.parametrize(
    ("stretches", "grown"),
    [
        ([(0, 4)], [70]),
        ([(1, 2), (2, 3)], [20, 0]),
        ([(0.5, 1.5)], [15]),  # from 5 to 20
        ([(2.25, 3.5)], [20]),
        ([(3.25, 3.75)], [20]),
        ([(0, 0.1)], [1]),
        ([(0, 4.1)], []),
        ([(-0.1, 4)], []),
        ([], []),
    ],
)
def test_growth_in_stretches_is_interpolated(trial: Trial, stretches: Stretches, grown: list[float]) -> None:
    sampled(trial, secondary__psi__io_some_us=COUNTED)
    assert during.growth_in_each(trial, SERIES, at(trial, stretches)) == pytest.approx(grown)
    whole = during.growth_in(trial, SERIES, at(trial, stretches))
    assert whole == (pytest.approx(sum(grown)) if grown else None)


def test_a_single_sample_shows_no_growth(trial: Trial) -> None:
    sampled(trial, secondary__psi__io_some_us=[5])
    assert during.growth_in(trial, SERIES, at(trial, [(0, 0)])) is None
    assert during.finest_ns(trial, SERIES) is None
    sampled(trial, secondary__psi__io_some_us=[5, 7])
    assert during.growth_in(trial, SERIES, at(trial, [(0, 1)])) == 2
    assert during.finest_ns(trial, SERIES) == SECOND


@pytest.mark.parametrize(
    ("stretches", "whole", "grown"),
    [
        # In the second around it 20, less what 0.4 s usually have: 50 in the other three seconds.
        ([(1.2, 1.8)], SPAN, 20 - 0.4 * 50 / 3),
        ([(1.0, 2.0)], SPAN, 20),
        ([(0.5, 1.5)], SPAN, 30 - 1.0 * 40 / 2),
        ([(2.0, 2.5)], SPAN, 0),
        ([(1.2, 1.8), (3.1, 3.2)], SPAN, 60 - 1.3 * 10 / 2),
        ([(1.2, 1.8)], (1.0, 3.0), 20),
        ([(1.2, 1.8)], (0.5, 2.0), 20 - 0.4 * 10),
        ([(1.2, 1.8)], (1.0, 2.0), 20),  # nothing is known of the rest
        ([(4.5, 5.0)], SPAN, None),
        ([], SPAN, None),
    ],
)
def test_growth_around_short_stretches_leaves_out_what_is_usual(
    trial: Trial, stretches: Stretches, whole: tuple[float, float], grown: float | None
) -> None:
    sampled(trial, secondary__psi__io_some_us=COUNTED)
    found = during.growth_around(trial, SERIES, at(trial, stretches), at(trial, [whole])[0])
    assert found == (None if grown is None else pytest.approx(grown))


@pytest.mark.parametrize(
    ("cpus", "waited_ms", "stolen_ms", "percent"),
    [
        ([1], 400, {}, 40),
        ([1], 400, {1: 200}, 60),
        ([1], None, {1: 200}, 20),
        ([1], 900, {1: 200}, 100),
        ([0, 1], 100, {0: 200, 1: 400}, 10 + 30),
        ([0, 1], None, {0: 200, 1: 400}, 30),
        ([0, 1], None, {0: 200}, None),
        ([1], None, {}, None),
        ([1], 0, {1: 0}, 0),
    ],
)
def test_without_a_cpu_are_programs_that_waited_and_cpus_that_were_stolen(
    trial: Trial, cpus: list[int], waited_ms: int | None, stolen_ms: dict[int, int], percent: float | None
) -> None:
    trial.record.spec.hosts["secondary"].cpus = cpus
    columns = {
        f"machine__cpu{number}__steal_us": [0, 0, 1000 * ms, 1000 * ms, 1000 * ms] for number, ms in stolen_ms.items()
    }
    if waited_ms is not None:
        columns["secondary__psi__cpu_full_us"] = [0, 0, 1000 * waited_ms, 1000 * waited_ms, 1000 * waited_ms]
    sampled(trial, **columns)
    found = during.without_cpu_percent(trial, "secondary", at(trial, [(1, 2)]), at(trial, [SPAN])[0])
    assert found == (None if percent is None else pytest.approx(percent))


@pytest.mark.parametrize(
    ("cpus", "used_ms", "waited_ms", "percent"),
    [([1], 500, 100, 60), ([0, 1], 500, 100, 35), ([1], 500, None, 50), ([1], None, 100, None), ([1], 0, 0, 0)],
)
def test_work_is_what_was_used_and_waited_for(
    trial: Trial, cpus: list[int], used_ms: int | None, waited_ms: int | None, percent: float | None
) -> None:
    trial.record.spec.hosts["secondary"].cpus = cpus
    given = {"secondary__cgroup__cpu_usage_us": used_ms, "secondary__psi__cpu_some_us": waited_ms}
    sampled(trial, **{name: [0, 0, 1000 * ms, 1000 * ms] for name, ms in given.items() if ms is not None})
    found = during.work_percent(trial, "secondary", at(trial, [(1, 2)]))
    assert found == (None if percent is None else pytest.approx(percent))
    assert during.work_percent(trial, "secondary", at(trial, [(1, 2), (2, 3)])) == (
        None if percent is None else pytest.approx(percent / 2)
    )


def test_what_stretches_leave_of_the_whole() -> None:
    assert during.outside([(2, 4), (4, 6), (8, 10)], (0, 10)) == [(0, 2), (6, 8)]
    assert during.outside([], (0, 10)) == [(0, 10)]
    assert during.outside([(0, 10)], (0, 10)) == []


SECONDARY = {
    "secondary__cgroup__cpu_usage_us": [0, 250_000, 500_000, 750_000, 1_000_000],
    "machine__cpu1__idle_us": [0, 500_000, 1_000_000, 1_500_000, 2_000_000],
    "machine__cpu1__iowait_us": [0, 0, 0, 0, 500_000],
    "machine__cpu1__steal_us": [0, 200_000, 200_000, 200_000, 200_000],
}
"""In four seconds of a CPU: one used, two and a half idle, 0.2 stolen; 0.3 are left to others."""


def test_shares_of_a_cpu(trial: Trial) -> None:
    sampled(trial, **SECONDARY)
    assert cpu.shares_of(trial, "secondary") == pytest.approx((4.0, 0.2 / 4, 0.3 / 4))
    assert cpu.busy_share(trial, "secondary") == pytest.approx(1 / 4)
    assert cpu.steal_series(trial, "secondary") == ("machine/cpu1/steal_us",)


def test_shares_of_two_cpus(trial: Trial) -> None:
    trial.record.spec.hosts["secondary"].cpus = [1, 2]
    zero = {f"machine__cpu2__{name}_us": [0] * 5 for name in ("iowait", "steal")}
    sampled(trial, **SECONDARY, machine__cpu2__idle_us=[0, 0, 0, 0, 4_000_000], **zero)
    assert cpu.shares_of(trial, "secondary") == pytest.approx((4.0, 0.2 / 8, 0.3 / 8))
    assert cpu.busy_share(trial, "secondary") == pytest.approx(1 / 8)


@pytest.mark.parametrize(
    ("cpus", "machine", "others"),
    [([0], None, 0.3), ([0, 1], None, 0.2), ([1], None, 0.2), ([1], "rack-1", 0.3)],
)
def test_hosts_on_the_same_cpus_are_no_other_programs(
    trial: Trial, cpus: list[int], machine: str | None, others: float
) -> None:
    primary = trial.record.spec.hosts["primary"]
    primary.cpus, primary.machine = cpus, machine
    sampled(trial, **SECONDARY, primary__cgroup__cpu_usage_us=[0, 0, 0, 0, 100_000])
    shares = cpu.shares_of(trial, "secondary")
    assert shares is not None and shares[2] == pytest.approx(others / 4)


def test_more_use_than_time_leaves_nothing_to_others(trial: Trial) -> None:
    sampled(trial, **{**SECONDARY, "secondary__cgroup__cpu_usage_us": [0, 0, 0, 0, 2_000_000]})
    shares = cpu.shares_of(trial, "secondary")
    assert shares is not None and shares[2] == 0


@pytest.mark.parametrize("name", ["idle", "iowait", "steal"])
def test_without_a_counter_of_a_cpu_nothing_is_known_of_it(trial: Trial, name: str) -> None:
    sampled(trial, **{column: values for column, values in SECONDARY.items() if name not in column})
    assert cpu.shares_of(trial, "secondary") is None
    assert cpu.busy_share(trial, "secondary") == pytest.approx(1 / 4)


@pytest.mark.parametrize(("samples", "known"), [(1, False), (2, True)])
def test_two_samples_are_enough_for_a_share(trial: Trial, samples: int, known: bool) -> None:
    sampled(trial, **{column: values[:samples] for column, values in SECONDARY.items()})
    assert cpu.busy_share(trial, "secondary") == (pytest.approx(1 / 4) if known else None)
    assert cpu.shares_of(trial, "secondary") == (pytest.approx((1.0, 0.2, 0.05)) if known else None)
