"""What is shown while a run goes on fits the terminal, and into a file each line is one."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
import synthetic
from rich.console import Console

from dnsrig.cli._progress import LiveProgress, PlainProgress, fitted, result_text
from dnsrig.runs.run import Run

LABEL = "powerdns-recursor@forky of a very long name, and one more"


@pytest.mark.parametrize("live", [True, False])
def test_a_line_is_as_long_as_there_is_room(tmp_path: Path, live: bool) -> None:
    plan = synthetic.Plan(servers=["bind@system"], zones=[5], repeats=1, extra_axes={"resolver": [LABEL]})
    (trial,) = Run.open(synthetic.build(tmp_path / "run", plan)).trials
    spec = trial.record.spec
    text = io.StringIO()
    console = Console(file=text, force_terminal=live, width=80, color_system=None)
    if live:
        progress = LiveProgress(console)
        progress.trial_started(1, 1, spec)
        progress.trial_event(spec, {"event": "phase", "phase": "measure"})
        console.print(progress._bars.get_renderable())
        assert all(len(line) <= 80 for line in text.getvalue().splitlines())
        assert "…: measure" in text.getvalue() and "left" in text.getvalue()
    else:
        plain = PlainProgress(console)
        plain.trial_started(1, 1, spec)
        plain.trial_ended(spec, trial, "")
        (line,) = text.getvalue().splitlines()
        assert len(line) > 80 and LABEL in line


def test_trials_side_by_side_are_counted_as_they_end(tmp_path: Path) -> None:
    plan = synthetic.Plan(servers=["bind@system", "knot@system"], zones=[5], repeats=2)
    trials = Run.open(synthetic.build(tmp_path / "run", plan)).trials
    text = io.StringIO()
    plain = PlainProgress(Console(file=text, width=80, color_system=None))
    first, second, third, fourth = trials
    for number, trial in ((2, second), (3, third), (4, fourth)):
        plain.trial_started(number, 5, trial.record.spec)
    for trial in (fourth, second):
        plain.trial_ended(trial.record.spec, trial, "")
    plain.trial_started(5, 5, first.record.spec)
    for trial in (first, third):
        plain.trial_ended(trial.record.spec, trial, "")
    assert [line.split()[0] for line in text.getvalue().splitlines()] == ["[2/5]", "[3/5]", "[4/5]", "[5/5]"]
    assert [line.split(":")[0].endswith("repeat 2") for line in text.getvalue().splitlines()] == [
        trial.record.spec.repeat == 2 for trial in (fourth, second, first, third)
    ]


@pytest.mark.parametrize(
    ("metric", "value", "outcome", "reason", "text"),
    [
        ("load_time_s", 1.2345, "done", "", "done in 1.23 s"),
        ("load_time_s", 1.2345, "done", "slow", "done in 1.23 s: slow"),
        ("zones_per_s", 12.0, "done", "", "done, zones_per_s = 12"),
        ("p99_ms", 0.5, "done", "", "done, p99_ms = 0.5"),
        ("p99_ms", None, "done", "", "done"),
        ("p99_ms", 0.5, "timeout", "late", "timeout: late"),
        ("p99_ms", 0.5, "invalid", "", "invalid"),
    ],
)
def test_a_trial_ends_with_its_main_figure(
    metric: str, value: float | None, outcome: str, reason: str, text: str
) -> None:
    record = SimpleNamespace(spec=SimpleNamespace(main_metric=metric), outcome=outcome, reason=reason)
    assert result_text(SimpleNamespace(record=record, result=value), "") == text  # type: ignore[arg-type]


def test_a_trial_that_failed_has_its_error() -> None:
    assert result_text(None, "no root") == "error: no root; set aside, repeated by --resume"


def test_events_are_printed_every_twenty_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = synthetic.Plan(servers=["bind@system"], zones=[5], repeats=1)
    (trial,) = Run.open(synthetic.build(tmp_path / "run", plan)).trials
    now_s, text = [100.0], io.StringIO()
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    plain, spec = PlainProgress(Console(file=text, width=80, color_system=None)), trial.record.spec
    plain.trial_started(1, 1, spec)
    for moment_s, lines in ((120.0, 0), (120.5, 1), (140.5, 1), (141.0, 2)):
        now_s[0] = moment_s
        plain.trial_event(spec, {"event": "phase", "phase": "measure"})
        assert text.getvalue().count("\n") == lines, moment_s


def test_bars_show_how_far_the_run_and_its_trials_are(tmp_path: Path) -> None:
    plan = synthetic.Plan(servers=["bind@system", "knot@system"], zones=[50], repeats=2)
    first, second, third, _ = Run.open(synthetic.build(tmp_path / "run", plan)).trials
    live = LiveProgress(Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None))

    def bars() -> list[tuple[str, float, float | None]]:
        return [(task.description.rpartition(": ")[2], task.completed, task.total) for task in live._bars.tasks]

    live.trial_started(2, 4, second.record.spec)
    live.trial_started(3, 4, third.record.spec)
    assert bars() == [("trials", 1, 4), ("setup", 0, 50), ("setup", 0, 50)]
    live.trial_event(second.record.spec, {"event": "progress", "zones": 50, "seen": 7, "done": 9})
    live.trial_event(third.record.spec, {"event": "progress", "zones": 50, "done": 9})
    live.trial_event(third.record.spec, {"event": "progress", "sent": 9})
    live.trial_event(third.record.spec, {"event": "ready", "zones": 50, "done": 10})
    assert bars() == [("trials", 1, 4), ("setup", 7, 50), ("setup", 9, 50)]
    live.trial_event(third.record.spec, {"event": "phase", "phase": "measure"})
    live.trial_ended(second.record.spec, second, "")
    assert bars() == [("trials", 2, 4), ("measure", 0, 50)]
    live.trial_started(4, 4, first.record.spec)
    assert bars()[0] == ("trials", 2, 4)


@pytest.mark.parametrize(
    ("name", "width", "text"),
    [
        ("abcde", 13, "abcde: setup"),
        ("abcde", 12, "abcde: setup"),
        ("abcde", 11, "abc…: setup"),
        ("abcde", 3, "…: setup"),
    ],
)
def test_a_name_is_cut_where_the_phase_has_no_room(name: str, width: int, text: str) -> None:
    assert fitted(name, "setup", width) == text
