"""Hosts on other machines: their CPUs and interfaces are theirs, and of several generators each is looked at."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import synthetic
from elsewhere_data import generators, put
from load_rows import Asked, load, log_normal, ramp
from trial_data import SECOND, check, clean_trial, judge, measured, use

from dnsrig.prediction import path
from dnsrig.rundir import LinkSpec
from dnsrig.runs.row_files import clock
from dnsrig.runs.row_files.load import QUERIES
from dnsrig.runs.trial import Trial

CALM = log_normal(0.2, 0.4)


@pytest.fixture(autouse=True)
def begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of each test begins anew, so that its numbers do not depend on the tests before it."""
    monkeypatch.setitem(globals(), "CALM", log_normal(0.2, 0.4))


LATE = dict.fromkeys(("p50", "p90", "p99", "p99_9", "p99_99"), 5_000_000)
MACHINE = ("idle_us", "iowait_us", "steal_us")


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    found = clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))
    load(found, Asked(), CALM)
    found.record.read_back = {}
    return found


def counters(start_ns: int, per_s: dict[tuple[str, str, str], int]) -> pl.DataFrame:
    """Samples of six seconds: (host, source, metric) -> growth a second."""
    rows = [(*name, start_ns + s * SECOND, grown * s) for name, grown in per_s.items() for s in range(6)]
    return pl.DataFrame(rows, schema=["host", "source", "metric", "time_ns", "value"], orient="row")


def cpus(trial: Trial, **steal_ms: int) -> None:
    """All hosts use 300 ms a second, and nobody else anything; ``steal_ms``: of the CPUs of each machine, ``here`` and
    ``rack_1``."""
    start, grown = measured(trial, 4) - SECOND, {}
    for machine, ms in steal_ms.items():
        name = "machine" if machine == "here" else f"machine@{machine.replace('_', '-')}"
        for cpu in ("cpu0", "cpu1"):
            grown |= {(name, cpu, metric): 0 for metric in MACHINE} | {(name, cpu, "steal_us"): ms * 1000}
            grown[name, cpu, "idle_us"] = 700_000 - ms * 1000
    grown |= {(host, "cgroup", "cpu_usage_us"): 300_000 for host in trial.record.spec.hosts}
    use(trial, counters(start, grown))


def test_steal_of_another_machine_is_its_own(trial: Trial) -> None:
    generators(trial, "rack-1", "rack-2")
    cpus(trial, here=0, rack_1=0, rack_2=80)
    found = judge("generator-bottleneck", trial)
    assert found.verdict == "found" and "took 8.0% of the time of the CPUs of generator-2 on rack-2" in found.summary
    assert found.series == ("machine@rack-2/cpu1/steal_us",)
    assert found.evidence["generators"] == "generator-2" and found.evidence["steal_percent"] == 8
    assert "hosts.generator-2.cpus" in found.remedy
    assert judge("cpu-contention", trial).verdict == "clear", "the server is on this machine"


def test_steal_of_this_machine_is_the_servers(trial: Trial) -> None:
    generators(trial, "rack-1", "rack-2")
    cpus(trial, here=80, rack_1=0, rack_2=0)
    assert judge("generator-bottleneck", trial).verdict == "clear"
    assert judge("cpu-contention", trial).series == ("machine/cpu1/steal_us",)


def test_a_server_on_another_machine_has_that_ones_cpus(trial: Trial) -> None:
    put(trial, "secondary", "rack-1")
    cpus(trial, here=80, rack_1=0)
    assert judge("cpu-contention", trial).verdict == "clear"
    trial.record.machines["rack-1"].read_back["other_trials_running"] = 1
    found = judge("cpu-contention", trial)
    assert "ran on the machine rack-1" in found.summary and found.series == ("machine@rack-1/cpu1/steal_us",)


