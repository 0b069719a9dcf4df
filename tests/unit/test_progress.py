"""What is shown while a run goes on fits the terminal, and into a file each line is one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import synthetic
from rich.console import Console

from dnsrig.cli._progress import LiveProgress, PlainProgress
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
