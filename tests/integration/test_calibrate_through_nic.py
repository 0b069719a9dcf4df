"""`dnsrig calibrate` through an interface: from another machine over real SSH, beside what it measures over veth."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import DNSRIG, wait_until
from ssh_machines import Lab, lab

from dnsrig import certificate
from dnsrig.certificate import VETH, Floor
from dnsrig.report import certificate as page

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
    """Takes minutes: it is a calibration, and each floor is measured over two paths."""
    done = calibrate(machines, tmp_path / "certificates")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not machines.processes(), 60)
    assert not machines.machines["rack-1"].left_behind()
    (folder,) = (path for path in (tmp_path / "certificates").iterdir() if path.is_dir())
    found = certificate.read(folder)
    assert (folder / certificate.PAGE).read_text() == page.render(found)

    of = {path: [each for each in found.floors if each.path == path] for path in (VETH, LABEL)}
    assert sum(map(len, of.values())) == len(found.floors)
    for floors in of.values():
        assert {(each.transport, each.rate_qps) for each in floors} == {
            (transport, rate) for transport in ("udp", "tcp", "dot") for rate in (2000, 10_000)
        }
        assert all(whole(floor) for floor in floors)
    assert found.nic == "nic0" and found.nic_path is not None and found.nic_path.label == LABEL
    assert found.nic_path.nic["driver"].startswith("veth") and found.nic_path.machine_nic["driver"].startswith("veth")
    assert found.nic_path.machine_conditions["kernel"] == found.conditions["kernel"]
    clock = found.nic_path.clock
    assert clock is not None and abs(clock.offset_ns - AHEAD_NS) <= clock.error_ns
    assert LABEL in done.stdout and "clock of rack-1" in done.stdout


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
