"""Zones taken by the instrument itself: what it is told, what its summary means, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import synthetic
from transfer_load_data import RATES, SECOND, summary, transfer_load_run
from trial_data import clean_trial, measured, series, use

from dnsrig import procedures
from dnsrig.comparison import compare
from dnsrig.comparison.summary import variant_table
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.metrics import all_metrics
from dnsrig.procedures import transfer_load
from dnsrig.procedures.parts import transfer_instrument
from dnsrig.report import side_by_side, wording
from dnsrig.rundir import HostSpec, TransferSpec
from dnsrig.runs.row_files.transfer import TRANSFERS
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.servers import keys

KEYS = keys.make()


def value(name: str, trial: Trial) -> float | None:
    return all_metrics()[name].compute(trial)


def test_a_policy_is_told_as_the_engine_names_it() -> None:
    words = transfer_instrument.policy(
        {**transfer_instrument.OPTIONS, "policy": "one", "close": "rst", "ixfr_serial": 7, "quickack": True}
    )
    assert {"--policy=one", "--close=rst", "--ixfr=7", "--quickack", "--retry-after=1s"} <= set(words)
    assert not [word for word in words if word.startswith(("--nagle", "--congestion"))], "only what was asked for"


@pytest.mark.parametrize(
    ("name", "bad"), [("policy", "all"), ("close", "tls"), ("window", -1), ("secondaries", 1001), ("timeout_s", 0.0)]
)
def test_what_the_instrument_would_refuse_is_refused_before(name: str, bad: str | int | float) -> None:
    with pytest.raises(UsageError, match=f"options.{name}"):
        procedures.options_of(transfer_load, {name: bad})


def test_xot_checks_whom_it_talks_to_and_tcp_names_no_certificate(tmp_path: Path) -> None:
    options = {**transfer_instrument.OPTIONS, "resumption": False}
    over_tls = transfer_instrument.transport(options, TransferSpec(transport="xot+tsig"), KEYS, tmp_path / "c.pem")
    assert {"--transport=xot", f"--ca={tmp_path}/c.pem", "--verify=ca", "--no-resumption"} <= set(over_tls)
    assert [word for word in over_tls if word.startswith("--tsig=hmac-sha256:dnsrig-transfer:")]
    pinned = transfer_instrument.transport({**options, "verify": "pin"}, TransferSpec(transport="xot"), KEYS, None)
    assert f"--pin={KEYS.public_key_pin}" in pinned
    assert transfer_instrument.transport(options, TransferSpec(), KEYS, None) == ["--transport=tcp"]
    over_quic = transfer_instrument.transport(
        {**options, "quic_congestion": "bbr"}, TransferSpec(transport="xoq"), KEYS, tmp_path / "c.pem"
    )
    assert {"--transport=xoq", "--quic-congestion=bbr", f"--ca={tmp_path}/c.pem"} <= set(over_quic)


def test_each_secondary_has_an_address_of_its_own() -> None:
    host = HostSpec(address="198.18.0.2", cpus=[0], source_addresses=["198.19.0.1", "198.19.0.2"])
    words = transfer_instrument.sources({**transfer_instrument.OPTIONS, "secondaries": 3}, host)
    assert words == ["--secondaries=3", "--source=198.18.0.2", "--source=198.19.0.1", "--source=198.19.0.2"]
    assert transfer_instrument.sources(transfer_instrument.OPTIONS, HostSpec(address="198.18.0.2", cpus=[0])) == []
    assert transfer_load.hosts({**transfer_load.OPTIONS, "secondaries": 3})["client"].source_addresses == 2


REFUSED = {"done": 7_187, "servfail": 2_811, "cut": 2}


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        (summary(10_000), "done", ""),
        (summary(612), "timeout", "612 of 10,000 zones after 15 s"),
        (
            summary(7_187, elapsed_s=3.21, failed=2_813, outcomes=REFUSED),
            "timeout",
            "7,187 of 10,000 zones after 3.21 s; 2,811 servfail, 2 cut",
        ),
        (
            summary(0, failed=10_000, outcomes={"refused": 10_000}),
            "server-failed",
            "none of 10,000 zones was transferred: 10,000 refused",
        ),
        (summary(10_000, rows_lost=3), "invalid", "the instrument lost 3 rows of what it saw"),
    ],
)
def test_what_a_summary_means(said: dict[str, object], outcome: str, reason: str) -> None:
    found = transfer_instrument.concluded(said, zones=10_000, limit_s=15)
    assert (found.outcome, found.reason) == (outcome, reason)


def test_a_busy_instrument_is_no_measure_of_the_server_unless_it_had_no_time_to_rest() -> None:
    assert transfer_instrument.concluded(summary(100, busy_share=0.99), zones=100, limit_s=15).outcome == "invalid"
    assert (
        transfer_instrument.concluded(summary(100, busy_share=0.99, elapsed_s=0.1), zones=100, limit_s=15).outcome
        == "done"
    )


def test_metrics_of_the_instrument(tmp_path: Path) -> None:
    trial = transfer_load_run(tmp_path / "run").trials[0]
    trial.record.instruments["transfer"] = summary(500, elapsed_s=2.0, failed=3, retries=9)
    assert value("zones_per_s", trial) == 250
    assert value("records_per_s", trial) == 1_000
    assert value("transferred_mb_per_s", trial) == pytest.approx(0.1)
    assert (value("transfer_p50_ms", trial), value("transfer_p99_ms", trial)) == (1.5, 9)
    assert (value("transfer_failures", trial), value("transfer_retries", trial)) == (3, 9)
    assert (value("connections_made", trial), value("full_handshakes", trial)) == (1, 0)
    assert value("client_cpu_us_per_zone", trial) == 20
    start = measured(trial, 1)
    use(
        trial,
        series(start, primary__cgroup__cpu_usage_us=[0, 50_000], client__sockets__tcp_time_wait=[0, 480]),
    )
    assert value("primary_cpu_us_per_zone", trial) == 100
    assert value("client_time_wait_peak", trial) == 480
    trial.record.instruments["transfer"] = summary(0)
    assert value("transfer_p50_ms", trial) is None, "of nothing there is no median"
    trial.record.instruments = {}
    assert {value(name, trial) for name in ("zones_per_s", "records_per_s", "connections_made")} == {None}


def test_the_instrument_as_a_secondary_has_its_time_from_exec_to_its_end(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    trial.record.instruments = {"transfer": summary(100, end_ns=synthetic.EXEC_NS + 2 * SECOND)}
    assert value("transfer_time_s", trial) == 2
    assert value("zones_seen", trial) == 100
    assert value("zones_per_s", trial) == 50
    trial.record.outcome = "timeout"
    assert value("transfer_time_s", trial) is None


def test_a_rate_counts_where_the_limit_ended_it_and_a_time_does_not(tmp_path: Path) -> None:
    run = transfer_load_run(tmp_path / "run", {"one": "timeout"})
    first = variant_table(run, "zones_per_s")[0]
    assert first.variant.parameters["policy"] == "one" and first.is_baseline
    assert (len(first.samples.measured), first.samples.bounds, first.unfinished) == (3, [], False)
    pipelined = variant_table(run, "zones_per_s")[2].comparison
    assert pipelined is not None and pipelined.percent == pytest.approx(100 * 902 / 102)
    assert wording.outcomes(first.outcomes) == "3 timeout", "and what it was is said"
    (line, *_) = compare.compare_runs(run, run, ["zones_per_s"], []).lines
    assert line.base.samples.numbers == pytest.approx([101, 102, 103]) and line.base.unfinished == 0
    not_a_rate = variant_table(run, "primary_memory_peak_bytes")[0]
    assert not not_a_rate.samples


def test_rows_are_read_as_the_engine_writes_them(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    assert trial.transfers.is_empty() and trial.transfers.columns == list(TRANSFERS.schema)
    assert trial.connections.is_empty() and trial.tcp_info.is_empty() and trial.transfer == {}
    rows = {name: [0] for name in TRANSFERS.schema} | {"zone": ["z000000.example"]}
    rows |= {name: ["axfr"] for name in ("asked", "answered")} | {"outcome": ["done"]}
    written = pl.DataFrame(rows).with_columns(pl.col("asked", "answered", "outcome").cast(pl.Categorical))
    again = clean_trial(tmp_path / "again")
    written.write_ipc_stream(again.directory / "transfers.arrow")
    assert again.transfers.schema == pl.Schema(TRANSFERS.schema)
    assert again.transfers.row(0, named=True)["outcome"] == "done"


def test_policies_stand_side_by_side(tmp_path: Path) -> None:
    run = transfer_load_run(tmp_path / "run", {"one": "timeout"})
    table = side_by_side.tables(run)[0]
    assert (table.metric.name, table.columns) == ("zones_per_s", ["one", "reused", "pipelined"])
    assert table.row_axes == ["server", "zones"]
    assert [line.names[0] for line in table.lines] == ["bind@system 1.2.3", "knot@system 1.2.3"]
    cells = [table.text(cell) for cell in table.lines[0].cells]
    assert cells == [f"{rate + 2} [{rate + 1}..{rate + 3}]" for rate in RATES.values()]
    assert table.text(None) == "–"


def test_no_other_question_has_such_a_table(tmp_path: Path) -> None:
    assert side_by_side.tables(Run.open(synthetic.build(tmp_path / "run"))) == []


def variants(experiment: str, *settings: str) -> list[trial_specs.TrialSpec]:
    document = model.load(model.find(experiment), "quick", list(settings))
    return [trial_specs.provisional(experiment, point, [0, 1]) for point in model.points(document)]


def test_every_variant_of_connection_policy_is_possible() -> None:
    specs = variants("connection-policy")
    assert {spec.subject for spec in specs} == {"primary"}
    assert {spec.main_metric for spec in specs} == {"zones_per_s"}
    of_powerdns = [s for s in specs if s.variant.parameters["server"] == "powerdns@forky"]
    assert of_powerdns and not any(spec.transfer.tls for spec in of_powerdns), "it has no XoT"
    new = [s for s in specs if not s.options["resumption"]]
    assert {spec.options["policy"] for spec in new} == {"one"}, "one connection makes one handshake"


def test_a_server_that_answers_nothing_is_only_for_what_does_not_ask() -> None:
    assert variants("tour", 'server=["transfer@engine"]')
    with pytest.raises(UsageError, match="answers no queries, but the procedure latency sends some"):
        variants("static-secondary", "hosts.secondary.server=transfer@engine", "server=bind@forky", "matrix={}")
    with pytest.raises(UsageError, match="cannot be a primary"):
        variants("tour", "hosts.primary.server=transfer@engine")


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        ({"done": 9, "up_to_date": 1}, "done", ""),
        ({"done": 11, "up_to_date": 0}, "done", ""),
        ({"done": 9, "up_to_date": 0}, "timeout", "9 of 10 zones after 15 s"),
        ({"done": 10, "failed": 1}, "timeout", "10 of 10 zones after 15 s"),
        ({"done": 0, "up_to_date": 0}, "server-failed", "none of 10 zones was transferred"),
        ({"done": 0, "up_to_date": 0, "unfinished": 1}, "timeout", "0 of 10 zones after 15 s"),
    ],
)
def test_zones_that_were_up_to_date_have_arrived(changes: dict[str, int], outcome: str, reason: str) -> None:
    found = transfer_instrument.concluded({**summary(10), "up_to_date": 0, **changes}, zones=10, limit_s=15)
    assert (found.outcome, found.reason) == (outcome, reason)


def test_failures_are_told_by_how_many_they_are() -> None:
    told = {"done": 9_000, "up-to-date": 8, "cut": 2, "servfail": 1_234, "refused": 2, "lost": 0}
    assert transfer_instrument.outcomes({"outcomes": told}) == "1,234 servfail, 2 cut, 2 refused"


def test_every_option_is_a_word() -> None:
    assert transfer_instrument.policy(transfer_instrument.OPTIONS) == [
        *("--policy=pipelined", "--window=100", "--connections=1", "--close=fin", "--soa=none", "--retries=3"),
        *("--retry-after=1s", "--timeout=10s", "--threads=1"),
    ]
    asked = {"ixfr_serial": 7, "quickack": True, "nagle": True, "congestion": "reno", "retry_after_s": 0.25}
    assert transfer_instrument.policy({**transfer_instrument.OPTIONS, **asked})[-6:] == [
        *("--timeout=10s", "--threads=1", "--ixfr=7", "--quickack", "--nagle", "--congestion=reno")
    ]


def test_secondaries_that_get_notifies_have_the_addresses_that_get_them() -> None:
    host = HostSpec(address="198.18.0.2", cpus=[0], source_addresses=["198.18.136.1", "198.18.136.2", "198.18.136.3"])
    host.notified = True
    words = transfer_instrument.sources(transfer_instrument.OPTIONS, host)
    assert words == ["--secondaries=3", "--source=198.18.136.1-198.18.136.3"]
