"""What real servers cost while they are measured, and the defaults that they print of themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import experiment, output
from suites import quick
from test_transfer import ZONES, transferred

from dnsrig.rundir import DEFAULTS_FILE
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

pytestmark = pytest.mark.servers

Measure = Callable[..., Trial]
PRINTING = sorted(kind for kind, server in all_drivers().items() if server.defaults_command)


def small(measure: Measure, kind: str) -> Trial:
    if all_drivers()[kind].answers_zones:
        return transferred(measure, kind)
    short = ("transport=udp", "names=cached", "options.duration_s=1", "options.warmup_s=1", "options.rate_qps=1000")
    return measure(*short, f"hosts.resolver.server={kind}@forky", experiment="resolver-cache")


@pytest.mark.parametrize("kind", quick(PRINTING, *(kind for kind in PRINTING if all_drivers()[kind].answers_zones)))
def test_documented_defaults_are_those_that_the_server_prints(measure: Measure, kind: str) -> None:
    """What the driver says of settings is held against the server itself, so both are read rightly."""
    trial, server = small(measure, kind), all_drivers()[kind]
    text = (trial.directory / "servers" / trial.subject / DEFAULTS_FILE).read_text()
    printed = server.read_defaults(text)
    assert len(printed) > 50
    by_name = {name.rpartition(".")[2]: value for name, value in printed.items()} | printed
    documented = {setting.name: setting.default for setting in server.settings if setting.name in by_name}
    assert len(documented) >= 2
    assert {name: by_name[name] for name in documented} == documented


def test_switches_and_faults_are_counted_of_the_server_under_test_only(measure: Measure) -> None:
    trial = small(measure, "bind")
    assert set(trial.record.counts) == {"secondary"}
    counts = trial.record.counts["secondary"]
    assert counts.voluntary_switches >= ZONES, "it waited for each zone at least once"
    assert counts.minor_faults > 100, "it was executed while it was measured"


@pytest.mark.full
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
    changed = {each["name"]: (each["base"], each["new"]) for each in pair["defaults"]["changed"]}
    assert changed["allow-transfer"] == ("{ any; }", "{ none; }"), "since 9.20"
    assert "What did it?" in (run / "report.html").read_text()