def test_a_host_of_another_machine_shares_no_cpu_with_one_here(trial: Trial) -> None:
    """Nothing of what ran on CPU 1 here was the generator's, though it has a CPU 1 as well."""
    put(trial, "generator-1", "rack-1", asks=True)
    cpus(trial, here=0, rack_1=0)
    idle = pl.col("host").eq("machine") & pl.col("source").eq("cpu1") & pl.col("metric").eq("idle_us")
    use(
        trial, trial.samples.with_columns(value=pl.when(idle).then(pl.col("value") * 4 // 7).otherwise(pl.col("value")))
    )
    assert judge("cpu-contention", trial).evidence["foreign_percent"] == 30


def test_one_generator_of_several_was_the_bottleneck(trial: Trial) -> None:
    generators(trial, "rack-1", "rack-2", generator_2={"lag_ns": LATE})
    found = judge("generator-bottleneck", trial)
    assert found.verdict == "found" and "on generator-2, 1 % of the queries were sent 5 ms after" in found.summary
    assert "generator-1" not in found.summary
    assert found.series == ("machine@rack-2/cpu1/steal_us",)


def test_generators_in_time_are_clear(trial: Trial) -> None:
    generators(trial, "rack-1", "rack-2")
    assert judge("generator-bottleneck", trial).verdict == "clear"


def test_of_many_that_were_late_the_first_are_named(trial: Trial) -> None:
    late = {f"generator_{number}": {"lag_ns": LATE} for number in range(1, 6)}
    generators(trial, *(f"rack-{number}" for number in range(1, 6)), **late)
    summary = judge("generator-bottleneck", trial).summary
    assert (
        "on generator-3, " in summary
        and "generator-4" not in summary
        and summary.endswith("the same is true of 2 others.")
    )


def test_a_ramp_of_several_is_judged_by_what_all_did(trial: Trial) -> None:
    ramp(trial, [{"rate_qps": 10_000, "holds": True}, {"rate_qps": 20_000, "holds": False, "busy_share": 1.0}], 10_000)
    generators(trial, "rack-1", "rack-2", generator_2={"lag_ns": LATE})
    found = judge("generator-bottleneck", trial)
    assert found.verdict == "found" and "at 20,000 queries a second" in found.summary


def test_answers_that_a_generator_dropped_are_its_own_fault(trial: Trial) -> None:
    generators(trial, "rack-1")
    dropped = {(host, "udp", "rcvbuf_errors"): 0 for host in ("primary", "secondary", "observer")}
    use(trial, counters(measured(trial, 3) - SECOND, dropped))
    assert judge("udp-buffer-drops", trial).verdict == "cannot-tell", "nothing is known of the generator"
    use(trial, counters(measured(trial, 3) - SECOND, dropped | {("generator-1", "udp", "rcvbuf_errors"): 2}))
    found = judge("udp-buffer-drops", trial)
    assert "on generator-1 are the instrument's fault" in found.summary
    assert "rmem_max of rack-1" in found.remedy and "hosts.generator-1.cpus" in found.remedy
    assert "rmem_default" not in found.remedy


def test_whoever_was_late_in_a_replay_is_told(trial: Trial) -> None:
    load(trial, Asked(), CALM, model="stream", lag_ns=LATE | {"max": 5_000_000})
    generators(trial, "rack-1", "rack-2", generator_1={"lag_ns": {}})
    assert "hosts.generator-2.cpus" in judge("queries-sent-late", trial).remedy


def test_one_interface_leads_to_all_hosts_elsewhere(trial: Trial) -> None:
    spec = trial.record.spec
    put(trial, "primary", "rack-1")
    put(trial, "primary2", "rack-2", role="primary")
    came = {("secondary", "link:eno2", metric): 100 for metric in ("rx_bytes", "tx_bytes")}
    use(trial, counters(measured(trial, 4), came))
    assert spec.interface("secondary", "primary") == "link:eno2"
    assert spec.interface("secondary", "observer") == "link:observer"
    assert trial.links_growth(spec.primaries, "rx_bytes") == 500, "what came by one interface counts once"
    said = check("primaries-used", trial)
    assert said.verdict == "cannot-tell" and "one interface leads to several primaries" in said.reason


def test_queries_of_all_clients_arrive(trial: Trial) -> None:
    generators(trial, "rack-1", "rack-2")
    for name in trial.record.spec.generators:
        trial.record.spec.hosts[name].client_range = "10.0.0.0/9"
    start = measured(trial, 4)
    use(trial, counters(start, {("secondary", "link:eno2", "rx_packets"): 2_000}))
    said = check("queries-arrived", trial)
    assert said.verdict == "passed" and said.series == ["secondary/link:eno2/rx_packets"]


def test_whoever_asks_is_no_primary_and_no_flood(trial: Trial) -> None:
    put(trial, "generator-1", "rack-1", asks=True)
    spec = trial.record.spec
    spec.hosts["secondary"] = spec.hosts["secondary"].model_copy(update={"role": "primary"})
    del spec.hosts["primary"]
    spec.links = [LinkSpec(ends=("secondary", "generator-1"), kind="nic")]
    trial.record.link_tests = [{"from": "secondary", "to": "generator-1", "works": True, "rtt_median_us": 30.0}]
    assert path.rtt_s(trial) is None
    dropped = {("secondary", "link:eno2", "tx_dropped"): 1, ("generator-1", "link:eno1", "rx_dropped"): 0}
    use(trial, counters(measured(trial, 4) - SECOND, dropped))
    said = check("links-kept-up", trial)
    assert "found no room from secondary to generator-1" in str(said.seen)


def test_rows_of_queries_and_clocks_are_read(trial: Trial) -> None:
    """The columns that the engine writes: words as a dictionary, and nothing where nothing was."""
    common = {"number": [0, 1], "due_ns": [10, 20], "sent_ns": [11, None], "latency_ns": [5, None], "client": [0, None]}
    queries = pl.DataFrame(
        common | {"query": [7, 8], "outcome": ["answered", "unsent"]},
        schema_overrides={"number": pl.UInt64, "client": pl.UInt32, "query": pl.UInt64, "outcome": pl.Categorical},
    )
    queries.write_ipc_stream(trial.directory / QUERIES.name)
    assert trial.rows(QUERIES).rows()[1] == (1, 20, None, None, None, 8, "unsent")
    exchange = {"time_ns": [10], "peer": ["rack-1"], "offset_ns": [-3], "rtt_ns": [6], "burst": [0]}
    pl.DataFrame(exchange, schema_overrides={"burst": pl.UInt32}).write_ipc_stream(
        trial.directory / clock.of("primary").name
    )
    assert trial.rows(clock.of("primary")).to_dicts() == [{name: values[0] for name, values in exchange.items()}]
