"""What runs and experiments of earlier versions contain is read by the names of today."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from trial_data import clean_trial

from dnsrig.experiment import model
from dnsrig.rundir import LinkSpec, PathSpec, TrialRecord
from dnsrig.runs import rows
from dnsrig.runs.row_files import link


def test_an_experiment(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    text = model.find("mtu-mss").read_text().replace("_bytes", "_octets").replace("[path]", "[path]\nback.delay_ms = 3")
    file.write_text(text)
    old = model.load(file, "quick", ["path.mtu_octets=1280", "path.back.loss_percent=1"])
    assert (old.path.mtu_bytes, old.path.reverse.delay_ms, old.path.reverse.loss_percent) == (1280, 3, 1)
    assert "advmss_bytes" in str(old.matrix) and "octets" not in str(old.matrix)


def test_a_trial(tmp_path: Path) -> None:
    record = clean_trial(tmp_path).record.model_copy(deep=True)
    way = PathSpec(delay_ms=3, mtu_bytes=1280)
    record.spec.links = [LinkSpec(ends=("primary", "secondary"), forward=way, reverse=PathSpec())]
    record.instruments["link"] = {"forward": {"delivered_bytes": 1}, "reverse": {}}
    record.metrics["ixfr_bytes_percent"] = 7.0
    text = record.model_dump_json()
    assert TrialRecord.model_validate_json(text) == record
    for new, old in (("bytes", "octets"), ('"forward"', '"there"'), ('"reverse"', '"back"')):
        text = text.replace(new, old)
    old_record = TrialRecord.model_validate_json(text)
    assert old_record.spec == record.spec and old_record.metrics == record.metrics
    assert old_record.instruments == record.instruments


def test_rows(tmp_path: Path) -> None:
    file = link.of(LinkSpec(ends=("primary", "secondary")))
    values = {"direction": ["there", "back"]}
    old = pl.DataFrame({name.replace("bytes", "octets"): values.get(name, [1, 2]) for name in file.schema})
    old.write_ipc_stream(tmp_path / file.name)
    found = rows.read(tmp_path / file.name, None, file.schema)
    assert not found.damage and found.frame["direction"].to_list() == ["forward", "reverse"]
    assert found.frame["delivered_bytes"].to_list() == [1, 2]
