"""The round trip and the jitter between a trial's server under test and its primaries."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial_data import clean_trial

from dnsrig.prediction import jitter, path
from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs.trial import Trial


def over(trial: Trial, *ends: str, forward: PathSpec, reverse: PathSpec) -> LinkSpec:
    return LinkSpec.model_validate({"ends": ends, "kind": "tun", "forward": forward, "reverse": reverse})


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """Two primaries, 30 and 100 ms away, in order; whoever looks on is further off."""
    found = clean_trial(tmp_path)
    spec = found.record.spec
    spec.hosts["primary2"] = spec.hosts["primary"].model_copy(update={"address": "198.18.0.9"})
    near, far = PathSpec(delay_ms=10, jitter_ms=2), PathSpec(delay_ms=60, jitter_ms=5)
    spec.links = [
        over(found, "primary", "secondary", forward=near, reverse=PathSpec(delay_ms=20)),
        over(found, "primary2", "secondary", forward=far, reverse=PathSpec(delay_ms=40, jitter_ms=9, ordered=False)),
        over(found, "observer", "secondary", forward=PathSpec(delay_ms=500, jitter_ms=99), reverse=PathSpec()),
    ]
    found.record.link_tests = [{"from": "primary", "to": "secondary", "works": True, "rtt_median_us": 999_000.0}]
    return found


def test_the_longest_round_trip_to_a_primary_as_asked_for(trial: Trial) -> None:
    assert path.rtt_s(trial) == pytest.approx(0.1)
    busy = path.rtt_s(trial, 1000)
    assert busy == pytest.approx(jitter.delay_s(0.06, 0.005, 1000) + 0.04), "in order it grows, free it does not"


def test_the_jitter_of_what_keeps_its_order(trial: Trial) -> None:
    assert path.jitter_s(trial) == 0.005
    for link in trial.record.spec.links:
        link.forward = PathSpec(delay_ms=50, jitter_ms=20, ordered=False)
    assert path.jitter_s(trial) == 0


def test_without_an_emulated_path_what_was_measured(trial: Trial) -> None:
    trial.record.spec.links = []
    assert path.rtt_s(trial) == 0.999
    trial.record.link_tests.append({"from": "observer", "to": "secondary", "works": True, "rtt_median_us": 5e6})
    assert path.rtt_s(trial) == 0.999, "nobody transfers zones over that one"
    trial.record.link_tests = []
    assert path.rtt_s(trial) is None
