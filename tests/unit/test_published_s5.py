"""S5's figures beside those of a run: the direction of what validation adds, only where it can be told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import synthetic
from trial_data import clean_trial

from dnsrig.comparison.published import Measured, held_against, s5
from dnsrig.rundir import StreamSpec
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import Spread

MEMORY, CPU, UDP = "last_minute_memory_bytes", "last_minute_cpu_percent", "last_minute_udp_sockets"


def held(
    directory: Path, added: list[float], qps: float = 9_000, experiment: str = "dnssec-validation"
) -> dict[str, Measured]:
    """Of a resolver whose CPU and UDP sockets rise by ``added``, repeat by repeat, and its memory by a tenth."""
    plan = synthetic.Plan(
        servers=["bind@forky"],
        zones=[100],
        extra_axes={"level": ["no-do", "do-unvalidated", "validating"]},
        repeats=len(added),
    )
    synthetic.build(directory, plan)
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"experiment": experiment}))
    run = Run.open(directory)
    for spec in run.manifest.specs.values():
        spec.stream = StreamSpec(kind="population", key="s", parameters={"qps": qps})
        spec.experiment = experiment
    for trial in run.trials:
        level, repeat = trial.record.spec.variant.parameters["level"], trial.record.spec.repeat
        more = added[repeat - 1] if level == "validating" else 0.0
        trial.record.spec.experiment = experiment
        # At half of what it holds a resolver that validates has half of the other's rate.
        rates = {"answered_qps": 2_000.0 if level == "validating" else 4_000.0, "last_minute_p99_ms": 1 + more}
        values = {CPU: 20 + repeat + more, UDP: 30 + repeat + more, MEMORY: 110.0 if level == "validating" else 100.0}
        # Without DO is another level than the source's.
        synthetic.known(
            trial,
            first_minute_hits_percent=91.0,
            **rates,
            **(values if level != "no-do" else dict.fromkeys(values, 0.0)),
        )
        trial.record.outcome = "done"
    return {one.figure.metric: one for one in held_against(run)}


def test_a_difference_is_that_of_each_repeat(tmp_path: Path) -> None:
    found = held(tmp_path, [2.0, 3.0, 4.0, 5.0, 6.0])
    cpu, memory = found["cpu_increase"].values, found["memory_increase"].values
    assert isinstance(cpu, Spread) and (cpu.n, cpu.median, cpu.low, cpu.high) == (5, 4.0, 2.0, 6.0)
    assert isinstance(memory, Spread) and round(memory.median, 6) == 10
    assert not found["cpu_increase"].comparable
    assert found["cpu_increase"].differs[0] == "The direction is the same: 2..6, without zero."
    # The source saw none of these.
    assert found["udp_inuse_increase"].differs[0] == "The source saw no difference: 2..6, without zero."
    assert found["cache_hits_first_minute"].comparable


def test_what_may_be_zero_is_undecided(tmp_path: Path) -> None:
    found = held(tmp_path, [2.0, 3.0, -4.0, 5.0, 6.0])
    assert found["cpu_increase"].differs[0].startswith("Undecided: -4..6 has zero in it")


def test_another_direction_is_said(tmp_path: Path) -> None:
    assert "another" in held(tmp_path, [-2.0, -3.0, -4.0, -5.0, -6.0])["cpu_increase"].differs[0]


def test_few_repeats_decide_nothing(tmp_path: Path) -> None:
    assert held(tmp_path, [2.0, 3.0])["cpu_increase"].differs[0] == "Undecided: 5 repeats are needed."


def test_another_rate_is_told_and_not_compared(tmp_path: Path) -> None:
    found = held(tmp_path, [1.0] * 5, qps=500)
    assert not found["cache_hits_first_minute"].comparable
    assert any("500 queries a second here" in sentence for sentence in found["cpu_increase"].differs)


def test_at_half_of_the_capacity_both_levels_are_held_against_each_other_at_one_rate(tmp_path: Path) -> None:
    found = held(tmp_path, [0.0] * 5, experiment="dnssec-heavy")
    cpu = found["cpu_increase"].values
    # 21 to 25 % of a core at 2,000 queries a second, and the same at 4,000.
    assert isinstance(cpu, Spread) and (cpu.low, cpu.high) == (21 / 2 - 21 / 4, 25 / 2 - 25 / 4)
    assert found["cpu_increase"].differs[0].startswith("The direction is the same")
    assert any("half of what each level holds" in sentence for sentence in found["cpu_increase"].differs)
    assert "memory_increase" not in found and "udp_inuse_increase" not in found
    slower = held(tmp_path / "slower", [2.0, 3.0, 4.0, 5.0, 6.0], experiment="dnssec-heavy")["latency_increase"].values
    assert isinstance(slower, Spread) and slower.median == 4.0


@pytest.mark.parametrize(
    ("values", "published", "said"),
    [
        ([0.5, 0.6, 0.7, 0.8, 0.9], 2.0, "The direction is the same: 0.5..0.9, without zero."),
        ([0.5, 0.6, 0.7, 0.8, 0.9], -2.0, "The direction is another: 0.5..0.9, without zero."),
        ([-0.9, -0.8, -0.7, -0.6, -0.5], -2.0, "The direction is the same: -0.9..-0.5, without zero."),
        ([-0.9, -0.8, -0.7, -0.6, -0.5], 2.0, "The direction is another: -0.9..-0.5, without zero."),
        ([0.5, 0.6, 0.7, 0.8, 0.9], 0.0, "The source saw no difference: 0.5..0.9, without zero."),
        ([0.0, 0.6, 0.7, 0.8, 0.9], 2.0, "Undecided: 0..0.9 has zero in it."),
        ([-0.9, -0.8, -0.7, -0.6, 0.0], 2.0, "Undecided: -0.9..0 has zero in it."),
        ([0.5, 0.6, 0.7, 0.8], 2.0, "Undecided: 5 repeats are needed."),
    ],
)
def test_a_direction_is_told_where_the_interval_excludes_zero(values: list[float], published: float, said: str) -> None:
    assert s5.direction(values, published) == said


@pytest.mark.parametrize(
    ("kind", "qps", "experiment", "said"),
    [
        ("bind", 9_000, "dnssec-validation", []),
        ("knot", 9_000, "dnssec-validation", ["BIND in the source."]),
        ("bind", 500, "dnssec-validation", ["500 queries a second here, 9,000 in the source."]),
        ("knot", 500, "x", ["500 queries a second here, 9,000 in the source.", "BIND in the source."]),
        ("bind", 9_000, "dnssec-heavy", ["At half of what each level holds here"]),
    ],
)
def test_what_differs_from_the_source_is_said(
    tmp_path: Path, kind: str, qps: int, experiment: str, said: list[str]
) -> None:
    spec = clean_trial(tmp_path / "run", synthetic.Plan(servers=[f"{kind}@forky"])).record.spec
    spec.stream, spec.experiment = StreamSpec(kind="population", key="s", parameters={"qps": qps}), experiment
    _, *found = s5._differs(spec)
    assert [text.partition(",")[0] if experiment == s5.HEAVY else text for text in found] == said
    assert s5._same_rate(spec) == (qps == 9_000 and experiment != s5.HEAVY)
    spec.stream = None
    assert not s5._same_rate(spec)
