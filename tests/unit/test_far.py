"""Delays by far end: the draw, which the engine makes too, and the judgement of the self-test."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from dnsrig.errors import UsageError
from dnsrig.lab import sites
from dnsrig.lab.links import expectation, far
from dnsrig.lab.links.datagrams import Way
from dnsrig.rundir import Address, FarSpec, PathSpec

PREFIX = "198.18.64.0/18"


def own(distribution: str = "near", seed: int = 7) -> FarSpec:
    classes = list(sites.distribution(distribution).classes)
    return FarSpec(distribution=distribution, rtt_classes=classes, prefixes=[PREFIX], seed=seed)


@pytest.mark.parametrize(
    ("address", "expected_ns"),
    [
        ("198.18.64.1", 1_404_920),
        ("198.18.127.254", 1_795_499),
        ("2001:2:0:3::1", 2_446_741),
        ("2001:2:0:3::16", 77_959_888),
        ("2001:2:0:3::24", 242_218_834),
    ],
)
def test_delays_are_those_of_the_engine(address: str, expected_ns: int) -> None:
    """engine/…/link/address_delays.rs has the same."""
    assert round(far.one_way_ms(own(), ip_address(address)) * 1e6) == expected_ns


@pytest.mark.parametrize("name", sites.DISTRIBUTIONS)
def test_shares_of_addresses_are_those_of_the_classes(name: str) -> None:
    found = [2 * far.one_way_ms(own(name), address) for address in ip_network(PREFIX)]
    classes = sites.DISTRIBUTIONS[name].classes
    assert sum(weight for *_, weight in classes) == pytest.approx(100, abs=0.1)
    for low_ms, high_ms, weight in classes:
        share = sum(low_ms <= one < high_ms for one in found) / len(found)
        assert share == pytest.approx(weight / 100, abs=5 * (weight / 100 / len(found)) ** 0.5)
    assert min(found) >= classes[0][0] and max(found) <= classes[-1][1]


def test_an_unknown_distribution_is_refused() -> None:
    with pytest.raises(UsageError, match="no distribution"):
        sites.distribution("nowhere")


def test_the_sample_reaches_from_the_nearest_to_the_farthest() -> None:
    found = far.sample(own(), PREFIX, 6)
    delays_ms = [far.one_way_ms(own(), address) for address in found]
    assert len(set(found)) == 6 and delays_ms == sorted(delays_ms)
    assert delays_ms[-1] > 50, "so that a link without them is seen"
    assert all(address in ip_network("2001:2:0:3::/64") for address in far.sample(own(), "2001:2:0:3::/64", 6))


FARTHEST: Address = far.sample(own(), PREFIX, 6)[-1]


def judged(added_ms: float | None, path: PathSpec) -> str:
    way = Way()
    for number in range(far.PACKETS):
        way.sent_s.append(1000 + number * 0.02)
        way.nbytes.append(60)
        if added_ms is not None:
            way.arrived_s[number] = way.sent_s[number] + (path.delay_ms + added_ms) / 1e3
    return far.judged(FARTHEST, way, path, 1000)[1]


def test_an_address_is_judged_by_its_own_distance() -> None:
    path = PathSpec(delay_ms=5, far=own())
    its_ms = far.one_way_ms(own(), FARTHEST)
    assert judged(its_ms, path) == judged(its_ms + 1, path) == ""
    for other_ms in (0, its_ms / 2, its_ms + 4 + its_ms * expectation.SLACK_SHARE):
        assert f"delay of {FARTHEST}" in judged(other_ms, path)


def test_an_address_that_nothing_reaches_is_told_unless_packets_are_to_be_lost() -> None:
    assert "next to nothing arrives" in judged(None, PathSpec(far=own()))
    assert judged(None, PathSpec(far=own(), loss_percent=100)) == ""


@pytest.mark.parametrize("weight", [0.01, 1.0, 100.0])
def test_in_one_class_all_addresses_are_as_far_as_it_says(weight: float) -> None:
    """Weights are shares of their sum."""
    alone = FarSpec(distribution="near", rtt_classes=[(10.0, 10.0, weight)], prefixes=[PREFIX], seed=7)
    assert far.one_way_ms(alone, ip_address("198.18.64.1")) == 5
    after = alone.model_copy(update={"rtt_classes": [(1.0, 1.0, 0.0), (10.0, 10.0, weight)]})
    assert far.one_way_ms(after, ip_address("198.18.64.1")) == 5


@pytest.mark.parametrize(("count", "found"), [(1, 1), (2, 2), (6, 6)])
def test_a_sample_has_the_nearest_and_the_farthest_of_all_candidates(count: int, found: int) -> None:
    few = [far.one_way_ms(own(), address) for address in far.sample(own(), PREFIX, count)]
    many = [far.one_way_ms(own(), address) for address in far.sample(own(), PREFIX, far.CANDIDATES)]
    assert len(few) == found and few[0] == min(many) and (count == 1 or few[-1] == max(many))
