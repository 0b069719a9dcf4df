"""The first and the last minute of a replay on a resolver, and what went upstream."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import trial_data
import world_data
from trial_data import SECOND, clean_trial, series

from dnsrig.rundir import LinkSpec
from dnsrig.runs import minutes
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
