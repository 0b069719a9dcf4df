"""What real servers cost while they are measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import experiment, output

from dnsrig.analysis.read import Trial

pytestmark = pytest.mark.servers

Measure = Callable[..., Trial]
ZONES = 40


def test_switches_and_faults_are_counted_of_servers_only(measure: Measure) -> None:
    trial = measure("server=bind@forky", f"zones={ZONES}")
    assert set(trial.record.counts) == {"primary", "secondary"}
    counts = trial.record.counts["secondary"]
    assert counts.voluntary_switches >= ZONES, "it waited for each zone at least once"
    assert counts.minor_faults > 100, "it was executed while it was measured"


def test_two_versions_of_bind_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = tmp_path / "small.toml"
    toml.write_text(
        experiment("Two versions", "What did it?") + '"hosts.secondary.server" = ["bind@bookworm", "bind@forky"]\n'
    )
    code, _, said = output(monkeypatch, capsys, "run", toml, "--runs", tmp_path / "runs")
    assert code == 0, said
    (run,) = tmp_path.glob("runs/small/*")
    code, told, _ = output(monkeypatch, capsys, "export", run, "--format", "pairs")
    (pair,) = json.loads(Path(told.strip()).read_text())["pairs"]
    assert (code, pair["kind"], pair["per"]) == (0, "bind", "a trial")
    assert {"user_cpu_us", "kernel_cpu_us", "voluntary_switches"} <= {cost["cost"] for cost in pair["costs"]}
    assert "What did it?" in (run / "report.html").read_text()
