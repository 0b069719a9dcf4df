"""What went over an emulated link: from the rows of `link`, and from the interfaces' counters."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from trial_data import SECOND, clean_trial, measured, series, use

from dnsrig.lab import links
from dnsrig.metrics import all_metrics
from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial

COUNTS = ("packets", "bytes", "delivered_packets", "delivered_bytes", "lost", "overflowed", "too_big")


def over(directory: Path, kind: str, rate_mbit: float | None = 8.0) -> Trial:
    """A trial of 10 s over a link from primary to secondary."""
    trial = clean_trial(directory)
    path = PathSpec(rate_mbit=rate_mbit)
    wider = PathSpec(rate_mbit=80.0)
    link = links.joined(("primary", "secondary"), kind, forward=path, reverse=wider)
    trial.record.spec.links = [link, LinkSpec(ends=("observer", "secondary"))]
    return trial


def values(trial: Trial) -> tuple[float | None, float | None]:
    metrics = all_metrics()
    return metrics["link_mb"].compute(trial), metrics["link_share_percent"].compute(trial)


def rows(trial: Trial, start_ns: int) -> None:
    """A row a direction and second, from two seconds before `measure` to two after."""
    times = [start_ns + second * SECOND for second in range(-1, 13)]
    frame = pl.DataFrame(
        {
            "time_ns": times * 2,
            "direction": ["forward"] * len(times) + ["reverse"] * len(times),
            **{name: [0] * 2 * len(times) for name in COUNTS},
            "queue_packets": [0] * 2 * len(times),
            "queue_bytes": [0] * 2 * len(times),
            "late_ns_max": [0] * 2 * len(times),
        }
    ).with_columns(
        bytes=pl.when(pl.col("direction") == "forward").then(600_000).otherwise(100_000),
        delivered_bytes=pl.when(pl.col("direction") == "forward").then(500_000).otherwise(90_000),
    )
    frame.write_ipc_stream(trial.directory / "link-primary-secondary.arrow")


def test_rows_of_link(tmp_path: Path) -> None:
    trial = over(tmp_path, "tun")
    rows(trial, measured(trial, 10))
    volume_mb, share_percent = values(trial)
    assert volume_mb == pytest.approx(10 * 0.7), "what hosts sent during measure, lost or not"
    assert share_percent == pytest.approx(50), "0.5 of the 1 MB a second that 8 Mbit/s are"
    assert set(trial.links()) == {"primary-secondary"}


def test_counters_where_the_kernel_emulates(tmp_path: Path) -> None:
    trial = over(tmp_path, "netem")
    start_ns = measured(trial, 3)
    growing = {
        "primary__link_secondary__tx_bytes": 1014,
        "primary__link_secondary__tx_packets": 1,
        "primary__link_secondary__rx_bytes": 0,
        "primary__link_secondary__rx_packets": 0,
        "secondary__link_primary__tx_bytes": 114,
        "secondary__link_primary__tx_packets": 1,
        "secondary__link_primary__rx_bytes": 1014,
        "secondary__link_primary__rx_packets": 1,
    }
    samples = {name: [step * 1000 * second for second in range(4)] for name, step in growing.items()}
    use(trial, series(start_ns, **samples))
    volume_mb, share_percent = values(trial)
    assert volume_mb == pytest.approx(3 * 1.1), "without the Ethernet header"
    assert share_percent == pytest.approx(100)


def test_without_a_rate_there_is_no_share(tmp_path: Path) -> None:
    trial = over(tmp_path, "tun", rate_mbit=None)
    rows(trial, measured(trial, 10))
    assert values(trial)[0] and values(trial)[1] is None


def test_a_link_of_which_nothing_is_known_makes_no_sum(tmp_path: Path) -> None:
    trial = over(tmp_path, "tun")
    rows(trial, measured(trial, 10))
    other = links.joined(("observer", "secondary"), "tun", forward=PathSpec(rate_mbit=8.0), reverse=PathSpec())
    trial.record.spec.links.append(other)
    assert values(trial) == (None, None)


def test_without_an_emulated_link_or_its_rows_there_is_nothing(tmp_path: Path) -> None:
    assert values(clean_trial(tmp_path / "plain")) == (None, None)
    assert values(over(tmp_path / "lost", "tun")) == (None, None)


def test_the_round_trip_is_that_of_the_far_link(tmp_path: Path) -> None:
    trial = over(tmp_path, "tun")
    trial.record.link_tests = [
        {"from": "primary", "to": "secondary", "works": True, "rtt_median_us": 250_000.0, "forward": {}},
        {"from": "observer", "to": "secondary", "works": True, "rtt_median_us": 20.0},
    ]
    assert transfers.round_trip_ms(trial) == 250
