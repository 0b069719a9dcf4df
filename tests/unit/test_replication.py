"""What came over the link between two sites, and when; the trap of a replica that was not in sync; S3 beside a run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from replication_data import answered, replicated, zero_ns
from socket_data import rows
from trial_data import SECOND, clean_trial, judge, series, use

from dnsrig.metrics import all_metrics
from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs import replication, sockets
from dnsrig.runs.trial import Trial

MB = 1_000_000


def value(name: str, trial: Trial) -> float | None:
    return all_metrics()[name].compute(trial)


def test_times_begin_with_the_first_exec_at_the_far_site(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    assert zero_ns(trial) == trial.record.servers["replica"].exec_ns == trial.zero_ns
    trial.record.instruments["probe"]["last_seen_ns"] = zero_ns(trial) + 7 * SECOND
    trial.record.instruments["replica"] = {"stored_ns": zero_ns(trial) + 5 * SECOND}
    assert value("transfer_time_s", trial) == value("served_s", trial) == 7
    assert value("stored_s", trial) == 5


def test_what_publishing_and_the_replica_cost(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    assert [value(name, trial) for name in ("publish_s", "replica_cpu_s", "replica_memory_peak_bytes")] == [None] * 3
    servers = trial.record.servers
    servers["primary"] = servers["secondary"].model_copy(update={"host": "primary", "exec_ns": 2 * SECOND})
    trial.record.instruments["database"] = {"filled_ns": 5 * SECOND, "position": 70}
    cpu, memory = [1_000_000, 1_500_000, 4_000_000], [10 * MB, 30 * MB, 20 * MB]
    of_replica = {
        "replica__cgroup__cpu_usage_us": cpu,
        "replica__cgroup__memory_anonymous_bytes": memory,
        "secondary__cgroup__cpu_usage_us": [0, 0, 60_000_000],
    }
    use(trial, series(zero_ns(trial), **of_replica))
    assert value("publish_s", trial) == 3
    assert value("replica_cpu_s", trial) == 3
    assert value("replica_memory_peak_bytes", trial) == 30 * MB


def test_received_is_all_but_a_thousandth_of_what_came(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    came = [0, 40 * MB, 99 * MB, 99_950_000, 99_950_066, 100 * MB]
    use(trial, series(zero_ns(trial), replica__link_database__rx_bytes=came))
    assert value("received_s", trial) == 3, "signs of life go on"


def test_of_a_small_volume_signs_of_life_are_a_larger_share(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    use(trial, series(zero_ns(trial), replica__link_database__rx_bytes=[0, 40_000, 55_000, 55_066, 55_132, 55_198]))
    assert value("received_s", trial) == 2


def test_an_emulated_link_says_itself_what_it_delivered(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    start = zero_ns(trial)
    rows = [
        (start + n * SECOND // 10, direction, nbytes)
        for n, nbytes in enumerate([0, 600, 400, 0, 0])
        for direction in ("forward", "reverse")
    ]
    link = LinkSpec(ends=("database", "replica"), kind="tun")
    trial.record.spec.links.append(link)
    columns = ["time_ns", "direction", "delivered_bytes"]
    trial.__dict__["_links"] = {link.name: pl.DataFrame(rows, schema=columns, orient="row")}
    assert value("received_s", trial) == pytest.approx(0.2)
    assert replication.arrived(trial)["bytes"].to_list() == [0, 600, 1000, 1000, 1000]


def test_what_came_last_is_in_the_row_that_ends_after_measure(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    link = LinkSpec(ends=("database", "replica"), kind="tun")
    trial.record.spec.links.append(link)
    assert trial.measure is not None
    end_ns = trial.measure.end.monotonic_ns
    rows = [(end_ns + ms * 1_000_000, "forward", nbytes) for ms, nbytes in ((-50, 0), (50, 600), (150, 7))]
    columns = ["time_ns", "direction", "delivered_bytes"]
    trial.__dict__["_links"] = {link.name: pl.DataFrame(rows, schema=columns, orient="row")}
    assert replication.arrived(trial)["bytes"].to_list() == [0, 600]


def test_what_counts_is_the_direction_to_the_far_site(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    link = LinkSpec(ends=("replica", "database"), kind="tun")
    trial.record.spec.links.append(link)
    rows = [(zero_ns(trial) + SECOND // 10, "forward", 7), (zero_ns(trial) + SECOND // 5, "reverse", 600)]
    columns = ["time_ns", "direction", "delivered_bytes"]
    trial.__dict__["_links"] = {link.name: pl.DataFrame(rows, schema=columns, orient="row")}
    assert replication.arrived(trial)["bytes"].to_list() == [600]


def test_a_trial_at_its_limit_has_received_nothing_whole(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    use(trial, series(zero_ns(trial), replica__link_database__rx_bytes=[0, 40 * MB, 100 * MB]))
    trial.record.instruments["replica"] = {"stored_ns": zero_ns(trial) + 5 * SECOND}
    assert [value(name, trial) for name in ("received_s", "stored_s")] == [2, 5]
    trial.record.outcome = "timeout"
    assert [value(name, trial) for name in ("received_s", "stored_s", "served_s")] == [None] * 3


def test_a_procedure_without_sites_has_none_of_these(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path)
    assert replication.far_link(trial.record.spec) is None
    assert [value(name, trial) for name in ("received_s", "stored_s", "served_s", "publish_s")] == [None] * 4


def test_the_far_link_of_transfers_is_that_to_the_primary(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path)
    trial.record.spec.options = {"carrier": "axfr"}
    assert replication.far_link(trial.record.spec) == ("primary", "secondary")


def test_answers_before_the_replica_has_the_zones_are_found(tmp_path: Path) -> None:
    trial = replicated(tmp_path)
    answered(trial, first_s=0.5, stored_s=5, servfail=4_000)
    found = judge("replica-not-in-sync", trial)
    assert found.verdict == "found"
    assert found.evidence["too_early_s"] == 4.5
    assert "4,000 of probe's queries" in found.summary and "in sync after 5 s" in found.summary
    answered(trial, first_s=0.5, stored_s=None, servfail=4_000)
    assert "never in sync" in judge("replica-not-in-sync", trial).summary


@pytest.mark.parametrize(("first_s", "stored_s", "servfail"), [(5.0, 4.9, 10), (0.5, 5.0, 0), (0.5, 0.55, 3)])
def test_a_replica_in_time_is_clear(tmp_path: Path, first_s: float, stored_s: float, servfail: int) -> None:
    trial = replicated(tmp_path)
    answered(trial, first_s=first_s, stored_s=stored_s, servfail=servfail)
    assert judge("replica-not-in-sync", trial).verdict == "clear"


def test_without_the_replicas_word_it_cannot_be_told(tmp_path: Path) -> None:
    assert judge("replica-not-in-sync", replicated(tmp_path)).verdict == "cannot-tell"


def test_the_connection_that_counts_is_the_one_between_the_sites(tmp_path: Path) -> None:
    """What the replica gives the secondary beside it is more, and what the primary published was before."""
    trial = replicated(tmp_path)
    hosts, phase = trial.record.spec.hosts, trial.measure
    assert phase is not None
    start_ns = phase.start.monotonic_ns

    def sent(host: str, to: str, nbytes: list[int], *, since_ns: int = start_ns) -> pl.DataFrame:
        made = rows(since_ns, len(nbytes) * 0.2).filter(pl.col("host") == "primary")
        local, remote = f"{hosts[host].address}:6379", f"{hosts[to].address}:50000"
        return made.with_columns(
            host=pl.lit(host),
            local=pl.lit(local),
            remote=pl.lit(remote),
            acked_bytes=pl.Series(nbytes, dtype=pl.UInt64),
        )

    across = sent("database", "replica", [0, 10 * MB, 20 * MB])
    beside = sent("replica", "secondary", [0, 20 * MB, 40 * MB])
    earlier = sent("primary", "database", [90 * MB, 90 * MB, 90 * MB], since_ns=start_ns - SECOND // 5)
    trial.__dict__["sockets"] = pl.concat([across, beside, earlier])
    flow = sockets.largest(trial)
    assert flow is not None and (flow.sender, flow.receiver) == ("replica", "secondary"), "without a path, the largest"
    way = PathSpec(rate_mbit=20, delay_ms=125)
    trial.record.spec.links.append(LinkSpec(ends=("database", "replica"), kind="tun", forward=way, reverse=way))
    flow = sockets.largest(trial)
    assert flow is not None and (flow.sender, flow.receiver) == ("database", "replica")
    trial.__dict__["sockets"] = pl.concat([beside, earlier])
    assert sockets.largest(trial) is None
