"""Laws of the model, each against the figures of the paper, the RFC or the talk that it is from, worked out by hand."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig.prediction import buffers, congestion, jitter, ports, primaries, round_trips, sharing, volume

LOSSES = st.floats(1e-6, 0.5)
RTTS = st.floats(1e-3, 2.0)
ALGORITHMS = sorted(congestion.ALGORITHMS)


@pytest.mark.parametrize(
    ("rtt_s", "loss", "segments"),
    [
        # RFC 9438 §5.1, the two tables of average windows, C = 0.4, where CUBIC's own equation decides.
        (0.1, 1e-4, 187),
        (0.1, 1e-5, 1054),
        (0.1, 1e-6, 5926),
        (0.1, 1e-7, 33325),
        (0.1, 1e-8, 187400),
        (0.01, 1e-7, 5926),
        (0.01, 1e-8, 33325),
    ],
)
def test_cubic_is_that_of_the_rfc(rtt_s: float, loss: float, segments: int) -> None:
    assert congestion.cubic_window(loss, rtt_s) == pytest.approx(segments, rel=3e-3)


@pytest.mark.parametrize(("loss", "segments"), [(1e-2, 12), (1e-3, 38), (1e-4, 120), (1e-5, 379)])
def test_cubic_is_as_good_as_reno_on_a_short_path(loss: float, segments: int) -> None:
    """The RFC's tables, 10 ms, take 1.2 / sqrt(p) for Reno; Mathis' constant is sqrt(3/2), 2 % more."""
    assert congestion.cubic_window(loss, 0.01) == pytest.approx(segments, rel=0.035)


def test_reno_without_time_outs_is_mathis() -> None:
    """MSS/RTT × 1.22/sqrt(p): 1,448 bytes, 100 ms, one in 10,000 is 1.77 MB/s; time-outs take little of that."""
    by_hand = 1448 / 0.1 * math.sqrt(1.5) / math.sqrt(1e-4)
    assert by_hand == pytest.approx(1.773e6, rel=1e-3)
    assert congestion.bytes_per_s("reno", 1e-4, 0.1) == pytest.approx(by_hand, rel=0.01)


def test_reno_with_time_outs_is_padhye() -> None:
    """RFC 5348 §3.1 has the formula with b = 1: s / (R sqrt(2bp/3) + t_RTO 3 sqrt(3bp/8) p (1 + 32 p²))."""
    p, rtt_s = 0.05, 0.3
    rto_s = congestion.rto_s(rtt_s)
    assert rto_s == pytest.approx(0.5)
    divided = rtt_s * math.sqrt(2 * p / 3) + rto_s * 3 * math.sqrt(3 * p / 8) * p * (1 + 32 * p**2)
    assert congestion.bytes_per_s("reno", p, rtt_s) == pytest.approx(1448 / divided, rel=1e-9)


def test_hybla_does_not_care_for_the_round_trip_alone() -> None:
    at_25 = congestion.hybla_window(1e-3, 0.025) / 0.025
    assert congestion.hybla_window(1e-3, 0.25) / 0.25 == pytest.approx(at_25)
    assert congestion.hybla_window(1e-3, 0.01) == congestion.reno_window(1e-3)


def test_illinois_is_reno_with_much_loss() -> None:
    assert congestion.illinois_window(0.1, 0.3) == congestion.reno_window(0.1)
    assert congestion.illinois_window(1e-3, 0.3) == pytest.approx(math.sqrt(75 / 1e-3))


def test_bbr_does_not_take_loss_for_congestion() -> None:
    assert congestion.bytes_per_s("bbr", 0.1, 0.3) == math.inf and not congestion.is_bound("bbr", 0.1)
    assert congestion.bytes_per_s("bbr", 0.3, 0.3) < 1e5 and congestion.is_bound("bbr", 0.3)


@pytest.mark.parametrize(
    ("algorithm", "loss", "rtt_s", "jitter_s", "low", "high"),
    [
        # S4: RTT 300 ms, 10 % loss, published and as measured, kB/s.
        ("reno", 0.1, 0.3, 0.0, 14.2, 16.7),
        ("cubic", 0.1, 0.3, 0.0, 10, 21),
        ("illinois", 0.1, 0.3, 0.0, 15, 32),
        ("hybla", 0.1, 0.3, 0.0, 60, 186),
        # S3's link, as measured; each with the round trip that order makes of 250 ms.
        ("cubic", 0.001, 0.308, 0.05, 306, 409),
        ("illinois", 0.001, 0.308, 0.05, 1897, 1897),
        ("hybla", 0.001, 0.308, 0.05, 1824, 2257),
    ],
)
def test_measured_throughput_lies_within_the_factor(
    algorithm: str, loss: float, rtt_s: float, jitter_s: float, low: float, high: float
) -> None:
    found = congestion.bytes_per_s(algorithm, loss, rtt_s, jitter_s) / 1e3
    factor = congestion.ALGORITHMS[algorithm].factor
    assert found / factor <= low and high <= found * factor


@given(st.sampled_from(ALGORITHMS), LOSSES, LOSSES, RTTS)
def test_more_loss_is_never_faster(algorithm: str, one: float, other: float, rtt_s: float) -> None:
    low, high = sorted((one, other))
    assert congestion.bytes_per_s(algorithm, high, rtt_s) <= congestion.bytes_per_s(algorithm, low, rtt_s) * 1.000001


@given(st.sampled_from([name for name in ALGORITHMS if name != "hybla"]), LOSSES, RTTS, RTTS)
def test_a_longer_way_is_never_faster(algorithm: str, loss: float, one: float, other: float) -> None:
    """But with Hybla, whose window is the larger for it, so that it repairs more without a time-out."""
    near, far = sorted((one, other))
    assert congestion.bytes_per_s(algorithm, loss, far) <= congestion.bytes_per_s(algorithm, loss, near) * 1.000001


def test_s3s_times_turned_round_are_its_round_trips() -> None:
    """S3: 100,000 zones, 250 ms, 50 workers."""
    for time_s, each in ((1259, 2.5), (1867, 3.7), (4337, 8.7)):
        assert round_trips.implied(time_s, 100_000, 0.25, 50) == pytest.approx(each, abs=0.05)


def test_at_the_round_trip_of_s3s_link_they_are_whole() -> None:
    """Its jitter keeps order, and about 300 packets a second each way make 250 ms 310 ms."""
    met_s = jitter.round_trip_s(0.25, 0.05, 300)
    assert met_s == pytest.approx(0.311, abs=0.003)
    for time_s, each in ((1259, 2), (1867, 3), (4337, 7)):
        assert round_trips.implied(time_s, 100_000, met_s, 50) == pytest.approx(each, abs=0.1)


@pytest.mark.parametrize(
    ("policy", "transport", "soa", "count"),
    [
        ("one", "tcp", "none", 2),
        ("one", "tcp", "udp", 3),
        ("one", "xot", "none", 3),
        ("one", "xot", "own", 6),
        ("reused", "tcp", "none", 1),
        ("reused", "tcp", "udp", 2),
        ("reused", "xot", "none", 1),
        ("pipelined", "tcp", "none", 1),
        ("remote", "tcp", "none", 3),
        ("replica", "tcp", "udp", 0),
    ],
)
def test_round_trips_of_a_zone(
    policy: round_trips.Policy, transport: round_trips.Transport, soa: round_trips.Soa, count: int
) -> None:
    assert sum(round_trips.of_zone(policy, transport, soa).values()) == count


def test_twice_the_workers_halve_the_time() -> None:
    """S3, and the defaults of FINDINGS: 100,000 zones over 200 ms, two at a time."""
    zone_s = round_trips.zone_s(2, 0.2)
    assert round_trips.time_s(100_000, zone_s, 2) == pytest.approx(20_000)
    assert round_trips.time_s(100_000, zone_s, 4) == pytest.approx(10_000)
    assert round_trips.time_s(3, zone_s, 2) == pytest.approx(0.8), "the last round is a whole one"


def test_what_is_lost_waits_for_a_time_out() -> None:
    assert round_trips.zone_s(2, 0.3, loss=0.1, rto_s=0.5) == pytest.approx(2 * (0.3 + 0.1))


@pytest.mark.parametrize(("segments", "rounds"), [(1, 0), (10, 0), (11, 1), (30, 1), (31, 2), (70, 2), (71, 3)])
def test_slow_start(segments: int, rounds: int) -> None:
    """Ten, then twenty, then forty segments (RFC 6928)."""
    assert round_trips.slow_start_rounds(segments * 1448) == rounds


def test_the_port_wall() -> None:
    assert ports.PORTS == 28_232
    assert ports.connections_per_s() == pytest.approx(470.5, abs=0.1)
    assert [ports.time_s(n) for n in (0, 1, 28_232, 28_233, 56_464, 100_000)] == [0, 0, 0, 60, 60, 180]


def test_s1s_thirty_thousand_zones_lie_behind_the_wall() -> None:
    """66 to 181 s."""
    assert ports.time_s(30_000) <= 66


def test_volume() -> None:
    """S1's .ch is what the bytes of a record are from; 691 MB at 20 Mbit/s of full packets are 286 s."""
    assert volume.bytes_of(1, 14e6) == pytest.approx(691e6, rel=0.005)
    assert volume.payload_rate(2.5e6) == pytest.approx(2.413e6, rel=1e-3)
    assert volume.time_s(691e6, volume.payload_rate(2.5e6)) == pytest.approx(286.3, rel=1e-3)
    assert volume.time_s(1.0, math.inf) == 0


