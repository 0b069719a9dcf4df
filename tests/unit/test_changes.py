"""Changes on a primary, and when the server under test served them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from trial_data import SECOND, clean_trial, measured

from dnsrig.runs import changes
from dnsrig.runs.row_files.change import CHANGES
from dnsrig.runs.trial import Trial

Made = Sequence[tuple[float | None, str]]
"""When each change was accepted, in seconds of `measure`, and its kind."""
Seen = Sequence[tuple[float, bool]]
"""When the answer of the server became another, and whether it served the zone then."""
FOLLOWED = {"zone": pl.String, "before_ns": pl.Int64, "seen_ns": pl.Int64, "served": pl.Boolean}


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A trial of 100 seconds."""
    return clean_trial(tmp_path / "run")


def changed(trial: Trial, made: Made, seen: Seen = (), due_s: float = 0.0) -> int:
    """Put the changes of a zone into ``trial``, and what was seen of it; returns the start of `measure`."""
    start_ns = measured(trial, 100)
    empty = dict.fromkeys(CHANGES.schema, 0)
    rows = [
        empty
        | {"zone": "a", "kind": kind, "due_ns": start_ns + round(due_s * SECOND)}
        | {"accepted_ns": None if at_s is None else start_ns + round(at_s * SECOND)}
        for at_s, kind in made
    ]
    trial.__dict__["changes"] = pl.DataFrame(rows, schema=CHANGES.schema)
    first = [("a", None, start_ns - SECOND, True)]
    later = [("a", start_ns, start_ns + round(at_s * SECOND), served) for at_s, served in seen]
    trial.__dict__["followed"] = pl.DataFrame(first + later, schema=FOLLOWED, orient="row")
    return start_ns


@pytest.mark.parametrize(
    ("made", "seen", "served_s"),
    [
        ([(10, "add")], [(12, True)], [12]),
        ([(10, "add")], [(10, True), (12, True)], [12]),  # what is seen at that moment was there before
        ([(10, "add")], [(12, False), (13, True)], [13]),
        ([(10, "remove")], [(12, True), (13, False)], [13]),
        ([(10, "touch"), (20, "touch")], [(20, True), (21, True)], [20, 21]),
        # The answer of 21 s has the second change, and the first was never seen.
        ([(10, "touch"), (20, "touch")], [(21, True)], [None, 21]),
        ([(10, "add"), (20, "remove")], [(21, True), (22, False)], [21, 22]),
        ([(10, "add")], [(100, True)], [100]),
        ([(10, "add")], [(100.001, True)], [None]),
        ([(10, "touch")], [(100.001, True)], [None]),
        ([(10, "add")], [], [None]),
        ([(-0.001, "add"), (0, "add"), (100, "add"), (100.001, "add")], [(50, True)], [50, None]),
        ([(None, "add")], [(12, True)], []),
    ],
)
def test_when_a_change_was_served(trial: Trial, made: Made, seen: Seen, served_s: list[float | None]) -> None:
    start_ns = changed(trial, made, seen)
    found = [
        None if each.served_ns is None else (each.served_ns - start_ns) / SECOND for each in changes.followed(trial)
    ]
    assert found == served_s


def test_zones_that_were_not_followed_do_not_count(trial: Trial) -> None:
    changed(trial, [(10, "add")], [(12, True)])
    trial.__dict__["changes"] = trial.changes.with_columns(zone=pl.lit("b"))
    assert changes.followed(trial) == []


def test_what_was_accepted_during_measure_was_made(trial: Trial) -> None:
    changed(trial, [(-0.001, "add"), (0, "add"), (50, "add"), (None, "add"), (100, "add"), (100.001, "add")])
    assert changes.made(trial) == 3
    changed(trial, [])
    assert changes.made(trial) is None and changes.due(trial) is None


@pytest.mark.parametrize(("due_s", "due"), [(-5, 200), (0, 200), (10, 180), (100, 0), (101, 0)])
def test_changes_are_due_from_the_first_one_on(trial: Trial, due_s: float, due: float) -> None:
    trial.record.spec.options = {"changes_per_s": 2.0}
    changed(trial, [(50, "add"), (60, "add")], due_s=due_s)
    assert changes.due(trial) == pytest.approx(due)
