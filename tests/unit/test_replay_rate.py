"""A share of the capacity as the rate of a replay: how it is searched, and what is refused. Nothing is run here."""

from __future__ import annotations

import pytest

from dnsrig import procedures
from dnsrig.analysis.load_result import LoadResult
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.procedures import replay
from dnsrig.procedures.parts import replay_rate
from dnsrig.procedures.parts.replay_rate import LEAST, PRECISION, Found, Step


def searched(capacity: float, broken_from: float = 2.0) -> tuple[Found, list[float]]:
    """Of a server that holds shares up to ``capacity``; from ``broken_from`` on the instrument does not keep up."""
    asked: list[float] = []

    def step(share: float) -> Step:
        asked.append(share)
        reason = "late" if share >= broken_from else "lost" if share > capacity else ""
        return Step(share, LoadResult(), reason, instrument_failed=share >= broken_from)

    return replay_rate.search(step), asked


@pytest.mark.parametrize("capacity", [0.01, 0.05, 0.0625, 0.3, 0.5, 0.97])
def test_the_capacity_is_known_to_a_tenth(capacity: float) -> None:
    found, asked = searched(capacity)
    assert found.holds <= capacity < (found.fails or 0) <= PRECISION * found.holds
    assert len(asked) == len(set(asked)) <= 12, "no share is tried twice"


def test_a_search_has_two_ends() -> None:
    found, asked = searched(1.0)
    assert (found.holds, found.fails, asked[-1]) == (1, None, 1)
    found, asked = searched(0.0)
    assert (found.holds, found.fails) == (0, min(asked)) and LEAST <= min(asked) < 2 * LEAST


@pytest.mark.parametrize(
    ("answered", "said"),
    [([940, 940, 937], True), ([100, 500, 900], False), ([0, 0], False), ([940], False), ([1000, 940], False)],
)
def test_a_loss_that_is_the_same_at_every_rate_is_said(answered: list[int], said: bool) -> None:
    sentence = replay_rate.loss_at_every_rate([LoadResult(sent=1000, answered=count) for count in answered])
    assert ("6.00% and 6.30% of the queries had no answer at each rate" in sentence) == said == bool(sentence)


def test_an_instrument_that_does_not_keep_up_ends_it() -> None:
    found, asked = searched(1.0, broken_from=0.2)
    assert (found.reason, found.holds, asked) == ("late", 0.125, [1 / 16, 0.125, 0.25])


@pytest.mark.parametrize("options", [{"of_capacity": 1.5}, {"of_capacity": -0.1}, {"of_capacity": 0.5}])
def test_what_is_no_share_or_has_no_steps_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"options\.of_capacity"):
        replay.hosts(procedures.options_of(replay, options))


def test_the_experiment_asks_for_half_and_looks_at_what_the_limit_was() -> None:
    document = model.load(model.find("dnssec-heavy"), "quick", [])
    spec = trial_specs.provisional("dnssec-heavy", model.points(document)[0], [0, 1])
    assert spec.options["of_capacity"] == 0.5
    assert "capacity-is-the-servers" in replay.checks(spec)
    assert replay.expected_s(spec.options) > 10 + 8 * 2