def test_buffers_and_sharing() -> None:
    assert buffers.bytes_per_s(0.25, 3e6) == 12e6
    assert sharing.uplink_time_s(1e6, 1000, 1e8) == 10
    assert sharing.work_time_s(1000, 100, 1e-4) == 10


def test_what_primaries_cost_is_as_published_here() -> None:
    """docs/results/primaries.md has the table that these are from."""
    table = (Path(__file__).parents[2] / "docs/results/primaries.md").read_text()
    for kind, primary in primaries.known().items():
        for transport, name in (("tcp", "tcp"), ("xot", "xot (resumed)")):
            row = re.search(rf"^\| {primary.title}, {re.escape(name)} \|(.* / .*)\|$", table, re.MULTILINE)
            told = [float(cell.split("/")[0].replace(",", "")) for cell in row[1].split("|")] if row else [None] * 3
            for policy, each_us in zip(("one", "reused", "pipelined"), told, strict=True):
                found_s = primaries.zone_s(kind, policy, transport)  # type: ignore[arg-type]
                assert found_s == (None if each_us is None else pytest.approx(each_us / 1e6)), (kind, policy, transport)
    assert primaries.zone_s("knot", "replica", "tcp") is None
    # One zone of 6.5 million: a tenth to a fifth of what its secondaries took.
    assert 0.64 < (primaries.zone_s("nsd", "one", "tcp", 6.5e6) or 0) < 1.96


