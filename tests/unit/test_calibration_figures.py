"""Made-up trials as the figures of a certificate."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from load_data import LoadPlan, build

from dnsrig.errors import DnsrigError
from dnsrig.experiment.calibration import figures, through
from dnsrig.experiment.calibration.through import Through
from dnsrig.rundir import ClockRecord, MachineRecord
from dnsrig.runs.run import Run
from dnsrig.servers import sources

ECHO = ("echo@engine",)
CABLE = Through("eth1", "rack-2", "eth1", Path("machines.toml"))


def run_of(directory: Path, plan: LoadPlan, **options: object) -> Run:
    run = Run.open(build(directory, plan))
    for spec in run.manifest.specs.values():
        spec.options |= {"transport": "udp", "rate_qps": 5000.0, "queries_per_connection": 1, **options}  # type: ignore[dict-item]
    return run


def test_a_floor_is_over_the_trials_and_in_microseconds(tmp_path: Path) -> None:
    run = run_of(tmp_path, LoadPlan(servers=ECHO, late_us={"echo@engine": 20}))
    (floor,) = figures.floors(run)
    of = sorted(1e3 * value for trial in run.trials if (value := trial.value("p99_ms")) is not None)
    assert floor.p99_us is not None and [floor.p99_us.low, floor.p99_us.median, floor.p99_us.high] == of
    assert (floor.transport, floor.rate_qps, floor.trials, floor.not_done) == ("udp", 5000.0, 3, "")
    assert floor.lag_max_us is not None and floor.lag_max_us.median == pytest.approx(20, rel=0.01)


def test_a_floor_through_an_interface_has_its_path(tmp_path: Path) -> None:
    run = run_of(tmp_path, LoadPlan(servers=ECHO))
    (floor,) = through.floors_of(run, CABLE)
    assert floor.path == "eth1 – rack-2:eth1" and figures.floors(run)[0].path == "veth"
    assert floor.model_copy(update={"path": "veth"}) == figures.floors(run)[0]


def test_the_floor_is_measured_by_a_generator_at_the_other_end_of_the_cable() -> None:
    assert Through("eth1", "rack-2", "eth7", Path("machines.toml")).settings == [
        'title="Floor of latency and lag through eth1 \\u2013 rack-2:eth7"',
        "options.generators=1",
        'hosts.primary.nic="eth1"',
        'hosts.generator-1.machine="rack-2"',
        'hosts.generator-1.nic="eth7"',
    ]


def test_where_nothing_came_through_there_is_no_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path, LoadPlan(servers=ECHO, invalid=ECHO))
    (floor,) = figures.floors(run)
    nothing = floor.model_copy(update={"p50_us": None})
    monkeypatch.setattr(figures, "floors", lambda run, path: [nothing])
    with pytest.raises(DnsrigError, match="through eth1 – rack-2:eth1 succeeded: 3 of 3 invalid"):
        through.floors_of(run, CABLE)


def test_the_path_has_both_interfaces_and_the_clock_that_is_known_best(tmp_path: Path) -> None:
    run = run_of(tmp_path, LoadPlan(servers=ECHO))
    run.manifest.conditions["other_machines"] = {"rack-2": {"kernel": "6.1"}}
    for number, trial in enumerate(run.trials):
        trial.record.read_back["nics"] = {"primary": {"driver": "a"}, "generator-1": {"driver": "b"}}
        clock = ClockRecord(
            at_ns=0,
            offset_ns=5,
            drift_ppb=0,
            error_ns=abs(number - 1),
            realtime_offset_ns=0,
            realtime_error_ns=0,
            comparisons=2,
        )
        trial.record.machines["rack-2"] = MachineRecord(read_back={}, clock=None if number == 0 else clock)
    found = through.path_of(run, CABLE)
    assert (found.nic["driver"], found.machine_nic["driver"]) == ("a", "b")
    assert found.machine_conditions == {"kernel": "6.1"}
    assert found.clock is not None and found.clock.error_ns == 0


def test_what_is_not_done_is_told_and_counts(tmp_path: Path) -> None:
    (floor,) = figures.floors(run_of(tmp_path, LoadPlan(servers=ECHO, invalid=ECHO)))
    assert floor.not_done == "3 of 3 invalid: the instrument was late" and floor.p99_us is not None


def test_the_highest_rate_and_no_guess_of_what_bound_it(tmp_path: Path) -> None:
    run = run_of(tmp_path, LoadPlan(servers=ECHO, ramp=True), transport="dot")
    (found,) = figures.capacities(run)
    assert found.qps is not None and found.qps.median == pytest.approx(200_000, rel=0.1)
    assert (found.transport, found.new_connections, found.not_done) == ("dot", True, "")
    assert found.bound_by == "not known" and "not known" in found.why, "without samples nobody saw the server's CPUs"


@pytest.mark.parametrize(("timeouts", "told"), [(0, ""), (400, "5 of 5 at the client's timeout")])
def test_noise_is_the_trials_in_their_order(tmp_path: Path, timeouts: int, told: str) -> None:
    plan = LoadPlan(servers=ECHO, repeats=5, seconds=2, timeouts={"echo@engine": timeouts})
    run = run_of(tmp_path, plan)
    (noise,) = figures.noise(run)
    assert noise.values == [trial.value("p99_ms") for trial in sorted(run.trials, key=lambda trial: trial.key.repeat)]
    assert noise.not_done.startswith(told) and bool(noise.not_done) == bool(told)
    assert [each.repeats for each in noise.smallest if each.percent is None] == [3]


@pytest.mark.parametrize(("installed", "expected"), [([], 1), (["bind@forky"], 2), (["bind@forky", "nsd@forky"], 2)])
def test_a_real_server_takes_part_where_one_is_installed(
    monkeypatch: pytest.MonkeyPatch, installed: list[str], expected: int
) -> None:
    def of(server: object) -> list[SimpleNamespace]:
        kind = getattr(server, "kind", "")
        return [SimpleNamespace(name=name) for name in installed if name.startswith(f"{kind}@")]

    monkeypatch.setattr(sources, "all_sources", lambda: {"suite": SimpleNamespace(installed=of)})
    found = figures.noisy_servers()
    assert len(found) == expected and found[0] == "echo@engine"
    assert found[1:] == installed[-1:], "the lightest of them"
    assert figures.server_axis(["a@b"]) == 'server=["a@b"]'
