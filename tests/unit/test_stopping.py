"""A run without a fixed number of repeats ends as soon as its intervals are narrow, and only then."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import synthetic
from test_runner import Silent, pretend

from dnsrig.cli import _options
from dnsrig.errors import UsageError
from dnsrig.experiment import runner, sequential
from dnsrig.rundir import Manifest, Until, read_json, write_json
from dnsrig.runs.run import Run
from dnsrig.stats import stopping
from dnsrig.stats.statistics import Interval

NARROW, WIDE = Interval(98, 102, 0.95), Interval(80, 120, 0.95)


@pytest.mark.parametrize(
    ("repeats", "intervals", "expected"),
    [
        (5, [NARROW], True),
        (4, [NARROW], False),
        (5, [NARROW, WIDE], False),
        (5, [NARROW, None], False),
        (5, [Interval(98, math.inf, 0.95)], False),
        (5, [Interval(0, 1, 0.95)], False),
        (29, [WIDE], False),
        (30, [WIDE], True),
        (30, [None], True),
        (5, [], True),
    ],
)
def test_a_run_is_complete_when_every_interval_is_narrow(
    repeats: int, intervals: list[Interval | None], expected: bool
) -> None:
    assert stopping.enough(repeats, intervals, percent=5, least=5, most=30) is expected


def test_a_difference_alone_does_not_end_a_run() -> None:
    """If it did, chance would end it sooner or later."""
    different = Interval(150, 200, 0.95)
    assert not stopping.enough(10, [different], percent=5, least=5, most=30)


@pytest.mark.parametrize(("percent", "most", "repeats"), [(1e4, 9, 5), (1e-9, 7, 7)])
def test_rounds_are_added_until_the_rule_is_satisfied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, percent: float, most: int, repeats: int
) -> None:
    directory = synthetic.build(tmp_path / "run", synthetic.Plan(repeats=5))
    manifest = read_json(directory / "manifest.json", Manifest)
    manifest = manifest.model_copy(update={"until": Until(percent=percent, least=5, most=most)})
    write_json(directory / "manifest.json", manifest)
    pretend(monkeypatch, tmp_path)

    failed = sequential.execute_until_narrow(
        manifest, directory, lambda more: runner.execute(more, directory, Silent()), lambda: pytest.fail("no limit")
    )

    assert failed == 0
    assert read_json(directory / "manifest.json", Manifest).repeats == repeats
    trials = Run.open(directory).trials
    assert len(trials) == repeats * len(manifest.variants)


@pytest.mark.parametrize(("within_s", "repeats"), [(0.0, 5), (59.9, 5), (60.0, 6), (75.0, 7), (1e6, 9)])
def test_no_round_is_added_that_would_end_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within_s: float, repeats: int
) -> None:
    directory = synthetic.build(tmp_path / "run", synthetic.Plan(repeats=5))
    manifest = read_json(directory / "manifest.json", Manifest)
    until = Until(percent=1e-9, least=5, most=9, within_s=within_s)
    manifest = manifest.model_copy(update={"until": until})
    write_json(directory / "manifest.json", manifest)
    pretend(monkeypatch, tmp_path)
    clock, told = [0.0], []
    monkeypatch.setattr(sequential.time, "monotonic", lambda: clock[0])

    def execute(more: Manifest) -> int:
        clock[0] += 10.0 * (5 if clock[0] == 0 else 1)
        return runner.execute(more, directory, Silent())

    assert sequential.execute_until_narrow(manifest, directory, execute, lambda: told.append("over")) == 0
    assert read_json(directory / "manifest.json", Manifest).repeats == repeats
    assert told == ["over"] * (repeats < until.most)


def test_no_round_follows_a_failure(tmp_path: Path) -> None:
    directory = synthetic.build(tmp_path / "run")
    manifest = read_json(directory / "manifest.json", Manifest)
    manifest = manifest.model_copy(update={"until": Until(percent=1, least=5, most=30)})
    assert sequential.execute_until_narrow(manifest, directory, lambda _: 2, lambda: None) == 2
    assert read_json(directory / "manifest.json", Manifest).repeats == 3


def test_variants_that_reach_their_limit_do_not_prolong_a_run(tmp_path: Path) -> None:
    limited = {("knot@system", zones, repeat): "timeout" for zones in (100, 1000) for repeat in range(1, 7)}
    directory = synthetic.build(tmp_path / "run", synthetic.Plan(repeats=6, outcomes=limited))  # type: ignore[arg-type]
    assert sequential.intervals(Run.open(directory)) == []


@pytest.mark.parametrize(
    ("within", "repeats", "most", "expected"),
    [
        ("", None, 30, None),
        ("5%", None, 30, Until(percent=5, least=5, most=30)),
        ("2.5 %", 8, 12, Until(percent=2.5, least=8, most=12)),
    ],
)
def test_the_options_of_a_run_make_its_rule(
    within: str, repeats: int | None, most: int, expected: Until | None
) -> None:
    assert _options.until(within, repeats, most) == expected


def test_a_time_without_a_precision_is_refused() -> None:
    assert _options.until("5%", None, 30, "2m") == Until(percent=5, least=5, most=30, within_s=120)
    with pytest.raises(UsageError, match="no meaning without --precision"):
        _options.until("", None, 30, "2m")


@pytest.mark.parametrize(
    ("within", "repeats", "most", "message"),
    [
        ("narrow", None, 30, "not a percentage"),
        ("0%", None, 30, "not a percentage"),
        ("nan%", None, 30, "not a percentage"),
        ("5%", 3, 30, "at least 3"),
        ("5%", 10, 8, "at most 8"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused(within: str, repeats: int | None, most: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _options.until(within, repeats, most)
