"""The first and the last minute of a replay on a resolver, and what went upstream."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import trial_data
import world_data
from load_rows import Counted
from trial_data import SECOND, clean_trial, series

from dnsrig.comparison.published import s5
from dnsrig.metrics.minutes import _grown_by
from dnsrig.rundir import LinkSpec
from dnsrig.runs import minutes, upstream
from dnsrig.runs.latency import Histogram, Interval
from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.runs.trial import Trial


@pytest.fixture
def replay(tmp_path: Path) -> Trial:
    """Ten seconds of queries, of which nobody waits for an answer after the fifth."""
    trial = clean_trial(tmp_path / "run")
    start_ns = trial_data.measured(trial, 12)
    spec = trial.record.spec
    spec.hosts["resolver"] = spec.hosts.pop("secondary").model_copy(update={"role": "resolver", "under_test": True})
    spec.hosts["internet"] = spec.hosts.pop("primary").model_copy(update={"role": "world"})
    spec.links = [LinkSpec(ends=(name, "resolver")) for name in ("internet", "clients", "observer")]
    trial.record.instruments["load"] = {"model": "stream"}
    rows = {"start_ns": [start_ns + second * SECOND for second in range(10)], "duration_ns": [SECOND] * 10}
    trial.__dict__["load_intervals"] = pl.DataFrame(rows)
    trial_data.use(
        trial,
        series(
            start_ns,
            resolver__cgroup__cpu_usage_us=[*range(0, 2_500_001, 500_000), *range(2_600_000, 3_200_001, 100_000)],
            resolver__cgroup__memory_anonymous_bytes=[0] * 6 + [1000] * 7,
            resolver__cgroup__memory_kernel_bytes=[0] * 6 + [10] * 7,
            resolver__link_internet__tx_packets=[0] * 6 + [10 * number for number in range(1, 8)],
            resolver__link_internet__rx_packets=[0] * 6 + [20 * number for number in range(1, 8)],
            resolver__link_clients__tx_packets=[100 * number for number in range(13)],
            resolver__link_observer__tx_packets=[999 * number for number in range(13)],
        ),
    )
    hits = {"counter": "cache_hits", "value": [0.0, 100.0, 400.0]}
    misses = {"counter": "cache_misses", "value": [0.0, 100.0, 100.0]}
    times = {"time_ns": [start_ns, start_ns + 5 * SECOND, start_ns + 10 * SECOND]}
    counters = pl.concat([pl.DataFrame({**times, **one}) for one in (hits, misses)])
    counters.write_ipc_stream(trial.directory / STATISTICS.name)
    over_tcp = {"time_ns": start_ns, "transport": "tcp", "queries": 10}
    world_data.write_queries(trial, {**over_tcp, "time_ns": 0}, over_tcp, {"time_ns": start_ns, "queries": 90})
    return trial


def test_a_short_replay_has_halves(replay: Trial) -> None:
    start_ns = replay.measure.start.monotonic_ns  # type: ignore[union-attr]
    assert minutes.stretch(replay, "first") == (start_ns, start_ns + 5 * SECOND)
    # The two seconds in which answers were waited for are no part of it.
    assert minutes.stretch(replay, "last") == (start_ns + 5 * SECOND, start_ns + 10 * SECOND)


def test_a_long_one_has_minutes(replay: Trial) -> None:
    assert replay.measure is not None
    replay.measure.end = trial_data.anchor(replay.measure.start, 1000)
    start_ns = replay.measure.start.monotonic_ns
    rows = {"start_ns": [start_ns, start_ns + 599 * SECOND], "duration_ns": [SECOND] * 2}
    replay.__dict__["load_intervals"] = pl.DataFrame(rows)
    assert minutes.stretch(replay, "first") == (start_ns, start_ns + 60 * SECOND)
    assert minutes.stretch(replay, "last") == (start_ns + 540 * SECOND, start_ns + 600 * SECOND)


def test_figures_are_those_of_the_minute(replay: Trial) -> None:
    assert replay.value("first_minute_cpu_percent") == pytest.approx(50)
    assert replay.value("last_minute_cpu_percent") == pytest.approx(10)
    assert replay.value("first_minute_hits_percent") == 50
    assert replay.value("last_minute_packets_per_s") == pytest.approx(100 + 10)
    # Of six samples the first lies on the border.
    assert replay.value("last_minute_memory_bytes") == pytest.approx(1010 * 5 / 6)
    assert replay.value("last_minute_time_wait") is None


def test_upstream_is_what_went_to_the_world(replay: Trial) -> None:
    assert replay.value("upstream_packets") == 70 + 140
    assert replay.value("upstream_bytes") is None
    assert replay.value("upstream_tcp_percent") == 10


def test_a_server_that_resolves_nothing_has_none(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    trial.record.instruments["load"] = {"model": "stream"}
    assert minutes.stretch(trial, "first") is None
    assert trial.value("upstream_packets") is None and trial.value("upstream_tcp_percent") is None


@pytest.mark.parametrize(("samples", "wanted"), [(1, None), (2, 50), (3, 50)])
def test_a_counter_grows_between_two_samples(replay: Trial, samples: int, wanted: float | None) -> None:
    file = replay.directory / STATISTICS.name
    pl.read_ipc_stream(file).group_by("counter").head(samples).write_ipc_stream(file)
    assert replay.value("first_minute_hits_percent") == wanted


def test_queries_upstream_are_those_of_measure_and_of_a_second_before(replay: Trial) -> None:
    start_ns, end_ns = replay.measure.start.monotonic_ns, replay.measure.end.monotonic_ns  # type: ignore[union-attr]
    times = [start_ns - SECOND, start_ns - SECOND + 1, start_ns, end_ns - 1, end_ns]
    world_data.write_queries(replay, *({"time_ns": time, "queries": 1 << place} for place, time in enumerate(times)))
    rows = upstream.queries(replay)
    assert rows["queries"].to_list() == [2, 4, 8]
    assert upstream.percent(rows, pl.col("queries") == 2) == pytest.approx(100 * 2 / 14)
    assert upstream.percent(rows.clear(), pl.col("queries") == 2) is None


def test_queries_of_the_first_minute_without_an_answer(replay: Trial) -> None:
    """In the first five seconds, 5 of 500 timed out and 2 were lost."""
    start_ns = replay.measure.start.monotonic_ns  # type: ignore[union-attr]
    rows = {
        "start_ns": [start_ns + second * SECOND for second in range(10)],
        "duration_ns": [SECOND] * 10,
        "due": [100] * 10,
        "timeouts": [1] * 5 + [50] * 5,
        "lost": [0, 2, 0, 0, 0] + [50] * 5,
    }
    replay.__dict__["load_intervals"] = pl.DataFrame(rows)
    assert s5._unanswered_percent(replay) == pytest.approx(1.4)
    replay.__dict__["load_intervals"] = pl.DataFrame(rows | {"due": [0] * 10})
    assert s5._unanswered_percent(replay) is None


def test_latencies_of_a_minute_are_of_intervals_whose_middle_lies_in_it(replay: Trial) -> None:
    """A millisecond is within a millisecond."""
    of_second = [Histogram.of({1_000_000: 3, 1_000_001: 1})] * 5 + [Histogram.of({5_000_000: 4})] * 5
    found = [Interval(float(number), 1.0, histogram) for number, histogram in enumerate(of_second)]
    replay.__dict__["latency"] = Counted(SECOND, {"due": found})
    first, last = minutes.latencies(replay, "first"), minutes.latencies(replay, "last")
    assert first is not None and last is not None
    assert (first.total, last.total, last.max_ns) == (20, 20, 5_000_000)
    assert s5._within(replay) == 75
    # The middle of an interval of ten seconds is the begin of the last half.
    replay.__dict__["latency"] = Counted(SECOND, {"due": [Interval(0.0, 10.0, of_second[0])]})
    assert minutes.latencies(replay, "first") is None and minutes.latencies(replay, "last") == of_second[0]


def test_a_link_that_was_not_sampled_makes_no_sum(replay: Trial) -> None:
    replay.__dict__["samples"] = replay.samples.filter(pl.col("source") != "link:clients")
    assert replay.value("last_minute_packets_per_s") is None


@pytest.mark.parametrize(("asked", "grown"), [(0.0, 0), (2.4, 0), (2.6, 100), (7.4, 100), (7.6, 400), (99.0, 400)])
def test_a_counter_is_read_nearest_to_a_moment(asked: float, grown: float) -> None:
    rows = pl.DataFrame({"time_ns": [10 * SECOND, 0, 5 * SECOND], "value": [407.0, 7.0, 107.0]})
    assert _grown_by(rows, round(asked * SECOND)) == grown
    assert _grown_by(rows.head(1), 0) is None
