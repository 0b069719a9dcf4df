"""`dnsrig calibrate` on this machine: everything in the certificate is there, through an interface too: from another
machine over real SSH, beside what it measures over veth. Interrupted, nothing of it is there."""

from __future__ import annotations

import math
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import DNSRIG, wait_until
from ssh_machines import Lab, lab

from dnsrig import certificate
from dnsrig.certificate import VETH, Certificate, Floor
from dnsrig.comparison import calibration
from dnsrig.report import certificate as page
from dnsrig.runs.run import Run

LIMIT_S = 900
AHEAD_NS = 3_700_000_000
LABEL = "nic0 – rack-1:nic0"


@pytest.fixture
def machines(tmp_path: Path) -> Lab:  # type: ignore[misc]
    (tmp_path / "python").mkdir()
    with lab(tmp_path / "lab", ["rack-1"], tmp_path / "python", clocks_ns={"rack-1": AHEAD_NS}) as made:
        made.wire()
        yield made


def calibrate(machines: Lab, folder: Path) -> subprocess.CompletedProcess[str]:
    options = ["--scale", "quick", "--certificates", str(folder)]
    path = ["--nic", "nic0", "--other-end", "rack-1:nic0", "--machines", machines.on]
    words = [*machines.enter, *DNSRIG, "calibrate", *options, *path]
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)


@pytest.mark.alone
@pytest.mark.full
@pytest.mark.timeout(LIMIT_S)
def test_the_floor_is_measured_over_both_paths(tmp_path: Path, machines: Lab, nothing_left: None) -> None:
    """Takes minutes: a certificate has three transports, two rates, all capacities, each several times, and each floor
    is measured over two paths."""
    done = calibrate(machines, tmp_path / "certificates")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not machines.processes(), 60)
    assert not machines.machines["rack-1"].left_behind()
    (folder,) = (path for path in (tmp_path / "certificates").iterdir() if path.is_dir())
    found = certificate.read(folder)
    assert folder.name == found.id and f"{found.id}/{certificate.PAGE}" in done.stdout.replace("\n", "")
    assert (folder / certificate.PAGE).read_text() == page.render(found)

    everything_is_there(found)
    assert {each.path for each in found.floors} == {VETH, LABEL}
    assert found.nic == "nic0" and found.nic_path is not None and found.nic_path.label == LABEL
    assert found.nic_path.nic["driver"].startswith("veth") and found.nic_path.machine_nic["driver"].startswith("veth")
    assert found.nic_path.machine_conditions["kernel"] == found.conditions["kernel"]
    clock = found.nic_path.clock
    assert clock is not None and abs(clock.offset_ns - AHEAD_NS) <= clock.error_ns
    assert LABEL in done.stdout and "clock of rack-1" in done.stdout

    (run,) = (folder / "runs/noise").iterdir()
    values = [trial.result for trial in Run.open(run).trials]
    assert sorted(v for v in values if v) == sorted(v for noise in found.noise for v in noise.values)


def everything_is_there(found: Certificate) -> None:
    for path in {each.path for each in found.floors}:
        assert {(each.transport, each.rate_qps) for each in found.floors if each.path == path} == {
            (transport, rate) for transport in ("udp", "tcp", "dot") for rate in (2000, 10_000)
        }
    assert all(whole(floor) for floor in found.floors)
    assert {(each.transport, each.new_connections) for each in found.capacities} == {
        *(("udp", False), ("tcp", False), ("dot", False), ("tcp", True), ("dot", True))
    }
    assert {link.kind for link in found.links} == {"veth", "netem", "tun"}
    assert all(link.works or link.missing or link.wrong for link in found.links)
    for noise in found.noise:
        assert len(noise.values) == 6
        assert noise.smallest == calibration.smallest_differences(noise.values, noise.seed), "as the file says it"
        assert all(math.isfinite(each.percent) for each in noise.smallest if each.percent is not None)
    assert {"CPUs", "SMT", "NUMA", "idle CPUs", "steal", "other load"} <= {each.what for each in found.disturbances}


def whole(floor: Floor) -> bool:
    told = (floor.p50_us, floor.p99_us, floor.p99_9_us, floor.lag_p99_us, floor.lag_max_us)
    return all(value is not None and 0 < value.low <= value.median <= value.high for value in told)


@pytest.mark.full
def test_an_interface_in_use_is_refused_at_either_end(tmp_path: Path, machines: Lab) -> None:
    there, here = machines.machines["rack-1"].namespace, machines.namespace
    for namespace, who in ((there, "rack-1: "), (here, "")):
        subprocess.run(["ip", "-n", namespace, "addr", "add", "10.98.0.1/24", "dev", "nic0"], check=True, timeout=30)
        done = calibrate(machines, tmp_path / "certificates")
        assert done.returncode != 0
        assert f"{who}the interface nic0 is in use: it has the address 10.98.0.1" in done.stderr, done.stderr
    assert not (tmp_path / "certificates").exists()


@pytest.mark.alone
@pytest.mark.full
@pytest.mark.timeout(LIMIT_S)
def test_without_a_cable_there_is_no_certificate(tmp_path: Path, machines: Lab) -> None:
    """Takes minutes: the floor over veth is measured before the interface."""
    subprocess.run(["ip", "-n", machines.switch, "link", "set", "port1", "down"], check=True, timeout=30)
    done = calibrate(machines, tmp_path / "certificates")
    assert done.returncode == 1
    assert f"no measurement through {LABEL}" in done.stderr and "no packets" in done.stderr, done.stderr
    assert not [path for path in (tmp_path / "certificates").iterdir() if not path.name.startswith(".")]


def test_interrupted_it_leaves_nothing(tmp_path: Path) -> None:
    """Every test looks whether a namespace is left."""
    said = tmp_path / "said"
    words = [*DNSRIG, "calibrate", "--scale", "quick", "--certificates", str(tmp_path / "certificates")]
    with said.open("w") as stderr:
        running = subprocess.Popen(words, stderr=stderr, stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: any((tmp_path / "certificates").glob(".unfinished-*/runs/floor/*/trials/*/*.running")))
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 130
        finally:
            running.kill()
    assert [path.name for path in (tmp_path / "certificates").iterdir()] == [".lock"]
    assert "start it again" in said.read_text() and "--scale quick" in said.read_text()
