"""A share of the capacity as the rate of a replay: how it is searched, and what is refused. Nothing is run here."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from dnsrig import procedures
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.procedures import replay
from dnsrig.procedures.parts import replay_rate
from dnsrig.procedures.parts.replay_rate import LEAST, PRECISION, Found, Step
from dnsrig.runs.load_result import LoadResult


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


@pytest.mark.parametrize(
    ("answered", "allowed_percent", "reason"),
    [
        (1000, 0.0, ""),
        (999, 0.0, "0.1 % of 1,000 queries had no answer within 2 s, where 0 % are allowed"),
        (950, 5.0, ""),
        (949, 5.0, "5.1 % of 1,000 queries had no answer within 2 s, where 5 % are allowed"),
    ],
)
def test_a_rate_holds_up_to_the_loss_that_is_allowed(answered: int, allowed_percent: float, reason: str) -> None:
    load = LoadResult(sent=1000, answered=answered, timeout_ns=2_000_000_000)
    assert replay_rate.why_not_held(load, allowed_percent) == reason


@pytest.mark.parametrize(
    ("lost_at", "played", "reason"),
    [
        (2.0, ["ramp-1", "ramp-2", "ramp-3"], ""),
        (1.0, ["ramp-1", "ramp-2", "ramp-3"], "at 100% of it, 10 % of 1,000 queries"),
        (0.5, ["ramp-1", "ramp-2"], "at 50% of it, 10 % of 1,000 queries"),
        (0.25, ["ramp-1"], "at 25% of it, 10 % of 1,000 queries"),
    ],
)
def test_a_ramp_ends_at_the_first_rate_that_does_not_hold(lost_at: float, played: list[str], reason: str) -> None:
    names: list[str] = []

    def play(name: str, seconds: float, share: float) -> LoadResult:
        names.append(name)
        assert seconds == 3
        return LoadResult(sent=1000, answered=1000 if share < lost_at else 900)

    options = {"of_capacity": 0.0, "ramp_s": 3.0, "ramp_loss_percent": 5.0}
    context = SimpleNamespace(
        option=options.get, spec=SimpleNamespace(subject="primary"), twin=lambda *_, **__: nullcontext()
    )
    found = replay_rate.refusal(context, play, limit_s=9)  # type: ignore[arg-type]
    assert names == played and reason in found and bool(found) == bool(reason)
    options["ramp_s"] = 0.0
    assert replay_rate.refusal(context, play, limit_s=9) == "" and names == played  # type: ignore[arg-type]


@pytest.mark.parametrize(("of_capacity", "seconds"), [(0.0, 3 * 2), (0.5, 8 * (2 + 4))])
def test_how_long_ramps_and_searches_take(of_capacity: float, seconds: float) -> None:
    assert replay_rate.expected_s({"of_capacity": of_capacity, "ramp_s": 2.0}) == seconds


@pytest.mark.parametrize(
    ("answered", "is_alike"),
    [([900, 851], True), ([900, 849], False), ([851, 900], True), ([999, 998, 999], False)],
)
def test_losses_are_alike_up_to_one_and_a_half_times_the_lowest(answered: list[int], is_alike: bool) -> None:
    loads = [LoadResult(sent=1000, answered=count) for count in answered]
    assert bool(replay_rate.loss_at_every_rate(loads)) is is_alike
