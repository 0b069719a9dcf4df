"""One trial over several machines: real SSH, an interface of each, generators there, the server under test here."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from conftest import DNSRIG, wait_until
from load_data import kept
from machine_runs import manifest_of
from ssh_machines import Lab, having, lab
from suites import on_day

from dnsrig.cli._exits import EXIT_NO_VALID_TRIAL
from dnsrig.rundir import TrialRecord, read_json
from dnsrig.runs.latency import Histogram, Latency
from dnsrig.runs.run import Run

NAMES = ("rack-1", "rack-2")
SECOND_NS = 10**9
CLOCKS_NS = {"rack-1": 3_700_000_000, "rack-2": 86_400_000_000_000}
"""How far the machines' clocks are ahead of this one's."""
EXPERIMENT = """
title = "Generators on other machines"
question = "Is it one load?"
procedure = "latency"
repeats = 1
limit_s = 60
[hosts.primary]
server = "echo@engine"
{nic}
[dataset]
kind = "tiny-zones"
zones = 50
[options]
rate_qps = 2000.0
duration_s = 3.0
warmup_s = 0.5
query_rows = 100000
clients = 8
{options}
{hosts}
"""
GENERATOR = """
[hosts.generator-{number}]
machine = "{machine}"
nic = "nic0"
"""
PRIMARY_ELSEWHERE = """
title = "A primary on another machine"
question = "Do its zones come?"
procedure = "transfer"
repeats = 1
limit_s = 30
[hosts.primary]
server = "zones@engine"
machine = "rack-1"
nic = "nic0"
[hosts.secondary]
server = "transfer@engine"
nic = "nic0"
[hosts.observer]
nic = "nic0"
[dataset]
kind = "tiny-zones"
zones = 50
"""


def over_two(**options: str) -> str:
    hosts = "".join(GENERATOR.format(number=number, machine=name) for number, name in enumerate(NAMES, start=1))
    words = "".join(f"{key} = {value}\n" for key, value in {"generators": "2", **options}.items())
    return EXPERIMENT.format(nic='nic = "nic0"', hosts=hosts, options=words)


def run(machines: Lab, folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    (folder / "over-two.toml").write_text(text)
    command = [*machines.enter, *DNSRIG, "run", "over-two.toml", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)


def trial(folder: Path) -> tuple[Path, TrialRecord]:
    manifest = manifest_of(folder)
    (key,) = manifest.order
    (directory,) = folder.glob(f"runs/*/*/trials/{key.variant}/01")
    return directory, read_json(directory / "trial.json", TrialRecord)


def queries(directory: Path, record: TrialRecord, *more: str) -> pl.DataFrame:
    """(due since the start, query) of each."""
    rows = pl.read_ipc_stream(directory / "queries.arrow")
    start_ns = record.instruments["load"]["start_ns"]
    return rows.select("number", pl.col("due_ns") - start_ns, "query", *more).sort("number")


@on_day(1, of=3)
def test_two_generators_on_two_machines_are_one_load(tmp_path: Path, python: Path, nothing_left: None) -> None:
    """Takes a minute: Python starts anew on each machine, and two CPUs do the work of all machines."""
    with lab(tmp_path / "lab", NAMES, python, clocks_ns=CLOCKS_NS) as machines:
        machines.wire()
        result = run(machines, tmp_path / "two", over_two(), "--machines", machines.on)
        assert result.returncode in (0, EXIT_NO_VALID_TRIAL), result.stderr
        wait_until(lambda: not machines.processes(), 60)
        for machine in machines.machines.values():
            assert not machine.left_behind()
            assert not [*machine.cache.glob("machines/trials/*")]
        for namespace in (machines.namespace, *(m.namespace for m in machines.machines.values())):
            told = subprocess.run(["ip", "-n", namespace, "link", "show", "nic0"], capture_output=True, check=False)
            assert told.returncode == 0, "an interface was not put back"
    directory, record = trial(tmp_path / "two")
    assert record.outcome in ("done", "invalid") and record.instruments["load"]["due"] == 6000, record.reason
    assert_merged(directory, record)
    for name, ahead_ns in CLOCKS_NS.items():
        clock = record.machines[name].clock
        assert clock is not None and clock.comparisons >= 2
        assert abs(clock.offset_ns - ahead_ns) <= clock.error_ns, name
        assert abs(clock.realtime_offset_ns) <= clock.realtime_error_ns, "their wall time is ours"


@pytest.mark.full
def test_two_generators_send_what_one_would_send(tmp_path: Path, python: Path, nothing_left: None) -> None:
    """Takes a minute: Python starts anew on each machine, and two CPUs do the work of all machines."""
    with lab(tmp_path / "lab", NAMES, python, clocks_ns=CLOCKS_NS) as machines:
        machines.wire()
        two = run(machines, tmp_path / "two", over_two(), "--machines", machines.on)
        assert two.returncode in (0, EXIT_NO_VALID_TRIAL), two.stderr
        one = run(machines, tmp_path / "one", EXPERIMENT.format(nic="", hosts="", options=""))
        assert one.returncode in (0, EXIT_NO_VALID_TRIAL), one.stderr
    sent = [queries(*trial(tmp_path / name)) for name in ("two", "one")]
    assert sent[0].equals(sent[1]), "the union is the single schedule"


def assert_merged(directory: Path, record: TrialRecord) -> None:
    """What both saw, put together from their own rows, is what the trial says."""
    rows = pl.read_ipc_stream(directory / "queries.arrow")
    load = record.instruments["load"]
    assert load["answered"] == rows.filter(pl.col("outcome") == "answered").height
    parts = []
    for name in ("generator-1", "generator-2"):
        own = directory / "generators" / "load" / name
        told = json.loads((own / "summary.json").read_text())
        parts.append(pl.read_ipc_stream(own / "queries.arrow").with_columns(pl.col("due_ns") - told["start_ns"]))
    together = pl.concat(parts).sort("number")
    whole = rows.with_columns(pl.col("due_ns") - load["start_ns"]).sort("number")
    assert together["latency_ns"].equals(whole["latency_ns"]) and together["due_ns"].equals(whole["due_ns"])
    logged = Latency(directory / "latency.hlog", None).intervals("due")
    assert len(logged) == 3
    for number, interval in enumerate(logged):
        seen = together.filter(pl.col("due_ns") // SECOND_NS == number)["latency_ns"]
        assert interval.histogram == Histogram.of(Counter(map(kept, seen))), "bucket by bucket"
    hosts = set(pl.read_ipc_stream(directory / "samples.arrow")["host"].cast(pl.String).unique())
    assert {"generator-1", "generator-2", "machine@rack-1", "machine@rack-2", "primary"} <= hosts
    phase = record.phase("measure")
    samples = pl.read_ipc_stream(directory / "samples.arrow").filter(pl.col("host").cast(pl.String) == "generator-1")
    assert phase is not None
    assert samples.filter(pl.col("time_ns").is_between(phase.start.monotonic_ns, phase.end.monotonic_ns)).height


REPLAY = """
title = "Clients on other machines"
question = "Is it one stream?"
procedure = "replay"
repeats = 1
limit_s = 60
[hosts.primary]
server = "echo@engine"
{nic}
[dataset]
kind = "tiny-zones"
zones = 50
[stream]
kind = "population"
clients = 300
qps = 1000
duration_s = 2
[options]
duration_s = 2
query_rows = 100000
generators = {count}
{hosts}
"""


@pytest.mark.full
def test_clients_on_two_machines_are_one_stream(tmp_path: Path, python: Path) -> None:
    """Takes a minute: Python starts anew on each machine, and two CPUs do the work of all machines."""
    hosts = "".join(GENERATOR.format(number=number, machine=name) for number, name in enumerate(NAMES, start=1))
    two = REPLAY.format(nic='nic = "nic0"', count=2, hosts=hosts.replace("generator", "clients"))
    with lab(tmp_path / "lab", NAMES, python, clocks_ns=CLOCKS_NS) as machines:
        machines.wire()
        result = run(machines, tmp_path / "two", two, "--machines", machines.on)
        assert result.returncode == 0, result.stderr
        alone = run(machines, tmp_path / "one", REPLAY.format(nic="", count=1, hosts=""))
        assert alone.returncode in (0, EXIT_NO_VALID_TRIAL), alone.stderr
    directory, record = trial(tmp_path / "two")
    both, one = (queries(*trial(tmp_path / name), "client") for name in ("two", "one"))
    assert both.height > 1500 and both.equals(one), "the union is the single schedule"
    for number, name in enumerate(("clients-1", "clients-2")):
        own = pl.read_ipc_stream(directory / "generators" / "load" / name / "queries.arrow")
        assert set(own["client"].unique() % 2) == {number}
    assert record.instruments["load"]["answered"] == both.height
    clients = pl.read_ipc_stream(directory / "clients.arrow")
    assert clients["client"].n_unique() == clients.height == both["client"].n_unique()


@pytest.mark.full
def test_a_ramp_is_led_by_one(tmp_path: Path, python: Path) -> None:
    """Takes a minute: Python starts anew on each machine, and two CPUs do the work of all machines."""
    text = over_two(ramp_start_qps="500.0", ramp_most_qps="2000.0", ramp_step_s="0.3").replace("latency", "capacity")
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("rate_qps", "duration_s")))
    with lab(tmp_path / "lab", NAMES, python) as machines:
        machines.wire()
        result = run(machines, tmp_path / "two", text, "--machines", machines.on)
    _, record = trial(tmp_path / "two")
    load = record.instruments["load"]
    assert (record.outcome, result.returncode) in (("done", 0), ("invalid", EXIT_NO_VALID_TRIAL)), result.stderr
    assert load["model"] == "ramp" and load["steps"]


@pytest.mark.full
def test_a_primary_on_another_machine(tmp_path: Path, python: Path) -> None:
    """All that is seen of its zones came by one interface, at moments of this machine's clock."""
    folder = tmp_path / "one"
    with lab(tmp_path / "lab", NAMES, python, clocks_ns=CLOCKS_NS) as machines:
        machines.wire()
        result = run(machines, folder, PRIMARY_ELSEWHERE, "--machines", machines.on)
        assert result.returncode == 0, result.stderr
        wait_until(lambda: not machines.processes(), 60)
        assert not machines.machines["rack-1"].left_behind()
    (opened,) = map(Run.open, folder.glob("runs/*/*"))
    (found,) = opened.trials
    assert found.record.outcome == "done", found.record.reason
    assert found.links_growth(found.record.spec.primaries, "rx_bytes")
    assert [check.verdict for check in found.record.checks if check.name == "zones-came"] == ["passed"]
    setup, measure = found.record.phases[0], found.measure
    assert measure is not None
    exec_ns = found.record.servers["primary"].exec_ns
    assert setup.start.monotonic_ns < exec_ns < measure.start.monotonic_ns


@pytest.mark.full
@pytest.mark.parametrize("lost", ["a generator", "a connection", "the far end"])
def test_whatever_is_lost_ends_the_trial_and_is_named(lost: str, tmp_path: Path, python: Path) -> None:
    """Takes a minute: Python starts anew on each machine, and two CPUs do the work of all machines."""
    with lab(tmp_path / "lab", NAMES, python) as machines:
        machines.wire()
        folder = tmp_path / "two"
        folder.mkdir()
        (folder / "over-two.toml").write_text(over_two().replace("duration_s = 3.0", "duration_s = 20.0"))
        command = [*machines.enter, *DNSRIG, "run", "over-two.toml", "--machines", machines.on]
        runner = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        one = machines.machines["rack-2"]
        wait_until(lambda: having("--led", one.processes()), 90)
        if lost == "a generator":
            having("--led", one.processes())[0].kill()
        elif lost == "the far end":
            one.worker().kill()
        else:
            having("rack-2", machines.connections())[0].kill()
        _, told = runner.communicate(timeout=120)
        assert runner.returncode == 1
        assert "generator-2" in told or "rack-2" in told, told
        wait_until(lambda: not machines.processes(), 60)
        assert not one.left_behind()
