"""A whole trial under another kernel: in User-mode Linux, with servers from the same root file systems."""

from __future__ import annotations

import platform
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import DNSRIG, own_ledgers, specs, wait_until
from suites import on_day

from dnsrig.lab import ledger, uml
from dnsrig.rundir import TrialRecord, read_json
from dnsrig.runs.trial import Trial

LIMIT_S = 120
SLOW = ("server=bind@forky", "zones=400")
"""By BIND's default of 20 SOA queries a second: 20 s."""


def start(folder: Path, *settings: str) -> tuple[subprocess.Popen[str], Path]:
    """`dnsrig trial` of the only variant of the experiment tour, under kernel uml."""
    (spec,) = specs("tour", "kernel=uml", *settings)
    spec_file, directory = folder / "spec.json", folder / "trial"
    spec_file.write_text(spec.model_dump_json())
    command = [*DNSRIG, "trial", str(spec_file), str(directory)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), directory


def start_slow(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """One that is in the middle of its work."""
    process, directory = start(folder, *SLOW)
    running = directory.with_name("trial.running")
    wait_until(lambda: (running / "servers/secondary/exec.json").exists() or process.poll() is not None, LIMIT_S)
    assert process.poll() is None, process.communicate()[1]
    return process, directory


@on_day(0, of=3)
def test_a_trial_is_done_there(tmp_path: Path, kernel: uml.Kernel) -> None:
    """Takes half a minute: another kernel boots, and under it Python imports everything anew, several times slower."""
    process, directory = start(
        tmp_path, "server=knot@forky", "zones=20", "path.delay_ms=20", "hosts.secondary.congestion=hybla"
    )
    output, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, errors
    trial = Trial(directory, read_json(directory / "trial.json", TrialRecord))
    record = trial.record
    assert (record.outcome, trial.metrics["zones_seen"]) == ("done", 20)
    assert trial.zones["outcome"].to_list() == ["seen"] * 20
    under = record.read_back["kernel"]
    assert (under["kind"], under["release"], under["cpus"]) == ("uml", kernel.release, 1)
    assert kernel.release != platform.release()
    assert record.read_back["hosts"]["secondary"]["tcp"]["congestion"]["obtained"] == "hybla"
    assert [link.kind for link in record.spec.links if link.emulated] == ["netem"]
    assert {cpu for host in record.spec.hosts.values() for cpu in host.cpus} == {0}
    assert '"phase": "measure"' in output and output.count('"event": "ended"') == 1
    assert own_ledgers() == []


@pytest.mark.full
def test_told_to_end_it_ends_in_order(tmp_path: Path, kernel: uml.Kernel) -> None:
    process, directory = start_slow(tmp_path)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and "everything that this trial made was removed" in errors
    assert "Interrupted" in (directory.with_name("trial.aborted") / "error.txt").read_text(), "it ended by itself"
    assert own_ledgers() == []


@pytest.mark.full
def test_killed_from_outside_the_kernel_ends_too(tmp_path: Path, kernel: uml.Kernel) -> None:
    process, directory = start_slow(tmp_path)
    (tag,) = (path.stem for path in own_ledgers())
    process.kill()
    process.communicate()
    wait_until(lambda: tag not in ledger.live(), LIMIT_S)  # the kernel holds the ledger as long as it runs
    assert directory.with_name("trial.aborted").exists() and not directory.exists()
    subprocess.run([*DNSRIG, "clean"], check=True, capture_output=True)


@pytest.mark.full
def test_what_goes_wrong_inside_is_told_outside(tmp_path: Path, kernel: uml.Kernel) -> None:
    ports = "net.ipv4.ip_local_port_range"
    process, directory = start(tmp_path, "server=knot@forky", "zones=20", f'hosts.secondary.sysctls."{ports}"="9 1"')
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0 and not directory.exists()
    assert errors.startswith(f"dnsrig: the kernel refuses {ports} = '9 1'")


@pytest.mark.full
def test_its_emulator_tells_senders_of_ipv6(measure: Callable[..., Trial], kernel: uml.Kernel) -> None:
    """Of packets above the path's MTU: else the self-test would have the trial invalid."""
    settings = ("transport=tcp", "icmp=sent", "mss=untouched", "baseline={}", "dataset.delegations=1000")
    trial = measure("family=ipv6", "kernel=uml", "link=netem", *settings, experiment="mtu-mss")
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    (check,) = (check for check in trial.record.link_tests if check["kind"] == "netem")
    assert check["family"] == "ipv6" and check["forward"]["found"]["too_large_told"]
