"""Procedure bulk: what the instrument is told, what its summary means, and what is read off the sockets of both
ends."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import socket_data
import synthetic
from socket_data import bulk
from trial_data import clean_trial

from dnsrig import procedures
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.metrics import all_metrics
from dnsrig.procedures import bulk as procedure
from dnsrig.procedures.parts import transfer_instrument
from dnsrig.rundir import TrialSpec
from dnsrig.runs import sockets
from dnsrig.runs.row_files.watch import SOCKETS
from dnsrig.runs.trial import Trial


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


def specs(*settings: str, scale: str = "quick") -> list[TrialSpec]:
    document = model.load(model.find("congestion-control"), scale, list(settings))
    return [trial_specs.provisional("congestion-control", point, [0, 1]) for point in model.points(document)]


def test_the_experiment_is_s4s_link_in_the_direction_of_the_data() -> None:
    found = specs()
    assert {"cubic", "illinois", "hybla"} <= {str(spec.hosts["primary"].congestion) for spec in found}
    for spec in found:
        (link,) = [link for link in spec.links if link.emulated]
        assert link.ends == ("primary", "client") and link.forward is not None and link.reverse is not None
        assert link.forward.delay_ms + link.reverse.delay_ms == 300
        assert (link.forward.loss_percent, link.reverse.loss_percent) == (10, 0)
        assert spec.limit_s > spec.options["duration_s"]


def test_at_standard_there_are_repeats_enough_for_a_test() -> None:
    document = model.load(model.find("congestion-control"), "standard", [])
    assert document.repeats >= 10 and document.options["duration_s"] >= 120
    assert model.load(model.find("congestion-control"), "published", []).repeats >= 20


def test_one_connection_is_used_again_and_made_anew_when_it_is_lost() -> None:
    options = procedure.transfer_options({**procedure.OPTIONS, "congestion": "reno"})
    words = transfer_instrument.policy(options)
    assert {"--policy=reused", "--connections=1", "--congestion=reno", "--timeout=60s"} <= set(words)
    assert options["retries"] == procedure.RETRIES
    with pytest.raises(UsageError, match="duration_s"):
        procedures.options_of(procedure, {"duration_s": 0.0})
    with pytest.raises(UsageError, match="timeout_s"):
        procedures.options_of(procedure, {"timeout_s": 0.0})


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "done"),
        ({"first_message_ns": 0}, "timeout"),
        ({"first_message_ns": 0, "attempt_outcomes": {"refused": 9}}, "server-failed"),
        ({"busy_share": 1.0}, "invalid"),
    ],
)
def test_what_a_summary_means(changes: dict[str, object], outcome: str) -> None:
    """That no zone was whole by the end is what was to be expected."""
    found = procedure.concluded({**socket_data.transferred(5, 10), **changes}, duration_s=10)
    assert found.outcome == outcome and bool(found.reason) == (outcome != "done")


def value(name: str, trial: Trial) -> float | None:
    return all_metrics()[name].compute(trial)


def test_metrics_of_a_flow(trial: Trial) -> None:
    bulk(trial, kb_per_s=100, cwnd=20, rtt_ms=310, resent_share=0.25)
    assert value("throughput_kbytes_per_s", trial) == 100
    assert value("rtt_ms", trial) == 310
    assert value("cwnd_segments", trial) == 20
    assert value("retransmitted_percent", trial) == pytest.approx(25, rel=0.02)


def test_what_the_kernel_has_not_measured_yet_is_in_no_median(trial: Trial) -> None:
    bulk(trial, rtt_ms=310)
    started = pl.col("time_ns") < trial.sockets["time_ns"].median()
    trial.__dict__["sockets"] = trial.sockets.with_columns(
        rtt_us=pl.when(started).then(0).otherwise("rtt_us").cast(pl.UInt32)
    )
    trial.__dict__["sockets"] = pl.concat([trial.sockets.filter(started), trial.sockets]).sort("time_ns")
    assert value("rtt_ms", trial) == 310


def test_throughput_is_what_the_application_has_by_the_last_look(trial: Trial) -> None:
    """Of each connection that there was, and without what it has not read."""
    bulk(trial, kb_per_s=100, unread_bytes=98_000)
    assert value("throughput_kbytes_per_s", trial) == pytest.approx(90, rel=1e-6), "9.8 s, 980 kB less what waits"
    lost = trial.tcp_info.head(10).with_columns(pl.lit(1).cast(pl.UInt32).alias("connection"))
    trial.__dict__["tcp_info"] = pl.concat([trial.tcp_info, lost])
    assert (value("throughput_kbytes_per_s", trial) or 0) > 90
    trial.__dict__["tcp_info"] = lost.clear()
    assert value("throughput_kbytes_per_s", trial) is None


def test_time_without_a_connection_counts(trial: Trial) -> None:
    """One that was lost in the middle and could not be made again: 10 s of which it brought something in five."""
    bulk(trial, kb_per_s=100)
    trial.__dict__["tcp_info"] = trial.tcp_info.sort("time_ns").head(25)
    assert value("throughput_kbytes_per_s", trial) == pytest.approx(48), "480 kB by the look at 4.8 s"


def test_without_sockets_there_is_no_guess(trial: Trial) -> None:
    names = ("rtt_ms", "cwnd_segments", "retransmitted_percent", "throughput_kbytes_per_s")
    assert [value(name, trial) for name in names] == [None] * 4, "no sockets were listed"
    bulk(trial)
    trial.__dict__["sockets"] = trial.sockets.with_columns(pl.lit(0).cast(pl.UInt64).alias("acked_bytes"))
    assert sockets.largest(trial) is None, "nobody sent anything"


def test_the_largest_flow_is_told_from_its_other_end_and_from_small_ones(trial: Trial) -> None:
    bulk(trial, congestion="reno")
    small = trial.sockets.with_columns(
        acked_bytes=pl.col("acked_bytes") // 2, local=pl.lit("198.18.0.1:5353"), remote=pl.lit("198.18.0.9:1")
    )
    trial.__dict__["sockets"] = pl.concat([small, trial.sockets])
    flow = sockets.largest(trial)
    assert flow is not None
    assert (flow.sender, flow.receiver, flow.congestion) == ("primary", "client", "reno")
    assert flow.sent.height == flow.received.height == 50
    assert flow.received["received_bytes"][-1] == flow.nbytes
    assert flow.round_trip_ms == 300
    path = sockets.path_of(trial, flow)
    assert path is not None and path.loss_percent == 10
    link = trial.record.spec.links[0]
    link.ends = ("client", "primary")
    reverse = sockets.path_of(trial, flow)
    assert reverse is not None and reverse.loss_percent == 0, "the direction is the sender's"


def test_only_what_was_listed_during_measure_counts(trial: Trial) -> None:
    bulk(trial, seconds=10)
    phase = trial.measure
    assert phase is not None
    phase.start.monotonic_ns += 4_000_000_000
    flow = sockets.largest(trial)
    assert flow is not None and flow.sent.height == 30


@pytest.mark.parametrize(
    ("address", "host"),
    [("198.18.0.2:53", "client"), ("[2001:db8::1]:53", ""), ("198.19.0.7:1", "client"), ("", "")],
)
def test_whose_address_it_is(trial: Trial, address: str, host: str) -> None:
    bulk(trial)
    trial.record.spec.hosts["client"].source_addresses = ["198.19.0.7"]
    assert sockets.host_of(trial, address) == host


def test_rows_are_read_as_the_engine_writes_them(trial: Trial) -> None:
    made = socket_data.rows(5_000)
    words = ("host", "state", "congestion")
    made.with_columns(pl.col(words).cast(pl.Categorical)).write_ipc_stream(trial.directory / "sockets.arrow")
    assert trial.sockets.equals(made) and trial.sockets.schema == pl.Schema(SOCKETS.schema)


def test_an_earlier_version_did_not_know_of_buffers(trial: Trial) -> None:
    socket_data.rows(5_000).drop(SOCKETS.later).write_ipc_stream(trial.directory / "sockets.arrow")
    assert trial.sockets.schema == pl.Schema(SOCKETS.schema)
    assert {trial.sockets[name].max() for name in SOCKETS.later} == {0}


def test_rows_of_another_version_are_refused(trial: Trial) -> None:
    socket_data.rows(5_000).drop("sacks").write_ipc_stream(trial.directory / "sockets.arrow")
    with pytest.raises(DnsrigError, match="lacks the column sacks"):
        _ = trial.sockets


def test_a_window_of_one_segment_is_a_value(trial: Trial) -> None:
    bulk(trial)
    trial.__dict__["sockets"] = trial.sockets.with_columns(cwnd=pl.lit(1, pl.UInt32))
    assert value("cwnd_segments", trial) == 1


def test_a_connection_that_fetched_zones_has_no_throughput(trial: Trial) -> None:
    """Only the procedure bulk lets a connection transfer what it can."""
    bulk(trial, kb_per_s=100)
    trial.record.spec.main_metric = "zones_per_s"
    assert value("throughput_kbytes_per_s", trial) is None
    trial.record.spec.main_metric = "throughput_kbytes_per_s"
    del trial.record.instruments["transfer"]["start_ns"]
    assert value("throughput_kbytes_per_s", trial) is None


@pytest.mark.parametrize(("after_s", "kb_per_s"), [(0.5, 100), (1.0, 100), (1.2, 980 / 11)])
def test_more_than_a_second_after_the_last_look_counts(trial: Trial, after_s: float, kb_per_s: float) -> None:
    """980 kB by the look at 9.8 s."""
    bulk(trial, kb_per_s=100)
    trial.record.instruments["transfer"]["elapsed_ns"] = round((9.8 + after_s) * 1e9)
    assert value("throughput_kbytes_per_s", trial) == pytest.approx(kb_per_s)
