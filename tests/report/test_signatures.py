"""The report says what is signed, and by which algorithms."""

from __future__ import annotations

from pathlib import Path

from synthetic import Plan, build

from dnsrig.report import page, ran
from dnsrig.runs.run import Run

DEFAULTS = {
    "signed_share": None,
    "tlds": {"signed": 0.939, "p256": 0.165, "ed25519": 0.0},
    "zones": {"signed": 0.05, "p256": 0.6, "ed25519": 0.02},
}


def test_the_mix_of_algorithms_is_in_the_report(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run", Plan(zones=[1, 2])))
    for trial in run.trials:
        of_one = trial.record.spec.dataset.zones == 1
        trial.record.instruments["signatures"] = {**DEFAULTS, "signed_share": 0.6 if of_one else None}
    raised, usual = ran.signatures(run)
    assert raised["second-level zones"] == "60 % signed: RSA 38 %, P-256 60 %, Ed25519 2 %"
    assert usual["second-level zones"] == "5 % signed: RSA 38 %, P-256 60 %, Ed25519 2 %"
    assert raised["TLDs"] == usual["TLDs"] == "93.9 % signed: RSA 83.5 %, P-256 16.5 %"
    assert (raised["the same share below all TLDs"], usual["the same share below all TLDs"]) == ("yes", "no")
    assert "P-256 60 %" in page.render(run, [], [])


def test_a_run_without_a_simulated_internet_has_no_signatures(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run"))
    assert ran.signatures(run) == [] and "Signatures in the simulated" not in page.render(run, [], [])
