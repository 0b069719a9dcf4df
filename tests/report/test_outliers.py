"""Which repeats lie apart, and which trap is said to know why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from drawn import as_it_was
from synthetic import Plan, build

from dnsrig.report.charts import _look, repeats
from dnsrig.report.charts import outliers as over_time
from dnsrig.report.draw import draw_all
from dnsrig.report.outliers import outliers, timed
from dnsrig.rundir import Finding, Outcome
from dnsrig.runs.run import Run
from dnsrig.stats import statistics

BIND = "bind@system"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of seven repeats the third takes three times as long."""
    plan = Plan(servers=[BIND], zones=[100], repeats=7, baseline={}, slow={(BIND, 100, 3): 3.0})
    return Run.open(build(tmp_path_factory.mktemp("runs") / "run", plan))


def found(trap: str, *in_repeats: int) -> list[Finding]:
    return [Finding(trap=trap, verdict="found", variant="v00", repeat=repeat, summary=trap) for repeat in in_repeats]


def test_the_slow_repeat_is_the_outlier_and_has_a_typical_fellow(one: Run) -> None:
    (outlier,) = outliers(one, [])
    assert outlier.repeat == 3
    assert outlier.typical.record.spec.repeat != 3
    assert outlier.apart_percent == pytest.approx(200, abs=20)
    assert outlier.cause == "no trap knows why"


def test_only_a_trap_that_sets_it_apart_is_its_cause(one: Run) -> None:
    findings = [
        *found("cold-page-cache", 3),
        *found("ports-exhausted", 1, 2, 3, 4, 5, 6, 7),
        *found("idle-wait", 1, 2, 3, 4),
        *found("clock-steps", 5),
        Finding(trap="too-few-repeats", verdict="found", variant="v00", summary="of the variant, not of a repeat"),
        Finding(trap="cpu-contention", verdict="cannot-tell", variant="v00", repeat=3, summary="no data"),
        Finding(trap="udp-buffer-drops", verdict="found", variant="another", repeat=3, summary="elsewhere"),
    ]
    (outlier,) = outliers(one, findings)
    assert outlier.traps == ("cold-page-cache", "idle-wait")
    assert outlier.cause == "cold-page-cache, idle-wait"


def test_what_all_others_have_sets_it_apart_too(one: Run) -> None:
    (outlier,) = outliers(one, [*found("idle-wait", 1, 2, 4, 5, 6, 7), *found("clock-steps", 1, 2)])
    assert outlier.traps == ()
    assert outlier.cause == "without idle-wait, which most others have"


def test_repeats_that_did_not_finish_are_no_fellows(tmp_path: Path) -> None:
    """Of the four others that are done all have it; counted with those at their limit, half of them would not."""
    outcomes: dict[tuple[str, int, int], Outcome] = {(BIND, 100, repeat): "timeout" for repeat in range(6, 11)}
    plan = Plan(servers=[BIND], zones=[100], repeats=10, baseline={}, slow={(BIND, 100, 3): 3.0}, outcomes=outcomes)
    (outlier,) = outliers(Run.open(build(tmp_path / "run", plan)), found("idle-wait", 1, 2, 4, 5))
    assert outlier.lacks == ("idle-wait",)
    (outlier,) = outliers(Run.open(tmp_path / "run"), found("idle-wait", 3, 6, 7, 8, 9, 10))
    assert outlier.traps == ("idle-wait",)


def test_a_trifle_is_no_outlier(tmp_path: Path) -> None:
    run = Run.open(
        build(tmp_path / "run", Plan(servers=[BIND], zones=[1], repeats=7, baseline={}, slow={(BIND, 1, 3): 1.04}))
    )
    assert statistics.outlying([time_s for time_s, _ in timed(run, "v00")]) != []
    assert outliers(run, []) == []


@pytest.mark.parametrize("n", [1, 4])
def test_few_repeats_have_no_outlier_and_no_box(tmp_path: Path, n: int) -> None:
    plan = Plan(servers=[BIND], zones=[100], repeats=n, baseline={}, slow={(BIND, 100, 1): 9.0})
    run = Run.open(build(tmp_path / "run", plan))
    assert outliers(run, []) == []
    assert not repeats.applies(run)
    assert not over_time.applies(run)


def test_the_cause_is_written_into_the_drawings(one: Run) -> None:
    drawn = {rendered.name: rendered for rendered in draw_all(one, found("cold-page-cache", 3))}
    assert "repeat 3 (+2" in drawn["repeats-all"].svg
    assert "cold-page-cache" in drawn["repeats-all"].svg
    beside = drawn["outliers-v00-03"]
    assert beside.drawing.title.endswith(": cold-page-cache")
    assert "waited for reads and writes" in beside.svg
    assert "repeat 3, the outlier" in beside.svg


def test_a_run_without_samples_still_has_its_boxes(tmp_path: Path) -> None:
    plan = Plan(servers=[BIND], zones=[100], repeats=7, baseline={}, samples=False, slow={(BIND, 100, 3): 3.0})
    run = Run.open(build(tmp_path / "run", plan))
    assert repeats.applies(run)
    assert not over_time.applies(run)


def test_each_repeat_is_numbered_once_and_labels_do_not_overlap(one: Run) -> None:
    rows = pl.DataFrame(list(repeats._marks(one, one.manifest.variants)))
    _, scale = _look.measure(rows["value"], "")
    labels = repeats._labels("row", repeats._placed(rows, scale))
    assert sorted(" ".join(str(label["text"]) for label in labels).split()) == list("1234567")
    assert len(labels) == 2, "the outlier, and all others, which are too close for labels of their own"


def test_the_charts_are_as_they_were(one: Run) -> None:
    assert as_it_was("drawn/outliers", one, "repeats", "outliers", findings=found("cold-page-cache", 3))


def test_numbers_of_repeats_share_a_line_where_they_would_touch() -> None:
    """A digit has 6 pixels, and each label as much as one digit beside it: 12 pixels for one number, 24 for two."""

    def labels(*at_px: float) -> list[tuple[object, object]]:
        marks = {"value": [float(px) for px in at_px], "repeat": [str(n + 1) for n in range(len(at_px))]}
        rows = repeats._labels("row", pl.DataFrame(marks | {"at_px": list(map(float, at_px))}))
        return [(row["value"], row["text"]) for row in rows]

    assert labels(10) == [(10, "1")]
    assert labels(10, 22) == [(10, "1"), (22, "2")]
    assert labels(10, 21.9) == [(15.95, "1 2")]
    assert labels(0, 10, 23) == [(5, "1 2"), (23, "3")]
    assert labels(0, 10, 22.5) == [(11.25, "1 2 3")], "the two have no room beside the third"


@pytest.mark.parametrize(
    ("value", "typical", "apart"),
    [
        (1.5, 1.0, "+50 %"),
        (1.0101, 1.0, "+1 %"),
        (1.0099, 1.0, "+1.0 %"),
        (1.004, 1.0, "+0.4 %"),
        (0.5, 1.0, "-50 %"),
        (5, 0, "+0.0 %"),
    ],
)
def test_the_distance_from_the_median_repeat(one: Run, value: float, typical: float, apart: str) -> None:
    (outlier,) = outliers(one, [])
    assert replace(outlier, value=value, typical_value=typical).apart == apart
