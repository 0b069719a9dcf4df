"""The order of variants on several machines: found where it is reversed beyond chance, and no false alarm."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic
import trial_data

from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.traps import Conclusion
from dnsrig.traps.machines_disagree import Pair, least_p, p_of

BIND, KNOT = "bind@system", "knot@system"
MACHINES = ("a", "b")


def run_of(
    directory: Path,
    ratio: Callable[[str, random.Random], float],
    repeats: int = 10,
    machines: tuple[str, ...] = MACHINES,
) -> Run:
    """A run in which Knot takes ``ratio`` of BIND's time, which is different on each machine and drifts."""
    plan = synthetic.Plan(zones=[100], repeats=repeats, samples=False, machines=machines)
    run, noise = Run.open(synthetic.build(directory / "run", plan)), random.Random(3)
    for trial in run.trials:
        spec = trial.record.spec
        is_knot = spec.variant.parameters["server"] == KNOT
        time_s = (1 + machines.index(trial.machine) if trial.machine else 1) * 1.1**spec.repeat
        synthetic.known(trial, transfer_time_s=time_s * (ratio(trial.machine, noise) if is_knot else 1.0))
    return run


def across(run: Run) -> list[tuple[str | None, Conclusion]]:
    return trial_data.across("machines-disagree", run)


def reversed_order(machine: str, noise: random.Random) -> float:
    return {"a": 0.9, "b": 1.2}[machine] * noise.uniform(0.98, 1.02)


def test_an_order_that_is_reversed_is_found(tmp_path: Path) -> None:
    run = run_of(tmp_path, reversed_order)
    ((variant, found),) = across(run)
    assert (variant, found.verdict) == (run.manifest.variants[1].id, "found")
    assert (found.evidence["lowest_on"], found.evidence["highest_on"]) == MACHINES
    assert found.evidence["lowest_percent"] == pytest.approx(90, abs=1)
    assert found.evidence["highest_percent"] == pytest.approx(120, abs=1)
    assert found.evidence["p"] == round(2 / math.comb(10, 5), 4), "no other way to deal out rounds reverses it as much"
    assert f"server={KNOT} zones=100 is at" in found.summary and "(5 rounds)" in found.summary


def test_one_of_three_machines_is_found_with_drawn_ways(tmp_path: Path) -> None:
    def ratio(machine: str, noise: random.Random) -> float:
        return (1.15 if machine == "c" else 0.9) * noise.uniform(0.98, 1.02)

    ((_, found),) = across(run_of(tmp_path, ratio, repeats=12, machines=("a", "b", "c")))
    assert (found.verdict, found.evidence["highest_on"]) == ("found", "c")


@pytest.mark.parametrize("ratios", [{"a": 0.9, "b": 0.9}, {"a": 0.6, "b": 0.9}, {"a": 1.0, "b": 1.0}])
def test_machines_of_different_speed_with_one_order_are_clear(tmp_path: Path, ratios: dict[str, float]) -> None:
    run = run_of(tmp_path, lambda machine, noise: ratios[machine] * noise.uniform(0.95, 1.05))
    assert [(variant, c.verdict) for variant, c in across(run)] == [(None, "clear")]


@pytest.mark.parametrize(("repeats", "machines"), [(6, MACHINES), (5, ("a", "b", "c", "d", "e"))])
def test_too_few_rounds_on_each_machine_cannot_tell(tmp_path: Path, repeats: int, machines: tuple[str, ...]) -> None:
    run = run_of(tmp_path, lambda machine, noise: 0.9 if machine == "a" else 1.2, repeats, machines)
    ((variant, found),) = across(run)
    assert (variant, found.verdict) == (None, "cannot-tell")
    assert f"{repeats // len(machines)} on a" in found.summary


def test_a_round_without_all_its_figures_does_not_count(tmp_path: Path) -> None:
    run = run_of(tmp_path, reversed_order)
    for trial in run.trials[::4]:
        synthetic.known(trial, transfer_time_s=None)
    ((_, found),) = across(run)
    assert found.verdict == "cannot-tell" and "0 on a, 5 on b" in found.summary


def test_nothing_is_said_of_one_machine(tmp_path: Path) -> None:
    assert across(run_of(tmp_path, lambda machine, noise: 1.1, machines=())) == []
    assert across(run_of(tmp_path / "one", lambda machine, noise: 1.1, machines=("a",))) == []


def test_the_least_p_of_numbers_of_rounds() -> None:
    assert least_p([5, 5]) == 2 / math.comb(10, 5)
    assert least_p([4, 5]) == 1 / math.comb(9, 4)
    assert least_p([1] * 10) == 1


def made(difference: float, noise: random.Random) -> Pair:
    one, other = (Variant(id=name, parameters={}) for name in ("one", "other"))
    return Pair(one, other, {r: difference + noise.gauss(0, 0.1) for r in range(10)})


@pytest.mark.parametrize("difference", [0.0, 0.03, 0.2])
def test_of_machines_that_agree_so_many_are_found_as_are_allowed(difference: float) -> None:
    noise, sets, groups = random.Random(7), 200, (range(5), range(5, 10))
    alarms = sum(p_of([made(difference, noise), made(0.0, noise)], groups) < 0.05 for _ in range(sets))
    assert alarms / sets <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / sets)
