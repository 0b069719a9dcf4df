from __future__ import annotations

from pathlib import Path

import load_data
import polars as pl
import pytest
from drawn import as_it_was
from html_facts import read

from dnsrig.report import svg
from dnsrig.report.charts import _look, stalls
from dnsrig.report.charts._flames import Frame, layout
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

SECOND, MS = 1_000_000_000, 1_000_000
STALLED = {"main;update;isc_ht_find": 60, "main;update;isc_ht_find;memcmp": 30, "main;recv": 10}
OTHERWISE = {"main;recv": 90, "main;send": 10}


def still(trial: Trial, stalled: dict[str, int], *, for_s: int = 10) -> None:
    """From its second to its third second it answers nothing, and 200 samples are taken."""
    start_ns = trial.load.start_ns
    rows = [(start_ns + n * 10 * MS, 50, 0 if 200 <= n < 300 else 50) for n in range(100 * for_s)]
    frame = pl.DataFrame(rows, schema=["time_ns", "sent", "answered"], orient="row")
    times = (pl.when(pl.col("answered") > 0).then(pl.col("time_ns") + ms * MS).otherwise(0) for ms in (1, 9))
    first_ns, last_ns = times
    frame.with_columns(first_ns=first_ns, last_ns=last_ns).write_ipc_stream(trial.directory / "answers.arrow")
    taken = [
        (start_ns + 2_100 * MS + n, stack) for n, stack in enumerate(s for s, c in stalled.items() for _ in range(c))
    ]
    taken += [
        (start_ns + 5_000 * MS + n, stack) for n, stack in enumerate(s for s, c in OTHERWISE.items() for _ in range(c))
    ]
    lines = sorted({*stalled, *OTHERWISE})
    (trial.directory / f"profile-{trial.subject}.folded").write_text("".join(f"{line} 1\n" for line in lines))
    rows_of = {"time_ns": [time for time, _ in taken], "stack": [lines.index(stack) for _, stack in taken]}
    pl.DataFrame(rows_of).write_ipc_stream(trial.directory / f"profile-{trial.subject}.arrow")


@pytest.fixture
def stalling(tmp_path: Path) -> Run:
    directory = load_data.build(tmp_path / "run", load_data.LoadPlan(servers=["bind@system", "knot@system"], repeats=2))
    run = Run.open(directory)
    still(next(t for t in run.trials if t.record.spec.variant.parameters["server"] == "bind@system"), STALLED)
    return Run.open(directory)


def test_only_variants_that_stood_still_are_drawn_with_what_ran(stalling: Run) -> None:
    (drawing,) = stalls.draw(stalling)
    assert (
        "1 stall, 10.0% of the time, the longest 1.00 s; isc_ht_find ran in 60% of the samples then, 0% otherwise"
        in drawing.title
    )
    facts = read(svg.render(drawing.chart))
    assert "isc_ht_find" in facts.text and "60% (60 of 100)" in facts.text
    used = {value for _, name, value in facts.attributes if name in ("fill", "stroke")}
    assert used <= {*_look.NEUTRALS.values(), *_look.COLOURS, "none", "transparent"}


def test_ten_minutes_are_drawn_in_as_few_steps_as_one(stalling: Run) -> None:
    trial = next(t for t in stalling.trials if t.record.spec.variant.parameters["server"] == "bind@system")
    still(trial, STALLED, for_s=600)
    (drawing,) = stalls.draw(Run.open(stalling.directory))
    longest = max(map(len, drawing.chart.to_dict()["datasets"].values()))
    assert stalls.STEPS / 2 < longest <= stalls.STEPS


def test_frames_say_how_wide_they_are_otherwise() -> None:
    frames = {frame.name: frame for frame in layout(STALLED, OTHERWISE)}
    assert frames["main"] == Frame(("main",), 0.0, 100.0, 100.0)
    assert frames["isc_ht_find"] == Frame(("main", "update", "isc_ht_find"), 10.0, 100.0, 0.0)
    assert (frames["recv"].end - frames["recv"].start, frames["recv"].other) == pytest.approx((10, 90))
    assert "send" not in frames, "it did not run in the stalls"


def test_a_stall_without_stacks_is_drawn_over_time_only(stalling: Run) -> None:
    for trial in stalling.trials:
        (trial.directory / f"profile-{trial.subject}.arrow").unlink(missing_ok=True)
    (drawing,) = stalls.draw(Run.open(stalling.directory))
    assert "isc_ht_find" not in read(svg.render(drawing.chart)).text


def test_a_run_without_stalls_has_no_such_chart(tmp_path: Path) -> None:
    assert not stalls.applies(Run.open(load_data.build(tmp_path / "run", load_data.LoadPlan(repeats=1))))


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    directory = load_data.build(tmp_path / "run", load_data.LoadPlan(servers=["bind@system"], repeats=1))
    still(Run.open(directory).trials[0], {"main;<script>alert(1)</script>": 100})
    (drawing,) = stalls.draw(Run.open(directory))
    assert "script" not in read(svg.render(drawing.chart)).tags


def test_the_chart_is_as_it_was(stalling: Run) -> None:
    assert as_it_was("drawn/stalls", stalling, "stalls")
