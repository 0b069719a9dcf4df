"""Laws together: S3's own results are met, and no answer gets better by making things worse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dnsrig.cli import _scenario
from dnsrig.errors import UsageError
from dnsrig.prediction.combine import Prediction, alternatives, predict
from dnsrig.prediction.law import Limit
from dnsrig.prediction.round_trips import POLICIES, Policy
from dnsrig.prediction.scenario import Path, Scenario
from dnsrig.rundir import ServerLimit

S3 = Path(rtt_s=0.25, jitter_s=0.05, loss=0.001, rate_bytes_per_s=2.5e6)
MANY = Scenario(zones=100_000, records=3, path=S3, policy="reused", workers=50, soa="udp")
ASKED = _scenario.Asked(
    path=Path(rtt_s=0.2),
    sites=1,
    uplink_bytes_per_s=None,
    congestion="cubic",
    bytes_per_record=None,
    window_bytes=None,
    policy=None,
    transport=None,
    workers=None,
    connections=None,
    settings={},
)


@pytest.mark.parametrize(
    ("changed", "published_s", "binds"),
    [
        ({}, 1259, "round trips"),
        ({"policy": "one", "transport": "xot", "soa": "own"}, 4337, "round trips"),
        ({"policy": "replica"}, 30, "congestion control"),
        ({"policy": "replica", "transport": "xot"}, 30, "congestion control"),
        ({"policy": "remote"}, 1867, "round trips"),
        ({"policy": "remote", "transport": "xot"}, 1869, "round trips"),
    ],
)
def test_s3s_many_zones(changed: dict[str, object], published_s: float, binds: str) -> None:
    found = predict(replace(MANY, **changed))  # type: ignore[arg-type]
    assert found.binding.name == binds
    assert found.low_s <= published_s <= found.high_s
    if changed.get("policy") in (None, "remote"):
        assert found.time_s == pytest.approx(published_s, rel=0.03)


def test_s3s_large_zone_is_cubics() -> None:
    """27 min 45 s at 20 Mbit/s would be 4 GB; no .se is that. At what CUBIC makes of that link it is about 600 MB."""
    zone = replace(MANY, zones=1, records=8e6, bytes_per_record=75, policy="one", workers=1)
    cubic, bbr = predict(zone), predict(replace(zone, congestion="bbr"))
    assert (cubic.binding.name, bbr.binding.name) == ("congestion control", "link rate")
    assert cubic.low_s <= 1665 <= cubic.high_s
    assert 4 < cubic.time_s / bbr.time_s < 8, "the congestion control alone is worth a factor of about five there"


@pytest.mark.parametrize(
    ("kind", "name", "time_s"),
    [
        ("bind", "serial-query-rate", 5_000),
        ("bind", "round trips", 20_000),
        ("powerdns", "round trips", 20_000),
        ("knot", "round trips", 6_000),
    ],
)
def test_servers_defaults(kind: str, name: str, time_s: float) -> None:
    """100,000 tiny zones over 200 ms: what the servers' own defaults come to."""
    scenario, _ = _scenario.build(ASKED, kind, 100_000, None)
    (limit,) = (limit for limit in predict(scenario).limits if limit.name == name)
    assert limit.time_s == pytest.approx(time_s, rel=0.01)


def test_nsd_is_not_bound_by_round_trips() -> None:
    scenario, _ = _scenario.build(ASKED, "nsd", 100_000, None)
    found = predict(scenario)
    assert found.binding.name == "secondary's work" and found.time_s < 60


def test_settings_of_the_secondary_count() -> None:
    raised = replace(ASKED, settings={"serial-query-rate": 10_000, "transfers-in": 100, "transfers-per-ns": 100})
    scenario, _ = _scenario.build(raised, "bind", 100_000, None)
    limits = {limit.name: limit.time_s for limit in predict(scenario).limits}
    assert limits["round trips"] == pytest.approx(400) and limits["serial-query-rate"] == pytest.approx(10)
    pooled = replace(ASKED, settings={"server.remote-pool-limit": 100})
    assert _scenario.build(pooled, "knot", 10, None)[0].policy == "reused"


def test_a_policy_that_the_secondary_does_not_have_is_said() -> None:
    _, notes = _scenario.build(replace(ASKED, policy="reused"), "bind", 10, None)
    assert any("policy one, not reused" in note for note in notes)