def test_order_under_jitter_against_a_simulation() -> None:
    """The closed form, and packets one by one, each delivered no sooner than those before it."""
    for packets_per_s in (20.0, 300.0, 1700.0):
        draw, now_s, free_s, total_s, count = random.Random(7), 0.0, 0.0, 0.0, 60_000
        for _ in range(count):
            now_s += draw.expovariate(packets_per_s)
            free_s = max(free_s, now_s + draw.uniform(0.075, 0.175))
            total_s += free_s - now_s
        assert jitter.delay_s(0.125, 0.05, packets_per_s) == pytest.approx(total_s / count, rel=0.01)


def test_jitter_at_both_ends() -> None:
    assert jitter.delay_s(0.125, 0.05, 0) == 0.125
    assert jitter.delay_s(0.125, 0.05, 1e-3) == pytest.approx(0.125, rel=1e-3)
    assert jitter.delay_s(0.125, 0.05, 1e9) == pytest.approx(0.175, rel=1e-3)
    assert jitter.delay_s(0.125, 0.05, 1700, ordered=False) == 0.125
    # As netem was seen to do it: p50 164 ms.
    assert jitter.delay_s(0.125, 0.05, 1700) == pytest.approx(0.164, abs=0.003)


@given(st.floats(0, 1), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_busier_path_is_never_quicker(jitter_s: float, one: float, other: float) -> None:
    idle, busy = sorted((one, other))
    low, high = (jitter.delay_s(1.0, jitter_s, rate) for rate in (idle, busy))
    assert 1.0 - 1e-9 <= low <= high + 1e-9 <= 1.0 + jitter_s + 2e-9


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: volume.time_s(1, 0),
        lambda: jitter.delay_s(-1, 0, 0),
        lambda: ports.time_s(1, 0),
        lambda: round_trips.time_s(1, 1, 0),
        lambda: round_trips.zone_s(-1, 1),
        lambda: round_trips.zone_s(1, 0.1, loss=-0.1),
        lambda: round_trips.time_s(-1, 0.1, 1),
        lambda: round_trips.implied(1, 0, 1, 1),
        lambda: round_trips.implied(1, 1, 0, 1),
        lambda: congestion.bytes_per_s("reno", 1.0, 0.1),
        lambda: buffers.bytes_per_s(-1),
        lambda: sharing.uplink_time_s(1, 0, 1),
        lambda: sharing.work_time_s(1, 1, -1),
    ],
)
def test_nonsense_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError):
        wrong()  # type: ignore[operator]


def test_the_least_values_that_laws_take() -> None:
    assert round_trips.zone_s(0, 0.0) == round_trips.time_s(0, 0.0, 1) == 0
    assert round_trips.implied(0.5, 1, 0.25, 1) == 2
    assert [ports.time_s(zones, 1) for zones in (0, 1, 2, 3)] == [0, 0, 60, 120]
    assert jitter.delay_s(0, 0, 0) == 0


def test_a_path_that_is_full_takes_no_more_rounds() -> None:
    """Ten segments, then twenty; then the path has no room for more. An endless one takes two rounds more."""
    assert round_trips.slow_start_rounds(71 * 1448, 30 * 1448) == 1
    assert round_trips.slow_start_rounds(0) == 0
