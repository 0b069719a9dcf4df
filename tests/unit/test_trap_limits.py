"""What decides in a trap, on both sides of each limit, as worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic
from golden_files import hold
from load_rows import MS, SECOND, Asked, load, log_normal, ramp, stalling
from path_data import over_path
from replication_data import answered, replicated
from socket_data import bulk
from transfer_rows import Transfer, frame, put, zone
from trial_data import clean_trial, fields_of, judge, measured, series, use

from dnsrig.lab import links
from dnsrig.rundir import Anchor, PathSpec, ServerLimit, Variant
from dnsrig.runs import sockets
from dnsrig.runs.latency import Histogram, Interval
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.row_files.load import CLIENTS
from dnsrig.runs.row_files.transfer import TRANSFERS
from dnsrig.runs.row_files.watch import SOCKETS
from dnsrig.runs.streamed import HitRatio
from dnsrig.runs.trial import Trial
from dnsrig.traps.blocked_thread import _generator_was_late
from dnsrig.traps.client_rate_limit import Halves, by_prefix, halves_of
from dnsrig.traps.clock_steps import steps
from dnsrig.traps.cold_first_interval import (
    chance_of_first,
    cold_start,
    is_like_a_pause,
    percentile_for,
    whole_intervals,
)
from dnsrig.traps.delayed_ack import Heap, heap_of
from dnsrig.traps.downsampled_clients import missing
from dnsrig.traps.few_bytes_a_message import Messages, messages_of
from dnsrig.traps.generator_bottleneck import beside_echo
from dnsrig.traps.idle_wait import Activity, Pause, _timer
from dnsrig.traps.jitter_reorders import Free
from dnsrig.traps.machines_disagree import Pair, _all_ways, _drawn
from dnsrig.traps.mean_hides_tail import hidden_tail
from dnsrig.traps.mss_above_path_mtu import Narrow
from dnsrig.traps.non_linear_growth import Size, first_rise
from dnsrig.traps.rate_not_sent import Sent, at_capacity, at_rate
from dnsrig.traps.server_rate_limit import cpu_share, steady_rate
from dnsrig.traps.small_behind_large import queue_of
from dnsrig.traps.small_buffers import Bound, bound_of, buffer_bytes, set_by_server
from dnsrig.traps.stalled_server import _times
from dnsrig.traps.too_few_repeats import judge as repeats_judged
from dnsrig.traps.transfer_limit import Limit


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


# --- small-buffers ---


@pytest.mark.parametrize(
    ("by_receiver", "by_sender", "unread", "slow"),
    [(0.5, 0.4, 250, False), (0.5, 0.4, 251, True), (0.5, 0.5, 251, False), (0.4, 0.5, 900, False)],
)
def test_a_reader_is_slow_with_more_than_a_quarter_unread(
    by_receiver: float, by_sender: float, unread: float, slow: bool
) -> None:
    assert Bound(1.0, by_receiver, by_sender, in_flight_bytes=1000, unread_bytes=unread).reader_is_slow == slow


SIZES = (4_096, 131_072, 6_291_456)


@pytest.mark.parametrize(
    ("nbytes", "sizes", "own"),
    [
        ([300_000] * 5, SIZES, 300_000),
        ([0, *[300_000] * 5], SIZES, 300_000),
        ([300_000] * 4, SIZES, None),
        ([*[300_000] * 5, 300_001], SIZES, None),
        ([131_072] * 5, SIZES, None),
        ([131_073] * 5, SIZES, 131_073),
        ([131_071] * 5, SIZES, 131_071),
        ([6_291_456] * 5, SIZES, None),
        ([6_291_455] * 5, SIZES, 6_291_455),
        ([300_000] * 5, None, None),
        ([], SIZES, None),
    ],
)
def test_a_buffer_that_keeps_its_size_was_set(
    nbytes: list[int], sizes: tuple[int, int, int] | None, own: int | None
) -> None:
    assert set_by_server(pl.Series(nbytes, dtype=pl.Int64), sizes) == own


# --- generator-bottleneck ---

FAILED = {"rate_qps": 25_000, "holds": False, "loss_share": 0.05}


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        ({"busy_share": 0.95}, "found"),
        ({"busy_share": 0.949}, "clear"),
        ({"sent_qps": 24_749}, "found"),
        ({"sent_qps": 24_750}, "clear"),
        ({"sent_qps": 24_749, "instrument_failed": False}, "clear"),
        ({"lag_p99_ns": 200_001}, "found"),
        ({"lag_p99_ns": 200_000}, "clear"),
        ({"lag_p99_ns": 100_001, "p99_ns": 0}, "found"),
        ({"lag_p99_ns": 100_000, "p99_ns": 0}, "clear"),
    ],
)
def test_a_step_that_the_generator_could_not_send(trial: Trial, fault: dict[str, Any], verdict: str) -> None:
    ramp(trial, [{"rate_qps": 20_000, "holds": True}, FAILED | fault], 20_000)
    assert judge("generator-bottleneck", trial).verdict == verdict


@pytest.mark.parametrize(("busy_share", "verdict"), [(0.95, "found"), (0.949, "clear")])
def test_a_thread_without_a_pause_limits_a_closed_loop(trial: Trial, busy_share: float, verdict: str) -> None:
    load(trial, Asked(qps=100), log_normal(0.2, 0.4), model="closed", busy_share=busy_share)
    assert judge("generator-bottleneck", trial).verdict == verdict


def test_a_rate_near_that_of_the_echo_server() -> None:
    assert beside_echo(94_999, 100_000, "capacity_qps").verdict == "clear"
    assert beside_echo(95_000, 100_000, "capacity_qps").verdict == "found"
    assert beside_echo(98_765.43, 100_000.46, "capacity_qps").evidence == {
        "answered_qps": 98_765.4,
        "echo_answered_qps": 100_000.5,
        "of_echo_percent": 98.8,
    }


@pytest.mark.parametrize(
    ("threads", "lag_ns", "late"), [(2, 200_001, True), (2, 200_000, False), (1, 900_000, False), (2, 0, False)]
)
def test_a_generator_of_one_thread_blocks_none_of_several(trial: Trial, threads: int, lag_ns: int, late: bool) -> None:
    trial.record.instruments["load"] = {
        "threads": threads,
        "lag_ns": {"p99": lag_ns},
        "sent_latency_ns": {"p99": 2 * MS},
    }
    assert _generator_was_late(trial) == late


@pytest.mark.parametrize(
    ("asked", "due", "sent", "chance", "miss"),
    [
        (1000, 1000, 990, 0.0, -0.01),
        (1000, 1000, 1020, 0.0, 0.02),
        (1000, 980, 980, 0.0, -0.02),
        (1000, 980, 980, 0.015, -0.005),
        (1000, 980, 980, 0.03, 0.0),
        (1000, 1020, 1020, 0.015, 0.005),
        (1000, 1000, 970, 0.02, -0.03),
    ],
)
def test_a_rate_misses_what_was_due_or_asked_beyond_chance(
    asked: float, due: float, sent: float, chance: float, miss: float
) -> None:
    assert Sent(asked, due, sent, chance).miss == pytest.approx(miss)


# --- cold-first-interval ---


def interval(values_ms: Iterable[float], duration_s: float = 1.0) -> Interval:
    counted: dict[int, int] = {}
    for value in values_ms:
        counted[round(value * MS)] = counted.get(round(value * MS), 0) + 1
    return Interval(0.0, duration_s, Histogram.of(counted))


PAUSED_MS = [float(wait) for wait in range(1, 101)]
"""A server that stood still for 100 ms, asked every millisecond."""


@pytest.mark.parametrize(
    ("waits_ms", "like"),
    [
        ([*PAUSED_MS, *[0.2] * 900], True),
        ([*[10_000.0] * 9, *PAUSED_MS, *[0.2] * 891], True),  # the tenth longest wait counts as well
        ([*[10_000.0] * 10, *PAUSED_MS, *[0.2] * 890], False),
        ([10.0, *[0.2] * 99], True),
        ([*[100.0] * 96, *[0.2] * 904], True),  # 50 are expected: one and a half times as many, and three deviations
        ([*[100.0] * 97, *[0.2] * 903], False),
        ([*[100.0] * 4, *[0.2] * 996], True),
        ([*[100.0] * 3, *[0.2] * 997], False),  # fewer than a sixteenth
    ],
)
def test_late_queries_as_after_one_pause(waits_ms: list[float], like: bool) -> None:
    assert is_like_a_pause([interval(waits_ms)]) == like


def test_the_chance_of_slowest_intervals_that_come_first() -> None:
    assert chance_of_first(2, 2, 10) == pytest.approx(0.01)
    assert chance_of_first(1, 2, 10) == pytest.approx(0.19)
    assert chance_of_first(0, 3, 5) == pytest.approx(1)
    assert chance_of_first(2, 3, 2) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("queries", "percent"), [(1000, 99), (999, 95), (200, 95), (199, 90), (100, 90), (99, 75), (40, 75), (39, None)]
)
def test_ten_queries_lie_beyond_a_percentile(queries: int, percent: float | None) -> None:
    assert percentile_for(queries) == percent


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([2.1, 1, 1, 1, 1], (1, 2.1, 1, 1)),
        ([2, 1, 1, 1, 1], None),
        ([9, 8, 3, 1, 1, 2, 1], (3, 9, 1, 2)),
        ([9, 2, 1, 1, 1, 1], (1, 9, 1, 2)),
    ],
)
def test_how_many_intervals_are_cold(values: list[float], found: tuple[float, ...] | None) -> None:
    cold = cold_start(values)
    assert (cold and (cold.intervals, cold.first, cold.usual, cold.largest)) == found


def test_a_short_last_interval_is_no_whole_one() -> None:
    some = [interval([1.0]), interval([]), interval([2.0], 0.91), interval([3.0], 0.9)]
    assert whole_intervals(some) == [some[0], some[2]]
    assert whole_intervals([]) == []


# --- mean-hides-tail ---


@pytest.mark.parametrize(
    ("values_ns", "counts", "beyond"),
    [
        ([MS, 99 * MS], [9_989, 10], 10),
        ([MS, 99 * MS], [9_990, 9], None),
        ([50_000, MS], [9_900, 100], 100),
        ([50_000, MS - 1], [9_900, 100], None),
        ([MS, 10 * MS, 99 * MS], [99_000, 990, 10], None),
        ([MS, 10 * MS, 99 * MS], [99_000, 985, 15], 15),
    ],
)
def test_how_many_queries_are_in_a_tail(values_ns: list[int], counts: list[int], beyond: int | None) -> None:
    tail = hidden_tail(Histogram(values_ns, counts))
    assert (tail.beyond if tail else None) == beyond


# --- delayed-ack ---


@pytest.mark.parametrize(
    ("waits", "shorter", "longer", "share", "stands_out"),
    [
        (5, 1, 2, 0.1, True),
        (4, 0, 0, 0.9, False),
        (6, 2, 0, 0.9, True),
        (5, 2, 0, 0.9, False),
        (6, 0, 3, 0.9, True),
        (5, 0, 3, 0.9, False),
        (5, 0, 0, 0.099, False),
    ],
)
def test_when_a_heap_of_silences_stands_out(
    waits: int, shorter: int, longer: int, share: float, stands_out: bool
) -> None:
    heap = Heap(pl.Series([41] * waits), waits, first=0, shorter=shorter, longer=longer, share=share)
    assert heap.stands_out == stands_out


def test_the_heap_lies_from_39_to_56_ms_and_its_neighbours_are_as_wide() -> None:
    waits = [21.9, 22.0, 38.9, 39.0, 56.0, 56.1, 73.0, 73.1]
    made = [Transfer(zone(n), 200 * n, 200 * n + wait, 200 * n + wait) for n, wait in enumerate(waits)]
    heap = heap_of(frame([each.row() for each in made], TRANSFERS), 0.0)
    assert (sorted(heap.waits_ns), heap.shorter, heap.longer) == ([39 * MS, 56 * MS], 2, 2)
    assert (heap.transfers, heap.first) == (2, 2)


# --- few-bytes-a-message ---


@pytest.mark.parametrize(
    ("nbytes", "messages", "verdict"),
    [
        (102_400, 26, "found"),
        (102_400, 25, "clear"),
        (102_399, 26, "clear"),
        (4_096, 2, "found"),
        (4_096, 1, "clear"),
        (4_097, 2, "clear"),
    ],
)
def test_a_message_is_small_below_4_kib(trial: Trial, nbytes: int, messages: int, verdict: str) -> None:
    put(trial, [Transfer(zone(0), 0, 0.5, 0.9, nbytes, messages)])
    assert judge("few-bytes-a-message", trial).verdict == verdict


@pytest.mark.parametrize(
    ("transfers", "concerned", "stands_out"), [(4, 2, True), (5, 2, False), (1, 1, True), (0, 0, False)]
)
def test_half_of_the_transfers_make_a_habit(transfers: int, concerned: int, stands_out: bool) -> None:
    made = Messages(transfers, concerned, messages=4, nbytes=10, needed=1)
    assert (made.stands_out, made.mean_bytes) == (stands_out, 2.5)


def test_how_many_full_messages_would_be_enough() -> None:
    found = messages_of(pl.DataFrame({"bytes": [16_384, 16_385, 1], "messages": [5, 6, 7]}), pl.col("bytes") > 1)
    assert (found.transfers, found.concerned, found.messages, found.nbytes, found.needed) == (3, 2, 11, 32_769, 3)


# --- small-behind-large ---

NS = 1 / MS
"""A nanosecond, in ms."""


@pytest.mark.parametrize(
    ("large", "small", "waits"),
    [
        ({}, {}, True),
        ({"nbytes": 5_999}, {}, False),
        ({"asked_ms": NS}, {}, False),  # the small one was asked for first
        ({"first_ms": 10 + NS}, {}, False),  # it was being sent for less than 10 ms, and than half of the wait
        ({}, {"first_ms": 20 - NS}, False),
        ({}, {"first_ms": 20 + NS}, False),
        ({}, {"asked_ms": 5, "first_ms": 25}, True),
        ({}, {"asked_ms": 20, "first_ms": 30}, False),
        ({}, {"connection": 1}, False),
        ({}, {"first_ms": None}, False),
    ],
)
def test_a_small_zone_that_waits_for_a_large_one(large: dict[str, Any], small: dict[str, Any], waits: bool) -> None:
    """20 times as large, and sent for 10 of the 20 ms that the small one waits."""
    one: dict[str, Any] = {"zone": "large", "asked_ms": 0, "first_ms": 10, "last_ms": 20, "nbytes": 6_000}
    other: dict[str, Any] = {"zone": "small", "asked_ms": 0, "first_ms": 20, "last_ms": 40, "nbytes": 300}
    rows = frame([Transfer(**(one | large)).row(), Transfer(**(other | small)).row()], TRANSFERS)
    queue = queue_of(rows)
    assert (queue is not None) == waits
    if queue is not None:
        assert (queue.waits_ns.to_list(), queue.behind, queue.nbytes, queue.zone) == ([20 * MS], 1, 6_000, "large")
        assert queue.others_ns is None


# --- transfer-limit ---


@pytest.mark.parametrize(
    ("change", "is_met"),
    [
        ({}, True),
        ({"attempts": 101}, False),
        ({"outstanding": 1}, False),
        ({"at_work": 0}, False),
        ({"at_work": 0, "in_a_row": 3}, True),
        ({"at_work": 0, "in_a_row": 3, "recovered": 0}, False),
        ({"recovered": 0}, True),
        ({"recovered": 0, "is_steady": False}, False),
        ({"is_steady": False}, True),
        ({"zones": 3, "is_steady": False}, False),
    ],
)
def test_when_refusals_are_a_limit(change: dict[str, Any], is_met: bool) -> None:
    usual = {"refused": 1, "attempts": 100, "outstanding": 2, "at_work": 1, "is_steady": True, "in_a_row": 0}
    assert Limit(**(usual | {"zones": 2, "recovered": 1} | change)).is_met == is_met


# --- client-rate-limit ---


@pytest.mark.parametrize(
    ("limited", "heavy", "others", "told"),
    [
        (20, 0.0625, 0.0124, True),
        (19, 0.0625, 0.0124, False),
        (20, 0.0625, 0.0125, False),
        (20, 0.02, 0.0, False),
        (20, 0.021, 0.0, True),
    ],
)
def test_when_heavy_clients_are_limited(limited: int, heavy: float, others: float, told: bool) -> None:
    assert Halves("clients", 1, 20, limited, heavy, others).told == told


def test_clients_of_a_replay_have_addresses_in_a_row() -> None:
    """From the second address of the range on: client 254 has .255."""
    columns = {"client": [0, 254, 255, 511], "answered": [1, 2, 4, 8], "unanswered": [0] * 4, "truncated": [1] * 4}
    rows = by_prefix(pl.DataFrame(columns)).sort("client")
    assert rows.rows() == [(0, 3, 0, 2), (1, 4, 0, 1), (2, 8, 0, 1)]


# --- paths ---


@pytest.mark.parametrize(
    ("dropped", "mss_bytes", "agreed_bytes", "is_met"),
    [
        (0, 2_000, None, False),
        (1, None, None, True),
        (None, 1_261, None, True),
        (None, 1_261, 1_260, True),
        (None, 1_260, None, None),
        (None, 1_260, 1_260, False),
        (None, 1_260, 1_261, None),
        (None, None, 1_260, None),
    ],
)
def test_whether_a_narrow_path_was_met(
    dropped: int | None, mss_bytes: int | None, agreed_bytes: int | None, is_met: bool | None
) -> None:
    path = PathSpec(mtu_bytes=1300)
    narrow = Narrow("a", "b", 1_500, path, 1_300, dropped, mss_bytes, 0, headers_bytes=40, agreed_bytes=agreed_bytes)
    assert narrow.fits_bytes == 1_260 and narrow.is_met is is_met


@pytest.mark.parametrize(
    ("overtaken_percent", "resent", "lost", "needless", "is_clean"),
    [
        (0, 5, 5, 0, True),
        (0, 6, 5, 1, False),
        (0, 4, 5, 0, True),
        (0.1, 5, 5, 0, False),
        (None, 5, 5, 0, False),
        (0, None, 5, 0, True),
        (0, 9, None, 0, True),
    ],
)
def test_what_was_sent_again_beyond_the_losses(
    overtaken_percent: float | None, resent: int | None, lost: int | None, needless: int, is_clean: bool
) -> None:
    free = Free("a", "b", PathSpec(jitter_ms=5), overtaken_percent, resent, lost)
    assert (free.needless, free.is_clean) == (needless, is_clean)


# --- others ---


@pytest.mark.parametrize(
    ("busiest", "moved", "disk", "none"),
    [(0.34, 0.3, 0.49, True), (0.35, 0.3, 0.49, False), (0.34, 0.31, 0.49, False), (0.34, 0.3, 0.5, False)],
)
def test_a_server_that_does_nothing(busiest: float, moved: float, disk: float, none: bool) -> None:
    assert Activity(busiest, busiest, moved, disk).none == none


@pytest.mark.parametrize(
    ("set_by_ns", "found"), [(1_000_400, 0), (1_000_401, 1), (-1_000_400, 0), (-1_000_401, 1), (0, 0)]
)
def test_a_step_exceeds_the_errors_of_both_readings(set_by_ns: int, found: int) -> None:
    before = Anchor(monotonic_ns=7, realtime_ns=100, error_ns=150)
    after = Anchor(monotonic_ns=7 + SECOND, realtime_ns=100 + SECOND + set_by_ns, error_ns=250)
    assert [step.size_ns for step in steps([before, after])] == [set_by_ns] * found


@pytest.mark.parametrize(
    ("durations", "words"),
    [
        ([5.0], "Once, for 5 ms,"),
        ([1.2, 1.4], "2 times, for 1 ms,"),
        ([1.0, 2_000.0, 3.0], "3 times, for 1 to 2,000 ms,"),
    ],
)
def test_stalls_in_words(durations: list[float], words: str) -> None:
    assert _times(durations) == words


@pytest.mark.parametrize("sizes", [[2, 4], [3, 3], [1, 2, 3]])
def test_each_way_to_deal_out_rounds_has_each_round_once(sizes: list[int]) -> None:
    rounds = list(range(10, 16))

    def shape(way: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
        return [len(group) for group in way], sorted(number for group in way for number in group)

    every = list(_all_ways(rounds, sizes))
    assert all(shape(way) == (sizes, rounds) for way in [*every, *list(_drawn(rounds, sizes))[:50]])
    assert len(every) == len({tuple(tuple(sorted(group)) for group in way) for way in every})


@pytest.mark.parametrize(("logs", "apart"), [([2.01, 4.0], True), ([1.99, 4.0], False), ([-2.01, -4.0], True)])
def test_a_machine_stands_apart_by_three_standard_errors(logs: list[float], apart: bool) -> None:
    one, other = (Variant(id=name, parameters={}) for name in ("one", "other"))
    assert Pair(one, other, dict(enumerate(logs))).stands_apart([0, 1]) == apart


@pytest.mark.parametrize(("lost", "verdict"), [(10, "found"), (9, "clear")])
def test_a_hundredth_of_the_queries_on_silent_connections(trial: Trial, lost: int, verdict: str) -> None:
    """Out of a thousand; all other queries had an answer."""
    counts = [(0, 0, 10, 0), (1, 0, 0, lost), (0, 1, 490, 0), (1, 1, 500 - lost, 0)]
    rows = [(start * SECOND, client, answered, unanswered, 0, 0) for start, client, answered, unanswered in counts]
    columns = ["start_ns", "client", "answered", "unanswered", "sum_ns", "max_ns"]
    made = pl.DataFrame(rows, schema=columns, orient="row").cast(dict(CLIENTS.schema))  # type: ignore[arg-type]
    made.write_ipc_stream(trial.directory / "clients.arrow")
    trial.record.instruments["load"] = {"model": "rate", "transport": "tcp", "due": 1000, "sent": 1000}
    assert judge("silent-connections", trial).verdict == verdict


def test_what_the_instrument_dropped_has_nothing_to_do_with_stalls(trial: Trial) -> None:
    load(trial, Asked(qps=500), stalling(log_normal(0.2, 0.4), every_ms=1000, stall_ms=300))
    start = measured(trial, 12)
    grown = {"primary": 0, "secondary": 0, "observer": 7}
    use(
        trial,
        series(start - SECOND, **{f"{h}__udp__rcvbuf_errors": [2, 2, *[2 + n] * 12] for h, n in grown.items()}),
    )
    found = judge("udp-buffer-drops", trial)
    assert found.verdict == "found" and "dropped_in_stalls_percent" not in found.evidence


# --- non-linear-growth ---


@pytest.mark.parametrize(
    ("smaller_s", "larger_s", "rises"),
    [
        ([4.0, 4.0, 4.0], [10.1, 11.0, 12.0], True),  # 8 s are proportional, and a quarter more is 10 s
        ([4.0, 4.0, 4.0], [10.0, 11.0, 12.0], False),
        ([1.0, 4.0, 4.0], [10.0, 11.0, 12.0], False),  # the slowest repeat counts
        ([0.5, 0.5, 0.5], [1.51, 1.6, 1.6], True),  # more than half a second beyond 1 s
        ([0.5, 0.5, 0.5], [1.5, 1.6, 1.6], False),
    ],
)
def test_growth_beyond_a_quarter_and_half_a_second(smaller_s: list[float], larger_s: list[float], rises: bool) -> None:
    sizes = [Size("a", 100, [], smaller_s, censored=False), Size("b", 200, [], larger_s, censored=False)]
    assert first_rise(sizes) == (tuple(sizes) if rises else None)
    assert first_rise([replace(sizes[0], censored=True), sizes[1]]) is None
    assert first_rise(sizes[:1]) is None


def test_the_cheapest_smaller_size_is_compared() -> None:
    sizes = [
        Size(str(zones), zones, [], [time_s] * 3, censored=False) for zones, time_s in ((10, 9.0), (20, 2.0), (40, 9.0))
    ]
    assert first_rise(sizes) == (sizes[1], sizes[2])


# --- too-few-repeats ---


@pytest.mark.parametrize(
    ("values", "comparisons", "machines"),
    [
        ([10.0, 11.0, 12.0, 13.0], 0, 1),
        ([10.0, 11.0, 12.0, 13.0, 14.0], 0, 1),
        ([10.0, 20.0, 30.0, 15.0, 25.0, 12.345], 1, 1),
        ([10.0, 20.0, 30.0, 15.0, 25.0, 12.345], 0, 2),
        ([10.0, 10.1, 10.2, 10.0, 10.1], 1, 1),
        ([10.0, 10.1, 10.2, 10.0, 10.1], 7, 1),
        ([10.0, 10.1, 10.2, 10.0, 10.1, 10.2], 1, 2),
        ([0.0] * 5, 0, 1),
    ],
)
def test_repeats_that_are_too_few(values: list[float], comparisons: int, machines: int) -> None:
    """The conclusions are in unit/golden/repeats."""
    found = [repeats_judged(values, values, name, comparisons, machines) for name in ("transfer_time_s", "p99_ms")]
    hold("repeats", [fields_of(conclusion) for conclusion in found])


# --- shares of connections and streams ---


def asked(trial: Trial, **summary: Any) -> Trial:
    trial.record.instruments["load"] = {"model": "rate", "transport": "doq", "due": 1000, "sent": 1000, **summary}
    return trial


def test_a_hundredth_of_the_queries_waits_for_a_stream(trial: Trial) -> None:
    assert judge("stream-limit", asked(trial, waited_for_stream=10)).verdict == "found"
    assert judge("stream-limit", asked(trial, waited_for_stream=9)).verdict == "clear"
    assert judge("stream-limit", asked(trial, model="ramp", waited_for_stream=0)).verdict == "clear"


def test_a_tenth_of_the_early_data_is_refused(trial: Trial) -> None:
    for rejected, verdict in ((10, "found"), (9, "clear")):
        made = {"early_accepted": 100 - rejected, "early_rejected": rejected}
        assert judge("early-data-refused", asked(trial, connections=made)).verdict == verdict


@pytest.mark.parametrize(
    ("clients", "threads", "verdict"), [(3, 4, "found"), (4, 4, "clear"), (1, 2, "found"), (0, 2, "clear")]
)
def test_each_thread_needs_a_connection(trial: Trial, clients: int, threads: int, verdict: str) -> None:
    trial.record.spec.hosts[trial.subject].cpus = list(range(threads))
    trial.record.spec.options |= {"clients": clients}
    assert judge("few-connections", asked(trial, model="closed", transport="tcp")).verdict == verdict


# --- times ---


def test_a_cycle_as_long_as_its_transfer_is_long_enough(trial: Trial) -> None:
    trial.record.spec.options = {"cycle_s": 60.0}
    for time_s, verdict in ((60.0, "clear"), (60.001, "found")):
        synthetic.known(trial, **{trial.record.spec.main_metric: time_s})
        assert judge("cycle-too-short", trial).verdict == verdict


@pytest.mark.parametrize(("early_ms", "servfail", "verdict"), [(100, 1, "found"), (99, 1, "clear"), (100, 0, "clear")])
def test_a_secondary_that_answers_a_tenth_of_a_second_early(
    tmp_path: Path, early_ms: int, servfail: int, verdict: str
) -> None:
    trial = replicated(tmp_path)
    answered(trial, first_s=1, stored_s=2, servfail=servfail)
    trial.record.instruments["probe"]["first_answer_ns"] = (
        trial.record.instruments["replica"]["stored_ns"] - early_ms * MS
    )
    assert judge("replica-not-in-sync", trial).verdict == verdict


def test_jitter_on_the_way_back_is_told_of_its_sender(trial: Trial) -> None:
    over_path(trial, PathSpec(delay_ms=5))
    back = PathSpec(delay_ms=125, jitter_ms=50, ordered=False)
    trial.record.spec.links[0] = links.joined(
        ("primary", "secondary"), "tun", forward=PathSpec(delay_ms=5), reverse=back
    )
    found = judge("jitter-reorders", trial)
    assert found.summary.startswith("Packets from secondary to primary have a delay of 125 ± 50 ms")


# --- a send buffer that the kernel does not count ---


@pytest.mark.parametrize(
    ("written", "cwnd", "buffer_bytes", "share"),
    [
        (59 * 1_448, 63, 170_864, 1.0),
        (59 * 1_448 + 1, 63, 170_864, 0.0),  # more is written than is under way
        (59 * 1_448, 62, 170_864, 0.0),  # the window has room for less than a tenth more
        (59 * 1_448, 63, 170_866, 0.0),  # less than half of the buffer
        (59 * 1_448, 63, None, 0.0),
        (0, 63, 170_864, 0.0),
    ],
)
def test_a_send_buffer_is_full_if_nothing_else_holds_back(
    trial: Trial, written: int, cwnd: int, buffer_bytes: int | None, share: float
) -> None:
    """57 segments of 1,448 bytes are under way."""
    bulk(trial, under_way=57)
    listed = trial.sockets.with_columns(send_queue_bytes=pl.lit(written, pl.UInt32), cwnd=pl.lit(cwnd, pl.UInt32))
    trial.__dict__["sockets"] = listed.cast(dict(SOCKETS.schema))  # type: ignore[arg-type]
    flow = sockets.largest(trial)
    assert flow is not None
    bound = bound_of(flow, buffer_bytes)
    assert (bound.by_sender, bound.by_receiver, bound.in_flight_bytes) == (share, 0, 57 * 1_448)


@pytest.mark.parametrize(
    ("words", "expected"),
    [("4096 16384 4194304", (4_096, 16_384, 4_194_304)), ("4096\t16384\t65536", (4_096, 16_384, 65_536)),
     ("4096 16384", None), ("1 2 3 4", None), ("a b c", None), ("1 2 -3", None)],
)  # fmt: skip
def test_a_sysctl_of_buffers_has_three_numbers(trial: Trial, words: str, expected: tuple[int, int, int] | None) -> None:
    trial.record.read_back = {}
    trial.record.spec.hosts["primary"].sysctls = {"net.ipv4.tcp_wmem": words}
    assert buffer_bytes(trial, "primary", "net.ipv4.tcp_wmem") == expected
    assert buffer_bytes(trial, "observer", "net.ipv4.tcp_wmem") is None


# --- timers and rates of servers ---


@pytest.mark.parametrize(
    ("pause_ms", "explained"), [(2_999, False), (3_000, True), (10_000, True), (12_500, True), (12_501, False)]
)
def test_a_timer_of_ten_seconds_explains_pauses_of_3_to_12_5_s(trial: Trial, pause_ms: int, explained: bool) -> None:
    assert trial.server is not None
    limit = ServerLimit(setting="retry", value=10, default=True, timer_s=10, remedy="lower it")
    trial.server.limits = [LIMIT_OF_A_RATE, limit]
    assert _timer(trial.server, Pause(5, 5 + pause_ms * MS)) == (limit if explained else None)


LIMIT_OF_A_RATE = ServerLimit(setting="rate", value=20, default=True, zones_per_s=20, remedy="raise it")


@pytest.mark.parametrize(
    ("rate", "busy", "verdict"),
    [(20, 0.49, "found"), (20, 0.51, "clear"), (23.1, 0.1, "clear"), (22.9, 0.1, "found"), (17.1, 0.1, "found"), (16.9, 0.1, "clear")],
)  # fmt: skip
def test_a_rate_within_15_percent_of_a_limit(trial: Trial, rate: float, busy: float, verdict: str) -> None:
    assert trial.server is not None
    trial.server.limits = [LIMIT_OF_A_RATE]
    usage = [round(busy * 1e6 * second) for second in range(-1, 8)]
    use(
        trial,
        series(measured(trial, 5) - SECOND, secondary__cgroup__cpu_usage_us=usage),
        [n / rate for n in range(100)],
    )
    assert judge("server-rate-limit", trial).verdict == verdict
    assert steady_rate(trial) == pytest.approx(rate) and cpu_share(trial) == pytest.approx(busy)


def test_a_rate_needs_50_zones_and_has_no_start_and_no_tail(trial: Trial) -> None:
    use(trial, series(0), [n / 10 for n in range(50)])
    assert steady_rate(trial) == pytest.approx(10)
    assert cpu_share(trial) is None
    use(trial, series(0), [n / 10 for n in range(49)])
    assert steady_rate(trial) is None
    use(trial, series(0), [*[0.0] * 10, *[1 + n / 10 for n in range(80)], *[99.0] * 10])
    assert steady_rate(trial) == pytest.approx(10)
    use(trial, series(0), [1.0] * 60)
    assert steady_rate(trial) is None


# --- rates of a load ---


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ({}, (100, 100, 100, 0.001)),
        ({"poisson": True}, (100, 100, 100, 4 / 1_000**0.5)),
        ({"sending_ns": 12_500_000_000}, (100, 100, 80, 0.001)),
        ({"sending_ns": 9_000_000_000}, (100, 100, 100, 0.001)),
        ({"due": 900, "sent": 800}, (100, 90, 80, 0.001)),
        ({"due": 0}, None),
        ({"asked_qps": None}, None),
        ({"end_ns": 0}, None),
    ],
)
def test_the_rates_of_a_load_of_ten_seconds(
    summary: dict[str, Any], expected: tuple[float, float, float, float] | None
) -> None:
    usual = {"model": "rate", "start_ns": 0, "end_ns": 10 * SECOND, "asked_qps": 100.0, "due": 1_000, "sent": 1_000}
    found = at_rate(LoadResult.model_validate(usual | {"sending_ns": 10 * SECOND} | summary))
    assert (found and (found.asked_qps, found.due_qps, found.sent_qps, found.chance)) == (
        expected and pytest.approx(expected)
    )


def test_the_rate_of_a_ramp_is_that_of_the_step_nearest_to_its_capacity(trial: Trial) -> None:
    steps_made = [
        {"rate_qps": 10_000, "holds": True, "sent_qps": 5_000},
        {"rate_qps": 20_000, "holds": True, "sent_qps": 19_500},
        {"rate_qps": 20_000, "holds": True, "sent_qps": 20_400, "repeat": 1},
        {"rate_qps": 21_000, "holds": False, "sent_qps": 1},
    ]
    ramp(trial, steps_made, 20_500)
    assert at_capacity(trial.load) == Sent(20_000, 20_000, 19_500, 0.0)
    ramp(trial, steps_made[3:], 20_500)
    assert at_capacity(trial.load) is None
    ramp(trial, steps_made, None)
    assert at_capacity(trial.load) is None


# --- clients of a replay ---


@pytest.mark.parametrize(
    ("clients", "heavy", "heavy_share"), [(39, 1, 0.5), (40, 2, 0.375), (2, 1, 0.5), (60, 3, 0.25 + 0.25 / 3)]
)
def test_one_client_in_twenty_is_heavy(clients: int, heavy: int, heavy_share: float) -> None:
    """The first asks 8 times, 4 of them in vain; the next one 8 times, 2 in vain; the third 8 times, 2 truncated."""
    columns = {
        "client": list(range(clients)),
        "answered": [4, 6, 8, *[1] * (clients - 3)][:clients],
        "unanswered": [4, 2, *[0] * (clients - 2)],
        "truncated": [0, 0, 2, *[0] * (clients - 3)][:clients],
    }
    found = halves_of("clients", pl.DataFrame(columns))
    assert found is not None
    assert (found.heavy_count, found.count) == (heavy, clients) and found.heavy == pytest.approx(heavy_share)
    assert halves_of("clients", pl.DataFrame({name: column[:1] for name, column in columns.items()})) is None


@pytest.mark.parametrize(
    ("half", "whole", "kept_share", "lost"),
    [(0.8, 0.85, 0.5, 0.05), (0.8, 0.85, 0.25, 0.1), (0.8, 0.85, 0.0625, 0.15), (0.9, 0.85, 0.25, 0.0), (0.8, 0.85, 1.0, 0.0)],
)  # fmt: skip
def test_what_each_doubling_of_the_clients_adds(half: float, whole: float, kept_share: float, lost: float) -> None:
    of_half, of_all = HitRatio(0.5, half, half, half), HitRatio(1.0, whole, whole, whole)
    assert missing(of_half, of_all, kept_share) == pytest.approx(lost)
