"""Zones from the user's own master files: every server transfers them, and is asked for what they contain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from suites import quick

from dnsrig.runs.trial import Trial

ZONE = """\
$TTL 300
@ IN SOA ns.example.net. root (
    {serial} ; each zone has a serial of its own
    3600 900 1209600 300 )
  IN NS ns.example.net.
www IN A 192.0.2.1
    AAAA 2001:db8::1
raw TYPE65280 \\# 3 aabbcc
"""
EXPERIMENT = """\
title = "My zones"
question = "Are they served?"
procedure = "latency"
limit_s = 60
repeats = 1
dataset = {{ kind = "files", files = "{folder}/*.zone" }}
transfer.provisioning = "catalog"
hosts.primary.server = "{primary}@forky"
hosts.secondary.server = "{secondary}@forky"
options = {{ serve_as = "secondary", rate_qps = 500, duration_s = 1 }}
"""
PAIRS = [("knot", "nsd"), ("bind", "knot"), ("nsd", "powerdns"), ("powerdns", "bind")]


@pytest.mark.parametrize(("primary", "secondary"), quick(PAIRS, PAIRS[0]))
def test_own_zones_are_transferred_and_asked_for(
    measure: Callable[..., Trial], tmp_path: Path, primary: str, secondary: str
) -> None:
    for serial in range(1, 6):
        (tmp_path / f"own{serial}.example.zone").write_text(ZONE.format(serial=serial))
    experiment = tmp_path / "mine.toml"
    experiment.write_text(EXPERIMENT.format(folder=tmp_path, primary=primary, secondary=secondary))
    trial = measure(experiment=str(experiment))
    record = trial.record
    assert record.outcome == "done", record.reason
    assert record.spec.dataset.zones == 5
    assert record.spec.dataset.records == 25
    assert trial.load.rcodes == {"NOERROR": 500}
