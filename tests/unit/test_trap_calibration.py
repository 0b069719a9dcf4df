"""Whether the certificate that a run cites still held when it began."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import synthetic
from calibration_data import CONDITIONS, cited, through_nic

from dnsrig.rundir import Finding, Machine
from dnsrig.runs.run import Run
from dnsrig.traps import all_traps

Change = Callable[[Run], object]


def run_of(directory: Path, **changed: Any) -> Run:
    """A run on the machine of the certificate, a moment after it."""
    run = Run.open(synthetic.build(directory / "run"))
    run.manifest.conditions |= {**CONDITIONS, "calibration": cited(**changed)}
    run.manifest.engine_fingerprint = "aaaa"
    run.manifest.created = "2025-01-01T13:00:00+00:00"
    return run


def finding(run: Run) -> Finding:
    (found,) = all_traps()["calibration-stale"].examine(run)
    return found


def conditions(**changed: object) -> Change:
    return lambda run: run.manifest.conditions.update(changed)


def manifest(name: str, value: str) -> Change:
    return lambda run: setattr(run.manifest, name, value)


@pytest.mark.parametrize(
    ("change", "verdict", "told"),
    [
        (conditions(), "clear", ""),
        (conditions(boot_id="second", clock_synchronised=False), "clear", ""),
        (conditions(kernel="6.2.0"), "found", "kernel was 6.1.0-synthetic and is now 6.2.0"),
        (conditions(cpu_model="Other CPU"), "found", "cpu model was Synthetic CPU"),
        (conditions(cpus=4), "found", "cpus was 2 and is now 4"),
        (conditions(clocksource="hpet"), "found", "clocksource was tsc"),
        (conditions(governor="powersave"), "found", "governor was not known and is now powersave"),
        (conditions(nics={}), "found", "nics was eth0 virtio_net 10,000 Mbit/s and is now none"),
        (manifest("engine_fingerprint", "bbbb"), "found", "engine was aaaa and is now bbbb"),
        (manifest("dnsrig_version", "0.1.0"), "found", "dnsrig version was 0.0.0"),
        (manifest("created", "2025-01-31T11:59:00+00:00"), "clear", ""),
        (manifest("created", "2025-02-01T12:00:00+00:00"), "found", "it was 31 days old; 30 are allowed"),
        (manifest("created", "2025-01-01T13:00:00"), "cannot-tell", "cannot be read"),
        (manifest("created", "then"), "cannot-tell", "cannot be read"),
        (conditions(calibration=None), "cannot-tell", "not calibrated"),
        (lambda run: run.manifest.conditions.pop("calibration"), "cannot-tell", "not calibrated"),
    ],
)
def test_what_makes_a_certificate_stale(tmp_path: Path, change: Change, verdict: str, told: str) -> None:
    run = run_of(tmp_path)
    change(run)
    found = finding(run)
    assert (found.verdict, found.variant) == (verdict, None) and told in found.summary
    assert ("`dnsrig calibrate`" in found.remedy) == (verdict == "found")


def test_everything_that_changed_is_told(tmp_path: Path) -> None:
    run = run_of(tmp_path, created="2024-11-01T12:00:00+00:00")
    run.manifest.conditions |= {"kernel": "6.2.0", "cpus": 4}
    found = finding(run)
    assert found.evidence["age_days"] == 61.0 and found.evidence["cpus"] == "2, 4"
    assert all(word in found.summary for word in ("kernel", "cpus", "61 days"))


def test_the_interface_that_was_measured_through_is_named(tmp_path: Path) -> None:
    run = run_of(tmp_path, found=through_nic())
    run.manifest.conditions["kernel"] = "6.2.0"
    assert "20250101T120000Z-test, also of eth1 – rack-2:eth1, was no longer valid" in finding(run).summary


def test_what_only_one_side_tells_is_not_held_against_it(tmp_path: Path) -> None:
    """A certificate of an earlier version, or a run of one, knew fewer conditions."""
    run = run_of(tmp_path, conditions={"kernel": CONDITIONS["kernel"]})
    assert finding(run).verdict == "clear"
    run = run_of(tmp_path / "other")
    del run.manifest.conditions["nics"]
    assert finding(run).verdict == "clear"


def test_of_several_machines_each_has_its_own(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    fresh = dict(run.manifest.conditions)
    run.manifest.machines = [
        Machine(name="a", conditions=fresh),
        Machine(name="b", conditions=fresh | {"kernel": "6.2.0"}),
    ]
    found = finding(run)
    assert found.verdict == "found" and found.summary.startswith("Machine b: ")