def test_a_million_zones_at_a_thousand_sites() -> None:
    far = Scenario(10**6, 4, Path(rtt_s=0.25), "pipelined", 10_000, sites=1000, uplink_bytes_per_s=1.25e9)
    found = predict(far)
    assert found.binding.name == "primary's uplink"
    assert found.time_s == pytest.approx(1000 * predict(replace(far, sites=1)).limits[-1].time_s)
    alone = Scenario(10**6, 4, Path(rtt_s=0.25), "pipelined", 10_000, uplink_bytes_per_s=1.25e9)
    assert alone == replace(far, sites=1), "a primary has one site unless more are named"
    worked = predict(replace(far, primary_zone_s=1e-4))
    assert worked.binding.name == "primary's work" and worked.time_s == pytest.approx(1e5)


def test_ports_are_a_bound_only() -> None:
    found = predict(Scenario(100_000, 4, Path(rtt_s=0.001), "one", 1000))
    assert found.binding.name == "ports" and found.at_least
    assert found.low_s == 180
    assert "ports" not in {limit.name for limit in predict(Scenario(28_000, 4, Path(rtt_s=0.001), "one", 1)).limits}
    assert "ports" not in {limit.name for limit in predict(Scenario(10**6, 4, Path(rtt_s=0.001), "reused", 1)).limits}


def test_what_a_worker_waits_for_adds_up() -> None:
    """Worked out by hand: 1,000 zones of 494,080 bytes with 280 more of a connection, 250 ms, one in a thousand lost,
    one at a time."""
    one = Scenario(1000, 10_000, Path(rtt_s=0.25, loss=0.001), "reused", 1)
    found = predict(one)
    limits = {limit.name: limit.time_s for limit in found.limits}
    assert limits["round trips"] == pytest.approx(1000 * (0.25 + 2 * 0.001 * 0.45))
    assert found.binding.name == "congestion control" and found.besides is not None
    assert found.besides.name == "round trips"
    assert found.time_s == pytest.approx(limits["round trips"] + limits["congestion control"])
    assert found.low_s < found.time_s < found.high_s
    # Who pipelines waits for both at the same time.
    piped = predict(replace(one, policy="pipelined"))
    assert piped.besides is None and piped.time_s == pytest.approx(max(limit.time_s for limit in piped.limits))


def test_slow_starts_rounds_carry_bytes() -> None:
    """Seven round trips of which five are slow start's: those and the bytes take as long as the longer of the two."""
    one = Scenario(1, 10_000, Path(rtt_s=0.25, loss=0.001), "one", 1)
    found = predict(one)
    limits = {limit.name: limit.time_s for limit in found.limits}
    assert one.round_trips_a_zone["slow start"] == 5
    carrying_s, data_s = limits["round trips"] * 5 / 7, limits["congestion control"]
    assert found.time_s == pytest.approx(limits["round trips"] * 2 / 7 + max(carrying_s, data_s))
    assert found.time_s < limits["round trips"] + data_s


def test_a_lone_worker_has_the_link_to_itself_and_many_share_it() -> None:
    path = Path(rtt_s=0.25, rate_bytes_per_s=2.5e6)
    lone, many = (predict(Scenario(1000, 10_000, path, "reused", workers)) for workers in (1, 100))
    link_s = next(limit.time_s for limit in lone.limits if limit.name == "link rate")
    assert lone.time_s == pytest.approx(250 + link_s)
    assert many.binding.name == "link rate" and many.time_s == pytest.approx(link_s) and many.besides is None


def test_measured_round_trips_have_the_bytes_in_them() -> None:
    measured = replace(MANY, measured_round_trips=2.0)
    assert predict(measured).turn == () and predict(MANY).turn != ()


def test_what_would_lift_it() -> None:
    changes = {other.change: other.prediction.time_s for other in alternatives(MANY)}
    now_s = predict(MANY).time_s
    assert changes and all(time_s < now_s for time_s in changes.values())
    assert list(changes.values()) == sorted(changes.values())
    assert changes["400 workers"] == pytest.approx(now_s / 8, rel=0.15)
    assert any("pipelined" in change and "bbr" in change for change in changes)
    # With a congestion control that fills the link pipelined AXFR takes the time of its bytes.
    best = alternatives(MANY)[0].prediction
    assert best.binding.name == "link rate"


@pytest.mark.parametrize("policy", ["pipelined", "reused", "remote"])
def test_nobody_is_told_to_do_what_is_done(policy: Policy) -> None:
    limits = predict(replace(MANY, policy=policy)).limits
    (remedy,) = (limit.remedy for limit in limits if limit.name == "round trips")
    assert "connections that are kept" not in remedy and ("pipelining" in remedy) is (policy == "reused")


