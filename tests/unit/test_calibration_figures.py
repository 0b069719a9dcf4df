"""Made-up trials as the figures of a certificate."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from load_data import LoadPlan, build

from dnsrig.analysis.read import Run
from dnsrig.experiment.calibration import figures
from dnsrig.servers import sources

ECHO = ("echo@engine",)


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
