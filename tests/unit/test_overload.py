"""The ramp before a replay, and a flood beside one: what is asked, refused and made of it. Nothing is run here."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from trial_data import clean_trial

from dnsrig import procedures
from dnsrig.analysis import flood
from dnsrig.analysis.latency import Histogram, Interval
from dnsrig.analysis.load_result import LoadResult
from dnsrig.analysis.row_files.load import INTERVALS
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.procedures import overload, replay
from dnsrig.procedures.parts import replay_rate
from dnsrig.rundir import TrialSpec

MS = 1_000_000
S = 1_000 * MS


def step(answered: int = 1000, **more: object) -> LoadResult:
    said = {"model": "stream", "due": 1000, "sent": 1000, "answered": answered, "timeout_ns": 2 * S}
    return LoadResult.model_validate({**said, **more})


def test_a_step_is_held_where_instrument_and_server_follow() -> None:
    assert replay_rate.why_not_held(step(), 5) == replay_rate.why_not_held(step(950), 5) == ""
    assert (
        replay_rate.why_not_held(step(940), 5) == "6 % of 1,000 queries had no answer within 2 s, where 5 % are allowed"
    )
    assert "never sent 100 of 1,000" in replay_rate.why_not_held(step(unsent=100), 5)


@pytest.mark.parametrize("options", [{"ramp_s": -1.0}, {"ramp_loss_percent": 101.0}])
def test_what_is_no_ramp_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"options\.ramp_"):
        procedures.options_of(replay, options)


def test_a_ramp_takes_three_steps() -> None:
    assert replay.expected_s({**replay.OPTIONS, "ramp_s": 2.0}) == 6 + replay.expected_s(replay.OPTIONS)


def test_a_share_of_the_rate_is_another_speed() -> None:
    document = model.load(model.find("resolver-overload"), "quick", ["options.speed=2.0"])
    spec = trial_specs.provisional("resolver-overload", model.points(document)[0], [0, 1])
    assert "--speed=0.5" in replay.arguments(spec, "clients", 1.0, 0.25)
    assert "--speed=2.0" in replay.arguments(spec, "clients", 1.0)


def test_the_flood_has_a_host_of_its_own() -> None:
    document = model.load(model.find("resolver-overload"), "quick", [])
    spec = trial_specs.provisional("resolver-overload", model.points(document)[0], [0, 1])
    ends = {frozenset(link.ends) for link in spec.links}
    assert {frozenset(("flood", "resolver")), frozenset(("clients", "resolver"))} <= ends
    assert not any("flood" in pair and "internet" in pair for pair in ends)
    assert "flood-sent" in overload.checks(spec)
    (far,) = [link for link in spec.links if link.emulated]
    assert set(far.ends) == {"internet", "resolver"} and far.forward is not None and far.forward.far is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duration_s": 6.0}, "ends before the flood does"),
        ({"flood_qps": 0.0}, "options.flood_qps"),
        ({"capture": True}, "options.capture"),
        ({"flood_names": "good"}, "options.flood_names"),
    ],
)
def test_a_flood_that_shows_nothing_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        overload.hosts(procedures.options_of(overload, options))


def broken(*settings: str) -> TrialSpec:
    document = model.load(model.find("broken-world"), "quick", list(settings))
    return trial_specs.provisional("broken-world", model.points(document)[0], [0, 1])


def test_faulty_names_need_a_world_that_has_them_apart() -> None:
    spec = broken()
    overload.validate(spec)
    assert "faults-met" in overload.checks(spec)
    with pytest.raises(UsageError, match="faulty zones separately"):
        overload.validate(broken("dataset.faulty_apart=false"))


def intervals(*latencies_ms: int | None) -> list[Interval]:
    """One a second."""
    made = [Histogram.of({ms * MS: 100} if ms is not None else {}) for ms in latencies_ms]
    return [Interval(float(number), 1.0, histogram) for number, histogram in enumerate(made)]


@pytest.mark.parametrize(
    ("latencies_ms", "expected_s"),
    [
        ([50, 50, 1, 2, 900, 900, 1, 2, 1, 1], 0.0),
        ([50, 50, 1, 2, 900, 900, 40, 4, 1, 1], 1.0),  # 40 ms are of the cold cache, and do not count
        ([50, 50, 1, 2, 900, 900, 1, 40, 2, 1, 1], 2.0),  # one good one alone may be chance
        ([50, 50, 1, 2, 900, 900, 1, None, 2, 1, 1], 2.0),  # without queries nothing is known
        ([50, 50, 1, 2, 900, 900, 5, 5, 5, 5], None),
        ([50, 50, 1, 2, 900, 900, 1, 1], None),  # too short to say
        ([None, None, None, None, 900, 900, 1, 1, 1], None),
    ],
)
def test_recovery_is_when_all_is_as_before(latencies_ms: list[int | None], expected_s: float | None) -> None:
    assert flood.recovered_after_s(intervals(*latencies_ms), 4.0, 6.0) == expected_s


def test_goodput_is_of_whole_intervals_of_the_flood(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path)
    assert flood.goodput_percent(trial) is None and trial.value("recovery_s") is None, "nobody flooded"
    trial.record.instruments["flood"] = {"model": "rate", "start_ns": 2 * S, "end_ns": 4 * S + 1}
    rows = [
        {"start_ns": second * S, "duration_ns": S, "due": 100, "answered": answered}
        for second, answered in enumerate([100, 100, 80, 40, 0, 100])
    ]
    filled = [{**dict.fromkeys(INTERVALS.schema, 0), **row} for row in rows]
    trial.__dict__["load_intervals"] = pl.DataFrame(filled, schema=INTERVALS.schema)
    assert trial.value("goodput_percent") == 60