def test_one_zone_is_not_told_to_use_more_connections() -> None:
    one = replace(MANY, zones=1, records=8e6, policy="one", workers=1)
    for scenario, told in ((one, False), (replace(one, zones=2), True), (replace(MANY, policy="replica"), False)):
        limits = {limit.name: limit.remedy for limit in predict(scenario).limits}
        assert ("more connections" in limits["congestion control"]) is told
        assert ("fewer zones" in limits["link rate"]) is (scenario.zones > 1)


def test_buffers_hold_back_more_where_packets_are_lost() -> None:
    """A hole holds back what came after it. BBR over S4's path with the kernel's own buffer: 0.6 to 4.5 MB/s."""
    lossy = Scenario(1, 15e6, Path(rtt_s=0.3, loss=0.1), "one", 1, congestion="bbr")
    found = predict(lossy)
    assert found.binding.name == "receive buffers"
    assert found.low_s <= lossy.nbytes / 4.5e6 < lossy.nbytes / 0.6e6 <= found.high_s
    clean = predict(replace(lossy, path=Path(rtt_s=0.3)))
    assert clean.high_s < 1.5 * clean.time_s and clean.binding.low_s == pytest.approx(found.binding.low_s)


def test_loss_beside_a_rate_is_counted() -> None:
    """Lost before the narrowest link a packet takes nothing of its rate, behind it its share."""
    limits = predict(replace(MANY, path=replace(S3, loss=0.1), congestion="bbr", policy="pipelined")).limits
    (link,) = (limit for limit in limits if limit.name == "link rate")
    assert link.factor == pytest.approx(1.15 / 0.9)
    assert link.low_s == pytest.approx(link.time_s / 1.15), "no loss makes a link wider than it is"


def test_bbr_at_s4s_path_is_the_links() -> None:
    """As measured at 20 Mbit/s: 2,046 kB/s, from 1,965 to 2,072."""
    s4 = Path(rtt_s=0.3, loss=0.1, rate_bytes_per_s=2.5e6)
    found = predict(Scenario(1, 5e6, s4, "one", 1, congestion="bbr"))
    assert found.binding.name == "link rate"
    assert found.low_s <= found.scenario.nbytes / 2.072e6 < found.scenario.nbytes / 1.965e6 <= found.high_s


def test_what_cannot_be_lifted_has_no_alternatives() -> None:
    full = Scenario(100_000, 4, Path(rtt_s=0.01, rate_bytes_per_s=1e6), "pipelined", 10_000, congestion="bbr")
    assert predict(full).binding.name == "link rate" and alternatives(full) == []


def test_limits_of_the_server_are_those_of_its_driver() -> None:
    slow = ServerLimit(setting="rate", value=20, default=True, zones_per_s=20, remedy="raise it")
    found = predict(replace(MANY, limits=(slow,)))
    assert found.binding.name == "rate" and found.time_s == 5_000
    assert {"a higher rate"} < {other.change for other in alternatives(replace(MANY, limits=(slow,)))}


SCENARIOS = st.builds(
    Scenario,
    zones=st.integers(1, 10**6),
    records=st.floats(1, 1e4),
    path=st.builds(
        Path,
        rtt_s=st.floats(0.001, 1.0),
        loss=st.floats(0.0, 0.3),
        rate_bytes_per_s=st.floats(1e4, 1e9),
    ),
    policy=st.sampled_from(list(POLICIES)),
    workers=st.integers(1, 1000),
    transport=st.sampled_from(("tcp", "xot")),
    soa=st.sampled_from(("none", "udp", "own")),
    congestion=st.sampled_from(("reno", "cubic", "hybla", "illinois", "bbr")),
)


def slower(worse: Prediction, better: Prediction) -> bool:
    return worse.time_s >= better.time_s * (1 - 1e-6)


@given(SCENARIOS, st.integers(1, 1000))
def test_more_zones_never_take_less(scenario: Scenario, more: int) -> None:
    assert slower(predict(replace(scenario, zones=scenario.zones + more)), predict(scenario))


@given(SCENARIOS, st.floats(0, 0.5))
def test_more_loss_never_takes_less(scenario: Scenario, more: float) -> None:
    worse = replace(scenario.path, loss=min(0.9, scenario.path.loss + more))
    assert slower(predict(replace(scenario, path=worse)), predict(scenario))


@given(SCENARIOS, st.floats(1, 5))
def test_a_longer_way_never_takes_less(scenario: Scenario, factor: float) -> None:
    assume(scenario.congestion != "hybla")  # see test_model_laws
    worse = replace(scenario.path, rtt_s=scenario.path.rtt_s * factor)
    assert slower(predict(replace(scenario, path=worse)), predict(scenario))


