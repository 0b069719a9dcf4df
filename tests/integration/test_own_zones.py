"""Zones from the user's own master files: every server transfers them, and is asked for what they contain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from suites import quick

from dnsrig import datasets
from dnsrig.runs.trial import Trial
from dnsrig.servers import sources, zone_checks

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
WITH_IXFR = [("bind", "knot"), ("knot", "nsd"), ("nsd", "powerdns")]
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


UPDATE = """\
title = "My update"
question = "Does the next version arrive?"
procedure = "update"
limit_s = 60
repeats = 1
dataset = { kind = "files", files = "v1/*.zone", next = ["v2/*.zone"] }
transfer = { ixfr = true, notify = true }
options = { settle_s = 1.0 }
hosts.primary.server = "PRIMARY@forky"
hosts.secondary.server = "SECONDARY@forky"
"""
MANY = "".join(f"host{number} IN A 192.0.2.{number % 250}\n" for number in range(1000))
"""So many do not change that bytes on the link tell IXFR from AXFR."""
WITH_CNAME = "www IN CNAME ns.example.net.\n"


def write_versions(folder: Path) -> None:
    """Two versions of three zones. The serials of the second version of one are older than those of another's first."""
    for version in (1, 2):
        (folder / f"v{version}").mkdir()
        for number in range(3):
            text = ZONE.format(serial=100 * number + version) + MANY + f"new{version} IN A 192.0.2.{version}\n"
            (folder / f"v{version}" / f"own{number}.example.zone").write_text(text)


@pytest.mark.parametrize(("primary", "secondary"), quick(WITH_IXFR, WITH_IXFR[0]))
def test_own_later_versions_arrive(measure: Callable[..., Trial], tmp_path: Path, primary: str, secondary: str) -> None:
    write_versions(tmp_path)
    experiment = tmp_path / "update.toml"
    experiment.write_text(UPDATE.replace("PRIMARY", primary).replace("SECONDARY", secondary))
    trial = measure(experiment=str(experiment))
    assert trial.record.outcome == "done", trial.record.reason
    assert {check.name: check.verdict for check in trial.record.checks}["ixfr-size"] == "passed"
    assert [version.serial for version in trial.record.spec.versions] == [1, 2]
    seen = pl.read_ipc_stream(trial.directory / "zones.arrow").sort("zone")
    assert seen["serial"].to_list() == [2, 102, 202]


def test_what_servers_refuse_is_reported_with_its_line(tmp_path: Path) -> None:
    """BIND, Knot DNS and NSD refuse a CNAME record beside others."""
    file = tmp_path / "own.example.zone"
    file.write_text(f"; a comment\n{ZONE.format(serial=7)}{WITH_CNAME}")
    made = datasets.provide("files", {"files": str(file)})
    servers = {name: sources.find(name) for name in ("bind@forky", "knot@forky", "nsd@forky")}
    known = {name: source for name, source in servers.items() if source is not None}
    (sentence,) = zone_checks.sentences(known, made, [file])
    assert f"bind@forky refuses {file} line 10: " in sentence
    assert all(f"{name} refuses" in sentence for name in known), sentence
    fine = tmp_path / "fine.example.zone"
    fine.write_text(ZONE.format(serial=7))
    assert zone_checks.sentences(known, datasets.provide("files", {"files": str(fine)}), [fine]) == []
