"""`dnsrig calibrate` on this machine: everything in the certificate is there; interrupted, nothing of it is."""

from __future__ import annotations

import math
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import DNSRIG, wait_until

from dnsrig import certificate
from dnsrig.comparison import calibration
from dnsrig.report import certificate as page
from dnsrig.runs.run import Run

LIMIT_S = 900


@pytest.mark.alone
@pytest.mark.full
@pytest.mark.timeout(LIMIT_S)
def test_a_quick_calibration(tmp_path: Path) -> None:
    """Takes minutes: a certificate has three transports, two rates, all capacities, each several times."""
    words = [*DNSRIG, "calibrate", "--scale", "quick", "--certificates", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    found = certificate.read(folder)
    assert folder.name == found.id and f"{found.id}/{certificate.PAGE}" in done.stdout.replace("\n", "")
    assert (folder / certificate.PAGE).read_text() == page.render(found)

    assert {(each.transport, each.rate_qps) for each in found.floors} == {
        (transport, rate) for transport in ("udp", "tcp", "dot") for rate in (2000, 10_000)
    }
    for floor in found.floors:
        told = (floor.p50_us, floor.p99_us, floor.p99_9_us, floor.lag_p99_us, floor.lag_max_us)
        assert all(value is not None and 0 < value.low <= value.median <= value.high for value in told)
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

    (run,) = (folder / "runs/noise").iterdir()
    values = [trial.result for trial in Run.open(run).trials]
    assert sorted(v for v in values if v) == sorted(v for noise in found.noise for v in noise.values)


def test_interrupted_it_leaves_nothing(tmp_path: Path) -> None:
    """That no namespace is left either, every test looks."""
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