@given(SCENARIOS, st.integers(2, 10))
def test_more_workers_and_connections_never_take_longer(scenario: Scenario, factor: int) -> None:
    better = replace(scenario, workers=scenario.workers * factor, connections=scenario.connections * factor)
    assert slower(predict(scenario), predict(better))


@given(SCENARIOS)
def test_the_answer_lies_in_its_interval(scenario: Scenario) -> None:
    found = predict(scenario)
    assert found.low_s <= found.time_s <= found.high_s
    assert list(found.limits) == sorted(found.limits, key=lambda limit: -limit.time_s)
    assert all(limit.says and limit.remedy and limit.source for limit in found.limits)


@pytest.mark.parametrize(
    "wrong",
    [
        {"zones": 0},
        {"workers": 0},
        {"records": 0},
        {"sites": 0},
        {"policy": "magic"},
        {"congestion": "vegas"},
        {"uplink_bytes_per_s": 0.0},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        replace(MANY, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"loss": 1.0}, {"rtt_s": -1.0}, {"rtt_s": 0.1, "jitter_s": 0.2}, {"rate_bytes_per_s": 0.0}]
)
def test_so_is_a_path_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Path(**wrong)


def test_a_law_within_a_factor_below_one_is_a_mistake() -> None:
    with pytest.raises(ValueError):
        Limit("x", 1.0, 0.5, "", "", "")
    with pytest.raises(ValueError):
        Limit("x", 1.0, 2.0, "", "", "", low_factor=0.5)


def test_policies_are_all_known_to_the_model() -> None:
    policy: Policy
    for policy in POLICIES:
        assert predict(replace(MANY, policy=policy)).time_s > 0


def test_the_round_trip_is_that_of_a_path_with_so_many_packets() -> None:
    """Jitter that keeps order makes a busy path longer. A zone is a packet for each round trip, and one more."""
    path = Path(rtt_s=0.25, jitter_s=0.1)
    asked = Scenario(zones=10_000, records=3, path=path, policy="reused", workers=50, soa="udp")
    (limit,) = (limit for limit in predict(asked).limits if limit.name == "round trips")
    met_s = limit.time_s * 50 / (2 * 10_000)
    assert met_s == pytest.approx(path.round_trip_s(3 * 10_000 / limit.time_s), rel=1e-3)
    assert met_s > 0.3


@pytest.mark.parametrize(
    ("policy", "workers", "zones", "flows"),
    [
        ("replica", 50, 100, 1),
        ("reused", 50, 100, 50),
        ("one", 50, 20, 20),
        ("remote", 1, 1, 1),
        ("pipelined", 50, 100, 3),
    ],
)
def test_connections_that_carry_data_at_the_same_time(policy: Policy, workers: int, zones: int, flows: int) -> None:
    assert replace(MANY, policy=policy, workers=workers, zones=zones, connections=3).flows == flows


@pytest.mark.parametrize(
    "name", ["zones", "records", "workers", "connections", "sites", "ports", "bytes_per_record", "window_bytes"]
)
def test_numbers_of_a_scenario_are_above_zero_and_at_most_a_million_millions(name: str) -> None:
    for possible in (1, 10**12):
        assert getattr(replace(MANY, **{name: possible}), name) == possible  # type: ignore[arg-type]
    for wrong in (0, 10**12 + 1):
        with pytest.raises(UsageError):
            replace(MANY, **{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("possible", "wrong"),
    [
        ({"loss": 0.0}, {"loss": -0.01}),
        ({"loss": 0.999}, {"loss": 1.0}),
        ({"rtt_s": 3600.0}, {"rtt_s": 3600.1}),
        ({"rtt_s": 0.0}, {"rtt_s": -0.1}),
        ({"rtt_s": 0.2, "jitter_s": 0.1}, {"rtt_s": 0.2, "jitter_s": 0.11}),
        ({"rtt_s": 0.2, "jitter_s": 0.0}, {"rtt_s": 0.2, "jitter_s": -0.1}),
        ({"rate_bytes_per_s": 0.1}, {"rate_bytes_per_s": 0.0}),
        ({"rate_bytes_per_s": None}, {"rate_bytes_per_s": -1.0}),
    ],
)
def test_both_sides_of_what_a_path_can_be(possible: dict[str, Any], wrong: dict[str, Any]) -> None:
    Path(**possible)
    with pytest.raises(UsageError):
        Path(**wrong)
